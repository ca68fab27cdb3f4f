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

-- name: extend_used
-- Restarts the TTL and the use count of memories that were used often enough. The version is unchanged. Locked
-- memories, for example by a prune, are skipped until their next use: waiting while holding usage locks could deadlock.
WITH due AS (
    SELECT m.memory_id, m.expires_at, now() + make_interval(secs => m.ttl_seconds) AS extended_to
      FROM unnest(%(memory_ids)s::uuid[], %(moments)s::timestamptz[]) AS used (memory_id, moment)
      JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = used.memory_id
      JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = used.memory_id
      LEFT JOIN agent_settings s ON s.agent_id = %(agent_id)s
     CROSS JOIN LATERAL (
           SELECT coalesce((s.layers -> m.memory_type ->> 'extend_after_uses')::integer,
                           (%(extend_after_uses)s::jsonb ->> m.memory_type)::integer, 0) AS uses) AS needed
     WHERE m.ttl_seconds IS NOT NULL AND NOT m.pinned AND m.expires_at > used.moment
       AND needed.uses > 0 AND u.uses_in_life >= needed.uses
     ORDER BY m.memory_id FOR NO KEY UPDATE OF m SKIP LOCKED),
extended AS (
    UPDATE memories m SET expires_at = due.extended_to
      FROM due WHERE m.agent_id = %(agent_id)s AND m.memory_id = due.memory_id
    RETURNING m.memory_id, m.expires_at),
begun AS (
    UPDATE memory_usage u SET uses_in_life = 0
      FROM due WHERE u.agent_id = %(agent_id)s AND u.memory_id = due.memory_id)
INSERT INTO memory_history (agent_id, memory_id, operation, before, after)
SELECT %(agent_id)s, due.memory_id, 'extend', jsonb_build_object('expires_at', due.expires_at),
       jsonb_build_object('expires_at', extended.expires_at)
  FROM due JOIN extended USING (memory_id)
RETURNING memory_id;
