-- name: reserve_llm_usage
-- Reserves a request's usage for today (0: no limit), which is within the budget by itself; no row if it would exceed it
-- together with the others.
INSERT INTO llm_usage AS u (agent_id, day, calls, tokens, cost_micros)
VALUES (%(agent_id)s, (now() AT TIME ZONE 'UTC')::date, 1, %(tokens)s::bigint, %(cost_micros)s::numeric)
    ON CONFLICT (agent_id, day) DO UPDATE
   SET calls = u.calls + 1, tokens = u.tokens + EXCLUDED.tokens, cost_micros = u.cost_micros + EXCLUDED.cost_micros
 WHERE (%(most_tokens)s::bigint = 0 OR u.tokens + EXCLUDED.tokens <= %(most_tokens)s::bigint)
   AND (%(most_micros)s::numeric = 0 OR u.cost_micros + EXCLUDED.cost_micros <= %(most_micros)s::numeric)
RETURNING u.day;

-- name: note_llm_refusal
-- Counts a request that the budget refused.
INSERT INTO llm_usage AS u (agent_id, day, refused)
VALUES (%(agent_id)s, (now() AT TIME ZONE 'UTC')::date, 1)
    ON CONFLICT (agent_id, day) DO UPDATE SET refused = u.refused + 1;

-- name: correct_llm_usage
-- Adds the difference between actual and reserved usage to a day's account.
UPDATE llm_usage SET tokens = tokens + %(tokens)s, cost_micros = cost_micros + %(cost_micros)s
 WHERE agent_id = %(agent_id)s AND day = %(day)s;

-- name: llm_usage_today
-- Returns the agent's usage of today.
SELECT calls, refused, tokens, cost_micros FROM llm_usage
 WHERE agent_id = %(agent_id)s AND day = (now() AT TIME ZONE 'UTC')::date;

-- name: sweep_llm_usage
-- Deletes old accounts of all agents.
DELETE FROM llm_usage WHERE day < (now() AT TIME ZONE 'UTC')::date - %(days)s::integer RETURNING agent_id;

-- name: model_settings
-- Returns the agent's settings for models.
SELECT models FROM agent_settings WHERE agent_id = %(agent_id)s;

-- name: summary_rules
-- The rules for session summaries: the agent's own, else the service's; null if the provider is `none`.
(SELECT CASE WHEN held.rules ->> 'provider' <> 'none' THEN held.rules END
   FROM (SELECT coalesce((SELECT s.models -> 'summaries' FROM agent_settings s WHERE s.agent_id = %(agent_id)s),
                         %(service_rules)s::jsonb) AS rules) AS held);

-- name: set_model_settings
-- Replaces the agent's settings for models; the row is locked already.
UPDATE agent_settings SET models = %(models)s, updated_at = now() WHERE agent_id = %(agent_id)s;

-- name: rules_in_force
-- Returns the summary rules of new memories.
SELECT {rules} AS summaries;

-- name: enqueue_for_models
-- Enqueues new memories for the work that is switched on; returns each work and session. Superseded memories are not
-- enqueued for facts.
INSERT INTO llm_queue (agent_id, memory_id, work, session_id, user_turn)
SELECT %(agent_id)s, new.memory_id, new.work, new.session_id, new.user_turn
  FROM unnest(%(memory_ids)s::uuid[], %(works)s::text[], %(session_ids)s::text[], %(user_turns)s::boolean[])
       AS new (memory_id, work, session_id, user_turn)
 CROSS JOIN (SELECT (SELECT (s.models ->> 'extract_facts')::boolean FROM agent_settings s
                      WHERE s.agent_id = %(agent_id)s) AS extract_facts, {rules} AS summaries) AS wish
 WHERE CASE new.work
       WHEN 'facts' THEN coalesce(wish.extract_facts, %(extract_facts)s)
                     AND EXISTS (SELECT FROM memories m WHERE m.agent_id = %(agent_id)s
                                    AND m.memory_id = new.memory_id AND m.superseded_by IS NULL)
       ELSE wish.summaries IS NOT NULL END
    ON CONFLICT (agent_id, work, memory_id) DO UPDATE SET failing_since = NULL, tries = 0
RETURNING work, session_id;

-- name: lock_session
-- Takes the advisory lock of a session's summaries. Take it before other locks, so that later reads see committed work.
SELECT pg_advisory_xact_lock(
    hashtextextended(concat_ws(chr(31), 'agentcore session', %(agent_id)s::text, %(session_id)s::text), 0));

