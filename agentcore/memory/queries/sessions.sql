-- name: end_session_rows
-- Ends a session's working memory. A current memory that is important or was used is promoted to the episodic layer,
-- with that layer's TTL, together with what it superseded. The others expire. Both are recorded in the history.
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
      FROM ending LEFT JOIN past ON past.memory_id = ending.memory_id),
ended AS (
    UPDATE memories m
       SET memory_type = CASE WHEN decided.lasts THEN 'episodic' ELSE m.memory_type END,
           ttl_seconds = CASE WHEN decided.lasts THEN decided.seconds ELSE m.ttl_seconds END,
           expires_at = CASE WHEN decided.lasts THEN decided.promoted_to ELSE decided.ended_at END,
           updated_at = decided.ended_at, version = m.version + 1
      FROM decided
     WHERE m.agent_id = %(agent_id)s AND m.memory_id = decided.memory_id
    RETURNING m.memory_id, m.task_id, m.version, decided.promoted, decided.lasts,
              jsonb_build_object('memory_type', decided.memory_type, 'ttl_seconds', decided.ttl_seconds,
                                 'expires_at', decided.expires_at) AS before,
              jsonb_build_object('memory_type', m.memory_type, 'ttl_seconds', m.ttl_seconds,
                                 'expires_at', m.expires_at) AS after),
told AS (
    INSERT INTO memory_history (agent_id, memory_id, operation, version, token_id, trace_id, before, after)
    SELECT %(agent_id)s, memory_id, CASE WHEN promoted THEN 'promote' ELSE 'end_session' END, version, %(token_id)s,
           %(trace_id)s, before, after
      FROM ended)
SELECT memory_id, task_id, promoted, lasts FROM ended;
