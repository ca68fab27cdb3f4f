-- name: insert_subjects
-- Inserts the subject keys of memories.
INSERT INTO memory_subjects (agent_id, subject_key, memory_id)
SELECT %(agent_id)s, stated.subject_key, stated.memory_id
  FROM unnest(%(subject_keys)s::bigint[], %(memory_ids)s::uuid[]) AS stated (subject_key, memory_id)
    ON CONFLICT DO NOTHING;

-- name: forget_subjects
-- Deletes the subject keys of memories, which then cannot be superseded.
DELETE FROM memory_subjects WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: stated_before
-- Returns current memories that share a subject key, newest per key, except those too long for one statement. A new agent has no statistics: planned for one row, each of its
-- rows would be read per key. LIMIT 1 keeps the join order, and BETWEEN with ORDER BY excludes other indexes: any that
-- begins with the agent looks as good to the planner.
SELECT m.memory_id, m.content, m.timestamp, m.speaker, m.user_id, m.session_id, m.task_id, m.namespace,
       m.flagged, m.memory_type, m.pinned, m.expires_at, m.version, m.created_at, m.superseded_by, m.valid_to,
       m.provenance -> 'supersede' IS DISTINCT FROM 'false' AS takes_places,
       m.kind IS NOT DISTINCT FROM 'fact' AS by_model, near.subject_key
  FROM (SELECT asked.key AS subject_key, stated.memory_id
          FROM unnest(%(subject_keys)s::bigint[]) AS asked (key)
         CROSS JOIN LATERAL (SELECT s.memory_id FROM memory_subjects s
                              WHERE s.agent_id = %(agent_id)s AND s.subject_key BETWEEN asked.key AND asked.key
                              ORDER BY s.subject_key DESC, s.memory_id DESC LIMIT %(limit)s) AS stated) AS near
 CROSS JOIN LATERAL (SELECT * FROM memories
                      WHERE agent_id = %(agent_id)s AND memory_id BETWEEN near.memory_id AND near.memory_id
                      ORDER BY memory_id LIMIT 1) AS m
 WHERE m.superseded_by IS NULL AND is_live(m.expires_at, m.pinned)
   AND length(m.content) <= %(max_chars)s;

-- name: stated_in_line
-- Returns the memories that these superseded, directly or indirectly.
WITH RECURSIVE line AS (
    SELECT named.memory_id, 0 AS steps FROM unnest(%(memory_ids)s::uuid[]) AS named (memory_id)
     UNION
    SELECT m.memory_id, line.steps + 1
      FROM line JOIN memories m ON m.agent_id = %(agent_id)s AND m.superseded_by = line.memory_id
     WHERE line.steps < %(most_steps)s)
SELECT m.memory_id, m.content, m.timestamp, m.speaker, m.user_id, m.session_id, m.task_id, m.namespace,
       m.flagged, m.memory_type, m.pinned, m.expires_at, m.version, m.created_at, m.superseded_by, m.valid_to,
       m.provenance -> 'supersede' IS DISTINCT FROM 'false' AS takes_places,
       m.kind IS NOT DISTINCT FROM 'fact' AS by_model
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id IN (SELECT memory_id FROM line WHERE steps > 0)
   AND is_live(m.expires_at, m.pinned) AND length(m.content) <= %(max_chars)s
 ORDER BY m.timestamp DESC, m.memory_id LIMIT %(limit)s;

-- name: lock_supersessions
-- Locks and returns the supersessions that are possible, in id order, so that two calls cannot deadlock. Excluded:
-- either memory changed since it was read, another supersedes the old one meanwhile, the old one is pinned, or only the
-- new one can expire. The successor must exist until the commit; locked successors are skipped without waiting.
SELECT m.memory_id, taken.successor, taken.moment
  FROM unnest(%(memory_ids)s::uuid[], %(versions)s::integer[], %(held_by)s::uuid[], %(successors)s::uuid[],
              %(successor_versions)s::integer[], %(moments)s::timestamptz[])
       AS taken (memory_id, version, held_by, successor, successor_version, moment)
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = taken.memory_id AND m.version = taken.version
  JOIN memories successor ON successor.agent_id = %(agent_id)s AND successor.memory_id = taken.successor
                         AND successor.version = coalesce(taken.successor_version, successor.version)
 WHERE m.superseded_by IS NOT DISTINCT FROM taken.held_by AND NOT m.pinned
   AND (successor.expires_at IS NULL OR successor.pinned OR m.expires_at IS NOT NULL)
 ORDER BY m.memory_id
   FOR NO KEY UPDATE OF m FOR KEY SHARE OF successor SKIP LOCKED;

-- name: supersede_memories
-- Supersedes locked memories. A separate statement: one that locks and updates together skips rows it has just updated.
UPDATE memories m
   SET superseded_by = held.successor, valid_to = held.moment, version = m.version + 1, updated_at = now()
  FROM unnest(%(memory_ids)s::uuid[], %(successors)s::uuid[], %(moments)s::timestamptz[])
       AS held (memory_id, successor, moment)
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = held.memory_id
RETURNING m.memory_id, m.task_id, m.version;

-- name: superseded_by
-- Locks and returns the memories that these superseded.
SELECT m.memory_id, m.content, m.timestamp, m.speaker, m.user_id, m.session_id, m.task_id, m.namespace,
       m.flagged, m.superseded_by, m.valid_to
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.superseded_by = ANY (%(memory_ids)s::uuid[])
   AND is_live(m.expires_at, m.pinned)
 ORDER BY m.memory_id FOR NO KEY UPDATE;

-- name: succeed_memory
-- Sets or clears the successor of a memory.
UPDATE memories
   SET superseded_by = %(superseded_by)s, valid_to = %(valid_to)s, version = version + 1, updated_at = now()
 WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s
RETURNING version;

-- name: reinstate_memory
-- Reinstates a superseded memory.
UPDATE memories SET superseded_by = NULL, valid_to = NULL
 WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s;

-- name: delete_superseding_links
-- Deletes the links by which others supersede the memory.
DELETE FROM memory_links
 WHERE agent_id = %(agent_id)s AND target_id = %(memory_id)s AND relation = %(relation)s;
