-- name: ending_session_rows
-- Locks a session's working memory, and returns how it ends. A current memory that is important or was used is promoted
-- to the episodic layer, with that layer's TTL, together with what it superseded. The others expire.
WITH RECURSIVE ending AS (
    SELECT m.memory_id, m.memory_type, m.ttl_seconds, m.expires_at, m.superseded_by, life.seconds,
           m.superseded_by IS NULL
           AND (m.relevance_score >= %(importance)s OR coalesce(u.access_count, 0) >= %(uses)s) AS promoted
      FROM memories m
      LEFT JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = m.memory_id
     CROSS JOIN (SELECT nullif(coalesce((SELECT (s.layers -> 'episodic' ->> 'ttl_seconds')::bigint
                                           FROM agent_settings s WHERE s.agent_id = %(agent_id)s),
                                        %(episodic_ttl_seconds)s::bigint), 0) AS seconds) AS life
     WHERE m.agent_id = %(agent_id)s AND m.session_id = %(session_id)s AND m.memory_type = 'working' AND NOT m.pinned
       AND (m.expires_at IS NULL OR m.expires_at > now())
     ORDER BY m.memory_id FOR NO KEY UPDATE OF m),
-- The successors of each memory, direct and indirect; UNION ends a cycle.
line AS (
    SELECT memory_id, superseded_by AS successor FROM ending WHERE superseded_by IS NOT NULL
     UNION
    SELECT line.memory_id, m.superseded_by
      FROM line JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = line.successor
     WHERE m.superseded_by IS NOT NULL),
past AS (
    SELECT DISTINCT line.memory_id
      FROM line JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = line.successor
      LEFT JOIN ending ON ending.memory_id = line.successor
     WHERE m.superseded_by IS NULL AND is_live(m.expires_at, m.pinned)
       AND (ending.promoted OR m.memory_type <> 'working' OR m.pinned)),
decided AS (
    SELECT ending.*, ending.promoted OR past.memory_id IS NOT NULL AS lasts, now() AS ended_at,
           now() + make_interval(secs => ending.seconds) AS promoted_to
      FROM ending LEFT JOIN past ON past.memory_id = ending.memory_id)
SELECT memory_id, promoted, lasts, decided.memory_type, decided.ttl_seconds, decided.expires_at,
       CASE WHEN lasts THEN 'episodic' ELSE memory_type END AS next_type,
       CASE WHEN lasts THEN seconds ELSE ttl_seconds END AS next_ttl_seconds,
       CASE WHEN lasts THEN promoted_to ELSE ended_at END AS next_expires_at
  FROM decided
 ORDER BY memory_id;

-- name: end_session_rows
-- Ends locked working memories; returns the history entries.
WITH ended AS (
    UPDATE memories m
       SET memory_type = decided.next_type, ttl_seconds = decided.next_ttl_seconds, expires_at = decided.next_expires_at,
           updated_at = now(), version = m.version + 1
      FROM unnest(%(memory_ids)s::uuid[], %(promoted)s::boolean[], %(lasting)s::boolean[], %(types)s::text[],
                  %(ttls)s::bigint[], %(expiries)s::timestamptz[], %(next_types)s::text[], %(next_ttls)s::bigint[],
                  %(next_expiries)s::timestamptz[])
           AS decided (memory_id, promoted, lasts, memory_type, ttl_seconds, expires_at, next_type, next_ttl_seconds,
                       next_expires_at)
     WHERE m.agent_id = %(agent_id)s AND m.memory_id = decided.memory_id
    RETURNING m.memory_id, m.task_id, m.version, decided.promoted, decided.lasts, decided.memory_type AS type_before,
              decided.ttl_seconds AS ttl_before, decided.expires_at AS expiry_before, m.memory_type, m.ttl_seconds,
              m.expires_at)
SELECT memory_id, task_id, version, promoted, lasts,
       jsonb_build_object('memory_type', type_before, 'ttl_seconds', ttl_before, 'expires_at', expiry_before) AS before,
       jsonb_build_object('memory_type', memory_type, 'ttl_seconds', ttl_seconds, 'expires_at', expires_at) AS after
  FROM ended
 ORDER BY memory_id;
