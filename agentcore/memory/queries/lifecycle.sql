-- name: pruning_candidates
-- Everything a pruning strategy decides on, of one layer.
SELECT m.memory_id, m.version, m.timestamp, m.relevance_score::double precision AS relevance_score, m.pinned,
       coalesce(u.access_count, 0) AS access_count, u.last_accessed
  FROM memories m
  LEFT JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = m.memory_id
 WHERE m.agent_id = %(agent_id)s AND m.memory_type = %(memory_type)s
   AND (m.expires_at IS NULL OR m.pinned OR m.expires_at > now());

-- name: archive_rows
-- Memories whole, as they go to the archive.
SELECT m.*, coalesce(u.access_count, 0) AS access_count, u.last_accessed,
       (SELECT coalesce(jsonb_agg(to_jsonb(h) ORDER BY h.change_id), '[]') FROM memory_history h
         WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id) AS history,
       (SELECT coalesce(jsonb_agg(to_jsonb(l)), '[]') FROM memory_links l
         WHERE l.agent_id = %(agent_id)s AND (l.source_id = m.memory_id OR l.target_id = m.memory_id)) AS links
  FROM memories m
  LEFT JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = m.memory_id
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: delete_archived_version
-- Remove a memory only in the version that was archived, and never a pinned one.
DELETE FROM memories
 WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s AND version = %(version)s AND NOT pinned
RETURNING memory_id, memory_type, task_id, term_keys;

-- name: insert_tombstone
-- Where a pruned memory's copy is.
INSERT INTO archived_memories (agent_id, memory_id, version, memory_type, object_key, sha256, size_bytes, reason)
VALUES (%(agent_id)s, %(memory_id)s, %(version)s, %(memory_type)s, %(object_key)s, %(sha256)s, %(size_bytes)s, %(reason)s)
    ON CONFLICT (agent_id, memory_id) DO UPDATE
       SET version = EXCLUDED.version, object_key = EXCLUDED.object_key, sha256 = EXCLUDED.sha256,
           size_bytes = EXCLUDED.size_bytes, reason = EXCLUDED.reason, archived_at = now();
