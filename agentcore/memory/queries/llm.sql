-- name: reserve_llm_usage
-- Put a request on the agent's account of today, unless that would pass its budget (0: none); no row then.
INSERT INTO llm_usage AS u (agent_id, day, calls, tokens, cost_micros)
SELECT %(agent_id)s, (now() AT TIME ZONE 'UTC')::date, 1, %(tokens)s::bigint, %(cost_micros)s::numeric
 WHERE (%(most_tokens)s::bigint = 0 OR %(tokens)s::bigint <= %(most_tokens)s::bigint)
   AND (%(most_micros)s::numeric = 0 OR %(cost_micros)s::numeric <= %(most_micros)s::numeric)
    ON CONFLICT (agent_id, day) DO UPDATE
   SET calls = u.calls + 1, tokens = u.tokens + EXCLUDED.tokens, cost_micros = u.cost_micros + EXCLUDED.cost_micros
 WHERE (%(most_tokens)s::bigint = 0 OR u.tokens + EXCLUDED.tokens <= %(most_tokens)s::bigint)
   AND (%(most_micros)s::numeric = 0 OR u.cost_micros + EXCLUDED.cost_micros <= %(most_micros)s::numeric)
RETURNING u.day;

-- name: note_llm_refusal
-- Count a request that the budget did not allow.
INSERT INTO llm_usage AS u (agent_id, day, refused)
VALUES (%(agent_id)s, (now() AT TIME ZONE 'UTC')::date, 1)
    ON CONFLICT (agent_id, day) DO UPDATE SET refused = u.refused + 1;

-- name: settle_llm_usage
-- Put a day's account right by what a request took more, or less, than was reserved.
UPDATE llm_usage SET tokens = tokens + %(tokens)s, cost_micros = cost_micros + %(cost_micros)s
 WHERE agent_id = %(agent_id)s AND day = %(day)s;

-- name: llm_usage_today
-- The agent's account of today.
SELECT calls, refused, tokens, cost_micros FROM llm_usage
 WHERE agent_id = %(agent_id)s AND day = (now() AT TIME ZONE 'UTC')::date;

-- name: sweep_llm_usage
-- Remove the accounts of days long gone, all agents together.
DELETE FROM llm_usage WHERE day < (now() AT TIME ZONE 'UTC')::date - %(days)s::integer RETURNING agent_id;

-- name: model_wishes
-- What the agent wishes of models.
SELECT models FROM agent_settings WHERE agent_id = %(agent_id)s;

-- name: summary_rules
-- How the agent's sessions are summarised: by its own rules, else the service's; null: not in stretches.
(SELECT CASE WHEN held.rules ->> 'provider' <> 'none' THEN held.rules END
   FROM (SELECT coalesce((SELECT s.models -> 'summaries' FROM agent_settings s WHERE s.agent_id = %(agent_id)s),
                         %(service_rules)s::jsonb) AS rules) AS held);

-- name: set_model_wishes
-- What the agent wishes of models from now on; the row is held already.
UPDATE agent_settings SET models = %(models)s, updated_at = now() WHERE agent_id = %(agent_id)s;

-- name: queue_llm_work
-- Let new memories wait for what the agent wishes of them; one row for each kind of work and session that there is. From what
-- holds no longer no facts are read.
WITH wish AS (
    SELECT (SELECT (s.models ->> 'extract_facts')::boolean FROM agent_settings s
             WHERE s.agent_id = %(agent_id)s) AS extract_facts, {rules} AS summaries),
queued AS (
    INSERT INTO llm_queue (agent_id, memory_id, work, session_id, user_turn)
    SELECT %(agent_id)s, new.memory_id, new.work, new.session_id, new.user_turn
      FROM unnest(%(memory_ids)s::uuid[], %(works)s::text[], %(session_ids)s::text[], %(user_turns)s::boolean[])
           AS new (memory_id, work, session_id, user_turn)
     CROSS JOIN wish
     WHERE CASE new.work
           WHEN 'facts' THEN coalesce(wish.extract_facts, %(extract_facts)s)
                         AND EXISTS (SELECT FROM memories m WHERE m.agent_id = %(agent_id)s
                                        AND m.memory_id = new.memory_id AND m.superseded_by IS NULL)
           ELSE wish.summaries IS NOT NULL END
        ON CONFLICT (agent_id, work, memory_id) DO UPDATE SET failing_since = NULL, tries = 0
    RETURNING work, session_id)
