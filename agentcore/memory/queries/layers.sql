-- name: agent_rules
-- Returns the agent's own layer rules.
SELECT layers FROM agent_settings WHERE agent_id = %(agent_id)s;

-- name: lock_agent_rules
-- Locks and returns the agent's own layer rules; creates the row if necessary.
INSERT INTO agent_settings (agent_id, updated_at) VALUES (%(agent_id)s, now())
    ON CONFLICT (agent_id) DO UPDATE SET updated_at = EXCLUDED.updated_at
RETURNING layers;

-- name: set_agent_rules
-- Replaces the agent's layer rules.
UPDATE agent_settings SET layers = %(layers)s, updated_at = now() WHERE agent_id = %(agent_id)s;

-- name: renew_memory
-- Restarts a memory's TTL; a no-op without TTL, or if less than 5 percent of it has passed. Creates no version and no
-- history entry: the content is unchanged.
WITH held AS (
    SELECT memory_id, version, task_id, expires_at, now() + make_interval(secs => ttl_seconds) AS renewed_to,
           now() + make_interval(secs => ttl_seconds) * 0.95 AS due_at
      FROM memories
     WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s
       AND is_live(expires_at, pinned)
       FOR NO KEY UPDATE),
renewed AS (
    UPDATE memories m SET expires_at = held.renewed_to
      FROM held
     WHERE m.agent_id = %(agent_id)s AND m.memory_id = held.memory_id
       AND held.expires_at <= held.due_at)
SELECT version, task_id FROM held;

-- name: lock_used
-- Locks and returns memories that were used often enough to restart their TTL. Locked memories, for example by a prune,
-- are skipped until their next use: waiting while holding usage locks could deadlock.
SELECT m.memory_id, later.extended_to, jsonb_build_object('expires_at', m.expires_at) AS before,
       jsonb_build_object('expires_at', later.extended_to) AS after
  FROM unnest(%(memory_ids)s::uuid[], %(moments)s::timestamptz[]) AS used (memory_id, moment)
  JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = used.memory_id
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = used.memory_id
  LEFT JOIN agent_settings s ON s.agent_id = %(agent_id)s
 CROSS JOIN LATERAL (
       SELECT coalesce((s.layers -> m.memory_type ->> 'extend_after_uses')::integer,
                       (%(extend_after_uses)s::jsonb ->> m.memory_type)::integer, 0) AS uses) AS needed
 CROSS JOIN LATERAL (SELECT now() + make_interval(secs => m.ttl_seconds) AS extended_to) AS later
 WHERE m.ttl_seconds IS NOT NULL AND NOT m.pinned AND m.expires_at > used.moment
   AND needed.uses > 0 AND u.uses_in_life >= needed.uses
 ORDER BY m.memory_id FOR NO KEY UPDATE OF m SKIP LOCKED;

-- name: extend_expiry
-- Sets the expiry of locked memories. The version is unchanged.
UPDATE memories m SET expires_at = due.extended_to
  FROM unnest(%(memory_ids)s::uuid[], %(moments)s::timestamptz[]) AS due (memory_id, extended_to)
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = due.memory_id;

-- name: restart_use_count
-- Counts the uses of memories from now on.
UPDATE memory_usage SET uses_in_life = 0
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]);
