-- name: end_session_rows
-- What a session left in working memory: what is important or was used becomes episodic, with that layer's time to
-- live; the rest is over. Either goes into its history.
WITH ending AS (
    SELECT m.memory_id, m.memory_type, m.expires_at, life.seconds,
           m.relevance_score >= %(importance)s OR coalesce(u.access_count, 0) >= %(uses)s AS lasts
      FROM memories m
      LEFT JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = m.memory_id
     CROSS JOIN (SELECT nullif(coalesce((SELECT (s.layers -> 'episodic' ->> 'ttl_seconds')::bigint
                                           FROM agent_settings s WHERE s.agent_id = %(agent_id)s),
                                        %(episodic_ttl_seconds)s::bigint), 0) AS seconds) AS life
     WHERE m.agent_id = %(agent_id)s AND m.session_id = %(session_id)s AND m.memory_type = 'working' AND NOT m.pinned
       AND (m.expires_at IS NULL OR m.expires_at > now())
     ORDER BY m.memory_id FOR NO KEY UPDATE OF m),
ended AS (
    UPDATE memories m
       SET memory_type = CASE WHEN ending.lasts THEN 'episodic' ELSE m.memory_type END,
           ttl_seconds = CASE WHEN ending.lasts THEN ending.seconds ELSE m.ttl_seconds END,
           expires_at = CASE WHEN ending.lasts THEN now() + make_interval(secs => ending.seconds) ELSE now() END,
           updated_at = now(), version = m.version + 1
      FROM ending
     WHERE m.agent_id = %(agent_id)s AND m.memory_id = ending.memory_id
    RETURNING m.memory_id, m.task_id, m.version, ending.lasts,
              jsonb_build_object('memory_type', ending.memory_type, 'expires_at', ending.expires_at) AS before,
              jsonb_build_object('memory_type', m.memory_type, 'expires_at', m.expires_at) AS after),
told AS (
    INSERT INTO memory_history (agent_id, memory_id, operation, version, token_id, trace_id, before, after)
    SELECT %(agent_id)s, memory_id, CASE WHEN lasts THEN 'promote' ELSE 'end_session' END, version, %(token_id)s,
           %(trace_id)s, before, after
      FROM ended)
SELECT memory_id, task_id, lasts FROM ended;
