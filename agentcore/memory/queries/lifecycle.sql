-- name: pruning_candidates
-- Everything a pruning strategy decides on, of one layer. What supersedes others is as good as pinned: it is the only
-- one that says what they said.
SELECT m.memory_id, m.version, m.timestamp, m.relevance_score::double precision AS relevance_score,
       m.pinned OR EXISTS (SELECT FROM memories old WHERE old.agent_id = %(agent_id)s
                              AND old.superseded_by = m.memory_id) AS pinned,
       coalesce(u.access_count, 0) AS access_count, u.last_accessed
  FROM memories m
  LEFT JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = m.memory_id
 WHERE m.agent_id = %(agent_id)s AND m.memory_type = %(memory_type)s
   AND (m.expires_at IS NULL OR m.pinned OR m.expires_at > now());

-- name: archive_rows
-- Memories whole, as they go to the archive.
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
-- Whether this transaction alone prunes the layer now.
SELECT pg_try_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'agentcore prune', %(agent_id)s::text,
                                                            %(memory_type)s::text), 0)) AS claimed;

-- name: hold_prunable
-- Which of these may go, held until the transaction ends (accesses are still counted); what somebody changes just
-- now stays.
SELECT m.memory_id FROM memories m
  JOIN unnest(%(memory_ids)s::uuid[], %(versions)s::integer[]) AS named (memory_id, version)
    ON named.memory_id = m.memory_id AND named.version = m.version
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND NOT m.pinned
   AND NOT EXISTS (SELECT FROM memories old WHERE old.agent_id = %(agent_id)s AND old.superseded_by = m.memory_id)
 ORDER BY m.memory_id
   FOR NO KEY UPDATE OF m SKIP LOCKED;

-- name: delete_versions
-- Remove memories only in the version that was archived, and never a pinned one. What somebody ties to another or
-- counts just now stays: whoever does may wait for what is held already.
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