SELECT DISTINCT queued.work, queued.session_id, wish.summaries FROM queued CROSS JOIN wish;

-- name: claim_session
-- One at a time lets what was said in a session wait, or tells of it. Asked before all else: what comes then sees it done.
SELECT pg_advisory_xact_lock(
    hashtextextended(concat_ws(chr(31), 'agentcore session', %(agent_id)s::text, %(session_id)s::text), 0));

-- name: queue_session
-- Enqueues the messages of a session that no summary contains.
INSERT INTO llm_queue (agent_id, memory_id, work, session_id, user_turn)
SELECT m.agent_id, m.memory_id, 'summary', m.session_id,
       m.provenance ->> 'form' = 'interaction'
       OR lower(coalesce(m.metadata ->> 'role', m.speaker, 'user')) IN ('user', 'human')
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.session_id = %(session_id)s AND m.memory_type = 'episodic'
   AND NOT m.flagged AND m.superseded_by IS NULL AND (m.metadata -> 'compaction' ? 'until') IS NOT TRUE
   AND (m.expires_at IS NULL OR m.pinned OR m.expires_at > now())
   AND NOT EXISTS (SELECT FROM memory_links l
                     JOIN memories s ON s.agent_id = %(agent_id)s AND s.memory_id = l.source_id
                    WHERE l.agent_id = %(agent_id)s AND l.target_id = m.memory_id AND l.relation = 'summarises'
                      AND (s.provenance ->> 'form' = 'session' OR s.metadata -> 'compaction' ? 'until'))
 ORDER BY m.memory_id
    ON CONFLICT DO NOTHING;

-- name: leave_queue_for_summaries
-- Nothing of the agent waits for a summary of its session any more.
DELETE FROM llm_queue WHERE agent_id = %(agent_id)s AND work = 'summary';

-- name: waiting_of_sessions
-- How much of these sessions waits for its summary; what waits again is due by itself.
SELECT q.session_id, count(*) FILTER (WHERE NOT q.again) AS messages,
       count(*) FILTER (WHERE q.user_turn AND NOT q.again) AS user_turns,
       max(q.queued_at) AS latest_at
  FROM llm_queue q
 WHERE q.agent_id = %(agent_id)s AND q.work = 'summary' AND q.session_id = ANY(%(session_ids)s)
 GROUP BY q.session_id
 ORDER BY q.session_id;

-- name: waiting_stretch
-- What of a session waits for its summary, in the order of its times; of all of it, of what waits again, or of what was
-- said in one of these times, the first of which may begin with the session.
SELECT m.memory_id, m.version, m.timestamp, m.speaker, m.content, m.relevance_score, m.user_id, m.namespace,
       m.superseded_by, m.content_hash, q.queued_at, q.failing_since
  FROM llm_queue q
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = q.memory_id
 WHERE q.agent_id = %(agent_id)s AND q.work = 'summary' AND q.session_id = %(session_id)s
   AND (q.again OR NOT %(only_again)s)
   AND (%(ends)s::timestamptz[] IS NULL
        OR EXISTS (SELECT FROM unnest(%(begins)s::timestamptz[], %(ends)s::timestamptz[]) AS told (began, ended)
                    WHERE (told.began IS NULL OR told.began <= m.timestamp) AND m.timestamp <= told.ended))
   AND (m.expires_at IS NULL OR m.pinned OR m.expires_at > now())
 ORDER BY m.timestamp, m.memory_id LIMIT %(limit)s;

-- name: compactions
-- The caller's own summaries of parts of a session, in the order of their times.
SELECT m.memory_id, m.version, m.content, m.metadata -> 'compaction' AS compaction
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.session_id = %(session_id)s AND m.metadata -> 'compaction' ? 'until'
   AND m.superseded_by IS NULL AND (m.expires_at IS NULL OR m.pinned OR m.expires_at > now())
 ORDER BY m.timestamp, m.memory_id;