-- name: enqueue_session
-- Enqueues the messages of a session that no summary covers.
INSERT INTO llm_queue (agent_id, memory_id, work, session_id, user_turn)
SELECT m.agent_id, m.memory_id, 'summary', m.session_id,
       is_user_turn(m.kind, m.metadata, m.speaker)
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.session_id = %(session_id)s AND m.memory_type = 'episodic'
   AND NOT m.flagged AND m.superseded_by IS NULL AND (m.metadata -> 'compaction' ? 'until') IS NOT TRUE
   AND is_live(m.expires_at, m.pinned)
   AND NOT EXISTS (SELECT FROM memory_links l
                     JOIN memories s ON s.agent_id = %(agent_id)s AND s.memory_id = l.source_id
                    WHERE l.agent_id = %(agent_id)s AND l.target_id = m.memory_id AND l.relation = 'summarises'
                      AND (s.kind = 'session' OR s.metadata -> 'compaction' ? 'until'))
 ORDER BY m.memory_id
    ON CONFLICT DO NOTHING;

-- name: dequeue_session_messages
-- Dequeues everything that is pending for session summaries.
DELETE FROM llm_queue WHERE agent_id = %(agent_id)s AND work = 'summary';

-- name: count_pending_of_sessions
-- Returns per session the pending messages and user turns. Those enqueued `again` are due anyway and not counted.
SELECT q.session_id, count(*) FILTER (WHERE NOT q.again) AS messages,
       count(*) FILTER (WHERE q.user_turn AND NOT q.again) AS user_turns,
       max(q.queued_at) AS latest_at
  FROM llm_queue q
 WHERE q.agent_id = %(agent_id)s AND q.work = 'summary' AND q.session_id = ANY(%(session_ids)s)
 GROUP BY q.session_id
 ORDER BY q.session_id;

-- name: pending_messages
-- Returns the pending messages of a session in time order: all, only those enqueued `again`, or those in one of these
-- time spans. A span's start may be null.
SELECT m.memory_id, m.version, m.timestamp, m.speaker, m.content, m.relevance_score, m.user_id, m.namespace,
       m.superseded_by, m.content_hash, q.queued_at, q.failing_since
  FROM llm_queue q
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = q.memory_id
 WHERE q.agent_id = %(agent_id)s AND q.work = 'summary' AND q.session_id = %(session_id)s
   AND (q.again OR NOT %(only_again)s)
   AND (%(ends)s::timestamptz[] IS NULL
        OR EXISTS (SELECT FROM unnest(%(begins)s::timestamptz[], %(ends)s::timestamptz[]) AS told (began, ended)
                    WHERE (told.began IS NULL OR told.began <= m.timestamp) AND m.timestamp <= told.ended))
   AND is_live(m.expires_at, m.pinned)
 ORDER BY m.timestamp, m.memory_id LIMIT %(limit)s;

-- name: compactions
-- Returns the caller's own summaries of parts of a session in time order.
SELECT m.memory_id, m.version, m.content, m.metadata -> 'compaction' AS compaction
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.session_id = %(session_id)s AND m.metadata -> 'compaction' ? 'until'
   AND m.superseded_by IS NULL AND is_live(m.expires_at, m.pinned)
 ORDER BY m.timestamp, m.memory_id;

-- name: pending_for_facts
-- Returns current memories pending for fact extraction, of one user and namespace, since the request decides whose the
-- facts are: the user and namespace pending longest. Memories that failed alone come last, and alone. Only the head of
-- the queue is read, and one row per memory, whichever statistics the planner has of a new agent.
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
     WHERE m.superseded_by IS NULL AND is_live(m.expires_at, m.pinned)),
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

-- name: record_llm_failure
-- Records a failed model request: since when, and for requests with one memory how often.
WITH held AS (
    SELECT q.memory_id FROM llm_queue q
     WHERE q.agent_id = %(agent_id)s AND q.work = %(work)s
       AND q.memory_id = ANY (%(memory_ids)s::uuid[])
     ORDER BY q.memory_id FOR UPDATE)
UPDATE llm_queue q SET failing_since = coalesce(q.failing_since, moment.failed_at), tries = q.tries + %(tries)s
  FROM (SELECT now() AS failed_at) AS moment
 WHERE q.agent_id = %(agent_id)s AND q.work = %(work)s AND q.memory_id = ANY (ARRAY (SELECT memory_id FROM held));

-- name: dequeue_unchanged
-- Dequeues memories that still have this version, and locks them against changes until the commit.
WITH held AS (
    SELECT m.memory_id FROM unnest(%(memory_ids)s::uuid[], %(versions)s::integer[]) AS named (memory_id, version)
      JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = named.memory_id AND m.version = named.version
     ORDER BY m.memory_id FOR SHARE OF m)
DELETE FROM llm_queue q
 WHERE q.agent_id = %(agent_id)s AND q.work = %(work)s AND q.memory_id = ANY (ARRAY (SELECT memory_id FROM held))
RETURNING q.memory_id;

-- name: llm_work_of_agents
-- Returns pending work of all agents: by session for summaries, without session for facts. Rules are null if the agent
-- has none; they are read once for all, since a lookup per session cost more than the whole queue.
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
