-- name: insert_subjects
-- Of what memories state something.
INSERT INTO memory_subjects (agent_id, subject_key, memory_id)
SELECT %(agent_id)s, stated.subject_key, stated.memory_id
  FROM unnest(%(subject_keys)s::bigint[], %(memory_ids)s::uuid[]) AS stated (subject_key, memory_id)
    ON CONFLICT DO NOTHING;

-- name: forget_subjects
-- These memories state nothing any more that another could take the place of.
DELETE FROM memory_subjects WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: stated_before
-- Current memories that state something of one of these, and what was said last in these sessions before these
-- times: the newest of each, without what is too long to be one statement.
SELECT m.memory_id, m.content, m.timestamp, m.speaker, m.user_id, m.session_id, m.task_id, m.namespace,
       m.memory_type, m.pinned, m.expires_at, m.version, near.subject_key
  FROM (SELECT asked.key AS subject_key, stated.memory_id
          FROM unnest(%(subject_keys)s::bigint[]) AS asked (key)
         CROSS JOIN LATERAL (SELECT s.memory_id FROM memory_subjects s
                              WHERE s.agent_id = %(agent_id)s AND s.subject_key = asked.key
                              ORDER BY s.memory_id DESC LIMIT %(limit)s) AS stated
         UNION ALL
        SELECT NULL, said.memory_id
          FROM unnest(%(session_ids)s::text[], %(moments)s::timestamptz[]) AS asked (session_id, moment)
         CROSS JOIN LATERAL (SELECT m.memory_id FROM memories m
                              WHERE m.agent_id = %(agent_id)s AND m.session_id = asked.session_id
                                AND m.timestamp <= asked.moment
                                AND m.timestamp >= asked.moment - make_interval(secs => %(window_seconds)s)
                              ORDER BY m.timestamp DESC, m.memory_id DESC LIMIT %(session_limit)s) AS said) AS near
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = near.memory_id
 WHERE m.superseded_by IS NULL AND (m.expires_at IS NULL OR m.pinned OR m.expires_at > now())
   AND length(m.content) <= %(max_chars)s;

-- name: supersede_memories
-- Others take the places of these, unless one has already, they were changed since they were read, or would last
-- longer than what takes their place; held in id order, so that two calls never deadlock.
WITH held AS (
    SELECT m.memory_id, taken.superseded_by, taken.valid_to
      FROM unnest(%(memory_ids)s::uuid[], %(versions)s::integer[], %(successors)s::uuid[], %(moments)s::timestamptz[])
           AS taken (memory_id, version, superseded_by, valid_to)
      JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = taken.memory_id
                     AND m.version = taken.version
      JOIN memories successor ON successor.agent_id = %(agent_id)s AND successor.memory_id = taken.superseded_by
     WHERE m.superseded_by IS NULL AND NOT m.pinned
       AND (successor.expires_at IS NULL OR successor.pinned OR m.expires_at IS NOT NULL)
     ORDER BY m.memory_id
       FOR UPDATE OF m
)
UPDATE memories m
   SET superseded_by = held.superseded_by, valid_to = held.valid_to, version = m.version + 1, updated_at = now()
  FROM held
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = held.memory_id
RETURNING m.memory_id, m.task_id, m.version;

-- name: reinstate_memory
-- A superseded memory holds again.
UPDATE memories SET superseded_by = NULL, valid_to = NULL
 WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s;

-- name: delete_superseding_links
-- Nothing supersedes the memory any more.
DELETE FROM memory_links
 WHERE agent_id = %(agent_id)s AND target_id = %(memory_id)s AND relation = %(relation)s;