-- name: waiting_for_facts
-- Memories that hold and wait to be read for facts, of the user and namespace of the one that waits longest: whose a fact
-- is nobody but the request tells. What failed by itself comes last, and alone. The line may be long: only its head is
-- read, and of each memory in it one row, whatever the planner knows of a new agent.
WITH head AS MATERIALIZED (
    SELECT q.memory_id, q.tries, q.queued_at, q.failing_since FROM llm_queue q
     WHERE q.agent_id = %(agent_id)s AND q.work = 'facts'
     ORDER BY q.tries, q.queued_at, q.memory_id LIMIT %(head)s),
holding AS MATERIALIZED (
    SELECT head.queued_at, head.failing_since, head.tries, m.*
      FROM head
     CROSS JOIN LATERAL (SELECT * FROM memories h
                          WHERE h.agent_id = %(agent_id)s AND h.memory_id BETWEEN head.memory_id AND head.memory_id
                          ORDER BY h.memory_id LIMIT 1) AS m
     WHERE m.superseded_by IS NULL AND (m.expires_at IS NULL OR m.pinned OR m.expires_at > now())),
first AS (
    SELECT memory_id, tries, user_id, namespace FROM holding ORDER BY tries, queued_at, memory_id LIMIT 1)
SELECT m.memory_id, m.version, m.timestamp, m.speaker, m.content, m.relevance_score, m.user_id, m.namespace,
       m.session_id, m.task_id, m.expires_at, m.pinned, m.provenance, m.queued_at, m.failing_since, m.tries,
       (SELECT count(*) FROM (SELECT FROM llm_queue w WHERE w.agent_id = %(agent_id)s AND w.work = 'facts'
                               LIMIT %(limit)s + 1) AS bounded) AS waiting
  FROM first
  JOIN holding m ON CASE first.tries WHEN 0 THEN m.tries = 0 ELSE m.memory_id = first.memory_id END
 WHERE m.user_id IS NOT DISTINCT FROM first.user_id AND m.namespace IS NOT DISTINCT FROM first.namespace
 ORDER BY m.queued_at, m.memory_id LIMIT %(limit)s;

-- name: note_llm_failure
-- A model was asked about these in vain: since when, and how often of each by itself.
WITH held AS (
    SELECT q.memory_id FROM llm_queue q
     WHERE q.agent_id = %(agent_id)s AND q.work = %(work)s
       AND q.memory_id = ANY (%(memory_ids)s::uuid[])
     ORDER BY q.memory_id FOR UPDATE)
UPDATE llm_queue q SET failing_since = coalesce(q.failing_since, now()), tries = q.tries + %(tries)s
 WHERE q.agent_id = %(agent_id)s AND q.work = %(work)s AND q.memory_id = ANY (ARRAY (SELECT memory_id FROM held));

-- name: claim_llm_work
-- Take memories out of what waits, those that still stand in this version; nobody changes them before the end.
WITH held AS (
    SELECT m.memory_id FROM unnest(%(memory_ids)s::uuid[], %(versions)s::integer[]) AS named (memory_id, version)
      JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = named.memory_id AND m.version = named.version
     ORDER BY m.memory_id FOR SHARE OF m)
DELETE FROM llm_queue q
 WHERE q.agent_id = %(agent_id)s AND q.work = %(work)s AND q.memory_id = ANY (ARRAY (SELECT memory_id FROM held))
RETURNING q.memory_id;

-- name: llm_work_of_agents
-- Whose memories wait for a model, all agents together: a session's, or for facts no session's. Rules are null where the
-- agent has none of its own; all of them are read once, since one look for each session cost more than the whole queue.
WITH waiting AS (
    SELECT q.agent_id, q.work, CASE q.work WHEN 'summary' THEN q.session_id END AS session_id,
           count(*) FILTER (WHERE NOT q.again) AS messages,
           count(*) FILTER (WHERE q.user_turn AND NOT q.again) AS user_turns, max(q.queued_at) AS latest_at,
           bool_or(q.again) AS again
      FROM llm_queue q
     GROUP BY q.agent_id, q.work, CASE q.work WHEN 'summary' THEN q.session_id END),
own AS MATERIALIZED (
    SELECT s.agent_id, s.models -> 'summaries' AS summaries FROM agent_settings s WHERE s.models ? 'summaries')
SELECT w.*, own.summaries
  FROM waiting w LEFT JOIN own ON own.agent_id = w.agent_id
 ORDER BY w.agent_id, w.work, w.session_id;
