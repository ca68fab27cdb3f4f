-- name: hold_in_order
-- All that a transaction is to touch, held in id order by one statement, each as firmly as it needs; the versions of those
-- that are there. What goes, goes with its facts and summaries (4); what changes, and what holds again or is handed on as
-- its successor goes (3); whatever else must stand as it is (3); what must stay, since rows that wait or ties will point
-- to it (1): the summaries that tell of what changes, the last successors, and what else the summaries that go tell of.
WITH RECURSIVE going AS ({going}),
handed AS (
    SELECT m.memory_id FROM memories m
     WHERE m.agent_id = %(agent_id)s AND m.superseded_by = ANY (ARRAY(SELECT memory_id FROM going))),
touched AS (
    SELECT memory_id, 4 AS firmness FROM going
     UNION ALL
    SELECT memory_id, 3 FROM handed
     UNION ALL
    SELECT unnest(%(changing)s::uuid[] || %(standing)s::uuid[]), 3
     UNION ALL
    SELECT unnest(%(staying)s::uuid[]), 1
     UNION ALL
    SELECT s.memory_id, 1
      FROM memory_links l
      JOIN memories s ON s.agent_id = %(agent_id)s AND s.memory_id = l.source_id
                     AND s.provenance ->> 'form' IN ('session', 'period')
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
                     AND s.provenance ->> 'form' IN ('session', 'period')
      JOIN memory_links told ON told.agent_id = %(agent_id)s AND told.source_id = s.memory_id
                            AND told.relation = 'summarises'
     WHERE s.memory_id <> ALL (%(memory_ids)s::uuid[])),
ordered AS MATERIALIZED (
    SELECT memory_id, max(firmness) AS firmness FROM touched GROUP BY memory_id ORDER BY memory_id)
-- Only a subquery of one row each takes locks of several kinds in one order.
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
-- Which of these ids are memories of the agent (`visible`), all held in id order by one statement: what may change, and the
-- facts that a model read from it (3); whatever else must stay, and the summaries that tell of what may change (1).
WITH touched AS (
    SELECT unnest(%(changing)s::uuid[]) AS memory_id, 3 AS firmness
     UNION ALL
    SELECT f.memory_id, 3 FROM memories f
     WHERE f.agent_id = %(agent_id)s AND f.parent_memory_id = ANY (%(changing)s::uuid[]) AND f.provenance ->> 'form' = 'fact'
     UNION ALL
    SELECT unnest(%(memory_ids)s::uuid[]), 1
     UNION ALL
    SELECT l.source_id, 1 FROM memory_links l
     WHERE l.agent_id = %(agent_id)s AND l.target_id = ANY (%(changing)s::uuid[]) AND l.relation = 'summarises'),
ordered AS MATERIALIZED (
    SELECT memory_id, max(firmness) AS firmness FROM touched GROUP BY memory_id ORDER BY memory_id)
SELECT ordered.memory_id, coalesce(stood.visible, stayed.visible) AS visible
  FROM ordered
  LEFT JOIN LATERAL (SELECT m.expires_at IS NULL OR m.pinned OR m.expires_at > now() AS visible FROM memories m
                      WHERE m.agent_id = %(agent_id)s AND m.memory_id = ordered.memory_id AND ordered.firmness = 3
                        FOR NO KEY UPDATE) AS stood ON true
  LEFT JOIN LATERAL (SELECT m.expires_at IS NULL OR m.pinned OR m.expires_at > now() AS visible FROM memories m
                      WHERE m.agent_id = %(agent_id)s AND m.memory_id = ordered.memory_id AND ordered.firmness = 1
                        FOR KEY SHARE) AS stayed ON true;
