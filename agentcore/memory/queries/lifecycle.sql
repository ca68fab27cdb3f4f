-- name: pruning_candidates
-- Returns a layer's memories with the columns that pruning strategies need. Memories that supersede others count as
-- pinned: no other memory states their content.
SELECT m.memory_id, m.version, m.timestamp, m.relevance_score::double precision AS relevance_score,
       m.pinned OR EXISTS (SELECT FROM memories old WHERE old.agent_id = %(agent_id)s
                              AND old.superseded_by = m.memory_id) AS pinned,
       coalesce(u.access_count, 0) AS access_count, u.last_accessed
  FROM memories m
  LEFT JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = m.memory_id
 WHERE m.agent_id = %(agent_id)s AND m.memory_type = %(memory_type)s
   AND is_live(m.expires_at, m.pinned);

-- name: archive_rows
-- Returns memories with usage, history and links, as they are archived.
SELECT m.*, coalesce(u.access_count, 0) AS access_count, coalesce(u.uses_in_life, 0) AS uses_in_life,
       u.last_accessed,
       (SELECT coalesce(jsonb_agg(to_jsonb(h) ORDER BY h.change_id), '[]') FROM memory_history h
         WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id) AS history,
       (SELECT coalesce(jsonb_agg(to_jsonb(l)), '[]') FROM memory_links l
         WHERE l.agent_id = %(agent_id)s AND (l.source_id = m.memory_id OR l.target_id = m.memory_id)) AS links
  FROM memories m
  LEFT JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = m.memory_id
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: claim_layer
-- Tries to take the lock for pruning a layer.
SELECT pg_try_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'agentcore prune', %(agent_id)s::text,
                                                            %(memory_type)s::text), 0)) AS claimed;

-- name: lock_prunable
-- Locks and returns the memories that may be pruned, skipping locked ones. Accesses can still be counted.
SELECT m.memory_id FROM memories m
  JOIN unnest(%(memory_ids)s::uuid[], %(versions)s::integer[]) AS named (memory_id, version)
    ON named.memory_id = m.memory_id AND named.version = m.version
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND NOT m.pinned
   AND NOT EXISTS (SELECT FROM memories old WHERE old.agent_id = %(agent_id)s AND old.superseded_by = m.memory_id)
 ORDER BY m.memory_id
   FOR NO KEY UPDATE OF m SKIP LOCKED;

-- name: delete_versions
-- Deletes memories that still have the archived version and are not pinned. Locked ones are skipped: their transaction
-- links or counts them, and may be waiting for locks of this one.
WITH held AS (
    SELECT m.memory_id FROM memories m
      JOIN unnest(%(memory_ids)s::uuid[], %(versions)s::integer[]) AS named (memory_id, version)
        ON named.memory_id = m.memory_id AND named.version = m.version
     WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND NOT m.pinned
     ORDER BY m.memory_id
       FOR UPDATE OF m SKIP LOCKED)
DELETE FROM memories m
 USING held
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = held.memory_id
RETURNING m.memory_id, m.memory_type, m.task_id, m.term_keys;
