-- name: lock_in_order
-- Locks all memories that a transaction will touch, in id order in one statement; returns the versions of existing
-- ones. Lock strengths: 4 (FOR UPDATE) for memories to delete, with their facts and summaries; 3 (FOR NO KEY UPDATE)
-- for memories to change, to reinstate or to relink, and for those that must not change; 1 (FOR KEY SHARE) for memories
-- that must exist because queue rows or links will point to them: summaries of changed memories, last successors, and
-- other sources of deleted summaries.
WITH RECURSIVE going AS ({going}),
handed AS (
    SELECT m.memory_id FROM memories m
     WHERE m.agent_id = %(agent_id)s AND m.superseded_by = ANY (ARRAY(SELECT memory_id FROM going))),
touched AS (
    SELECT memory_id, 4 AS firmness FROM going
     UNION ALL
    SELECT memory_id, 3 FROM handed
     UNION ALL
    SELECT unnest(%(changing)s::uuid[] || %(unchanged)s::uuid[]), 3
     UNION ALL
    SELECT unnest(%(kept)s::uuid[]), 1
     UNION ALL
    SELECT s.memory_id, 1
      FROM memory_links l
      JOIN memories s ON s.agent_id = %(agent_id)s AND s.memory_id = l.source_id
                     AND s.kind IN ('session', 'period')
     WHERE l.agent_id = %(agent_id)s AND l.relation = 'summarises'
       AND l.target_id = ANY (%(changing)s::uuid[] || ARRAY(SELECT memory_id FROM handed))
     UNION ALL
    SELECT m.superseded_by, 1
      FROM going JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = going.memory_id
     WHERE m.superseded_by IS NOT NULL AND EXISTS (SELECT FROM handed)
     UNION ALL
    SELECT told.target_id, 1
      FROM going
      JOIN memories s ON s.agent_id = %(agent_id)s AND s.memory_id = going.memory_id
                     AND s.kind IN ('session', 'period')
      JOIN memory_links told ON told.agent_id = %(agent_id)s AND told.source_id = s.memory_id
                            AND told.relation = 'summarises'
     WHERE s.memory_id <> ALL (%(memory_ids)s::uuid[])),
ordered AS MATERIALIZED (
    SELECT memory_id, max(firmness) AS firmness FROM touched GROUP BY memory_id ORDER BY memory_id)
-- Only single-row subqueries take locks of different strengths in one order.
SELECT ordered.memory_id, coalesce(gone.version, stood.version, stayed.version) AS version
  FROM ordered
  LEFT JOIN LATERAL (SELECT m.version FROM memories m
                      WHERE m.agent_id = %(agent_id)s AND m.memory_id = ordered.memory_id AND ordered.firmness = 4
                        FOR UPDATE) AS gone ON true
  LEFT JOIN LATERAL (SELECT m.version FROM memories m
                      WHERE m.agent_id = %(agent_id)s AND m.memory_id = ordered.memory_id AND ordered.firmness = 3
                        FOR NO KEY UPDATE) AS stood ON true
  LEFT JOIN LATERAL (SELECT m.version FROM memories m
                      WHERE m.agent_id = %(agent_id)s AND m.memory_id = ordered.memory_id AND ordered.firmness = 1
                        FOR KEY SHARE) AS stayed ON true;

-- name: existing_with_changing
-- Locks these memories in id order in one statement; `visible`: not expired. Strength 3 (FOR NO KEY UPDATE) for
-- memories that may change and their extracted facts; 1 (FOR KEY SHARE) for the others and for summaries of those that
-- may change.
WITH touched AS (
    SELECT unnest(%(changing)s::uuid[]) AS memory_id, 3 AS firmness
     UNION ALL
    SELECT f.memory_id, 3 FROM memories f
     WHERE f.agent_id = %(agent_id)s AND f.parent_memory_id = ANY (%(changing)s::uuid[]) AND f.kind = 'fact'
     UNION ALL
    SELECT unnest(%(memory_ids)s::uuid[]), 1
     UNION ALL
    SELECT l.source_id, 1 FROM memory_links l
     WHERE l.agent_id = %(agent_id)s AND l.target_id = ANY (%(changing)s::uuid[]) AND l.relation = 'summarises'),
ordered AS MATERIALIZED (
    SELECT memory_id, max(firmness) AS firmness FROM touched GROUP BY memory_id ORDER BY memory_id)
SELECT ordered.memory_id, coalesce(stood.visible, stayed.visible) AS visible
  FROM ordered
  LEFT JOIN LATERAL (SELECT is_live(m.expires_at, m.pinned) AS visible FROM memories m
                      WHERE m.agent_id = %(agent_id)s AND m.memory_id = ordered.memory_id AND ordered.firmness = 3
                        FOR NO KEY UPDATE) AS stood ON true
  LEFT JOIN LATERAL (SELECT is_live(m.expires_at, m.pinned) AS visible FROM memories m
                      WHERE m.agent_id = %(agent_id)s AND m.memory_id = ordered.memory_id AND ordered.firmness = 1
                        FOR KEY SHARE) AS stayed ON true;
