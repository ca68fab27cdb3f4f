-- name: going
-- These memories, their extracted facts, and all summaries derived from them, directly or through other summaries,
-- except callers' own.
SELECT unnest(%(memory_ids)s::uuid[]) AS memory_id
 UNION
SELECT f.memory_id FROM memories f
 WHERE f.agent_id = %(agent_id)s AND f.parent_memory_id = ANY (%(memory_ids)s::uuid[]) AND f.kind = 'fact'
 UNION
SELECT s.memory_id
  FROM going
  JOIN memory_links l ON l.agent_id = %(agent_id)s AND l.target_id = going.memory_id AND l.relation = 'summarises'
  JOIN memories s ON s.agent_id = %(agent_id)s AND s.memory_id = l.source_id
                 AND s.kind IN ('consolidation', 'session', 'period');

-- name: mark_summaries_stale
-- Marks stale the session summaries of memories that were changed, superseded or reinstated, and enqueues session
-- summaries among these memories for their period. One lookup if there are none.
WITH telling AS (
    SELECT s.memory_id AS summary_id, s.kind AS form, l.target_id
      FROM memory_links l
      JOIN memories s ON s.agent_id = %(agent_id)s AND s.memory_id = l.source_id
     WHERE l.agent_id = %(agent_id)s AND l.target_id = ANY (%(memory_ids)s::uuid[]) AND l.relation = 'summarises'
       AND s.kind IN ('session', 'period')
     ORDER BY s.memory_id
       FOR KEY SHARE OF s)
INSERT INTO llm_queue (agent_id, memory_id, work)
SELECT DISTINCT %(agent_id)s, CASE form WHEN 'session' THEN summary_id ELSE target_id END,
       CASE form WHEN 'session' THEN 'refresh' ELSE 'period' END
  FROM telling
 ORDER BY 2, 3
    ON CONFLICT DO NOTHING
RETURNING work;

-- name: mark_restored_stale
-- Enqueues restored session summaries for a refresh, and the sources of restored period summaries for their period:
-- sources may have changed meanwhile.
INSERT INTO llm_queue (agent_id, memory_id, work)
SELECT %(agent_id)s, stale.memory_id, stale.work
  FROM (SELECT m.memory_id, 'refresh' AS work FROM memories m
         WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.kind = 'session'
         UNION
        SELECT l.target_id, 'period'
          FROM memories m
          JOIN memory_links l ON l.agent_id = %(agent_id)s AND l.source_id = m.memory_id AND l.relation = 'summarises'
         WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.kind = 'period') AS stale
 ORDER BY 2, 3
    ON CONFLICT DO NOTHING
RETURNING work;

-- name: enqueue_for_period
-- Enqueues session summaries for their period, if the agent has period summaries.
INSERT INTO llm_queue (agent_id, memory_id, work)
SELECT m.agent_id, m.memory_id, 'period' FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[])
   AND (m.kind = 'session' OR m.metadata -> 'compaction' ? 'until' AND m.session_id IS NOT NULL)
   AND {rules} ->> 'period' IS NOT NULL
 ORDER BY 2
    ON CONFLICT DO NOTHING
RETURNING work;

-- name: end_of_page
-- Returns the last id of a page of memories after an id; no row on the last page.
SELECT m.memory_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id > %(after)s
 ORDER BY m.memory_id OFFSET %(limit)s - 1 LIMIT 1;

-- name: enqueue_page_for_period
-- The same for the memories between two ids; without `last_id`, up to the last.
INSERT INTO llm_queue (agent_id, memory_id, work)
SELECT m.agent_id, m.memory_id, 'period' FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id > %(after)s
   AND (%(last_id)s::uuid IS NULL OR m.memory_id <= %(last_id)s::uuid)
   AND (m.kind = 'session' OR m.metadata -> 'compaction' ? 'until' AND m.session_id IS NOT NULL)
   AND m.superseded_by IS NULL AND is_live(m.expires_at, m.pinned)
 ORDER BY 2
    ON CONFLICT DO NOTHING
RETURNING memory_id;

-- name: enqueue_again
-- Enqueues the remaining sources of summaries that are deleted together with these memories as due now, if the agent
-- has summary rules. All are locked already. Summaries that a caller deletes by id are not recreated.
INSERT INTO llm_queue (agent_id, memory_id, work, session_id, user_turn, again)
WITH RECURSIVE going AS ({going}),
wish AS (SELECT {rules} AS rules),
remaining AS (
    SELECT m.memory_id, s.kind AS form, m.session_id,
           is_user_turn(m.kind, m.metadata, m.speaker) AS user_turn
      FROM going
      JOIN memories s ON s.agent_id = %(agent_id)s AND s.memory_id = going.memory_id
                     AND s.kind IN ('session', 'period')
      JOIN memory_links told ON told.agent_id = %(agent_id)s AND told.source_id = s.memory_id
                            AND told.relation = 'summarises'
      JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = told.target_id
     CROSS JOIN wish
     WHERE s.memory_id <> ALL (%(memory_ids)s::uuid[]) AND m.memory_id NOT IN (SELECT memory_id FROM going)
       AND CASE s.kind
           WHEN 'period' THEN wish.rules ->> 'period' IS NOT NULL
           ELSE wish.rules IS NOT NULL AND m.memory_type = 'episodic' AND m.session_id IS NOT NULL END
     ORDER BY m.memory_id
       FOR KEY SHARE OF m)
SELECT DISTINCT %(agent_id)s, memory_id, CASE form WHEN 'session' THEN 'summary' ELSE 'period' END,
       CASE form WHEN 'session' THEN session_id END, form = 'session' AND user_turn, true
  FROM remaining
 ORDER BY 2, 3
    ON CONFLICT (agent_id, work, memory_id) DO UPDATE SET again = true;

-- name: pending_again
-- Returns the agent's work enqueued `again`, by session for messages; failed requests last.
SELECT q.work, q.session_id
  FROM llm_queue q
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = q.memory_id
 WHERE q.agent_id = %(agent_id)s AND q.again AND is_live(m.expires_at, m.pinned)
 GROUP BY q.work, q.session_id
 ORDER BY count(q.failing_since) > 0, q.work, q.session_id;

-- name: stale_summaries
-- Returns stale session summaries, longest stale first, failed requests last.
SELECT q.memory_id
  FROM llm_queue q
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = q.memory_id
 WHERE q.agent_id = %(agent_id)s AND q.work = 'refresh'
   AND is_live(m.expires_at, m.pinned)
 ORDER BY q.failing_since IS NOT NULL, q.queued_at, q.memory_id LIMIT %(limit)s;

-- name: pending_for_periods
-- Returns session summaries pending for their period, except `without`, with the periods that contain them; same order.
SELECT m.memory_id, m.timestamp, m.user_id, m.namespace, q.queued_at, q.failing_since,
       ARRAY(SELECT p.provenance ->> 'period' FROM memory_links l
               JOIN memories p ON p.agent_id = %(agent_id)s AND p.memory_id = l.source_id
                              AND p.kind = 'period'
              WHERE l.agent_id = %(agent_id)s AND l.target_id = m.memory_id AND l.relation = 'summarises') AS labels
  FROM llm_queue q
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = q.memory_id
 WHERE q.agent_id = %(agent_id)s AND q.work = 'period' AND q.memory_id <> ALL (%(without)s::uuid[])
   AND is_live(m.expires_at, m.pinned)
 ORDER BY q.failing_since IS NOT NULL, q.queued_at, q.memory_id LIMIT %(limit)s;

-- name: pending_summary
-- Returns a row if the memory is pending for this work, with the time of its first failed request.
SELECT failing_since FROM llm_queue WHERE agent_id = %(agent_id)s AND work = %(work)s AND memory_id = %(memory_id)s;

-- name: summary_row
-- Returns a summary, the operation that last changed its content, and the change after which it was created.
SELECT m.*, (SELECT h.operation FROM memory_history h
              WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id AND h.after ? 'content'
              ORDER BY h.change_id DESC LIMIT 1) AS reworded_by,
       coalesce((SELECT max(h.change_id) FROM memory_history h
                  WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id
                    AND h.operation IN ('summarise', 'refresh')), 0) AS made_at_change
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = %(memory_id)s
   AND is_live(m.expires_at, m.pinned);

-- name: source_columns
-- Columns of a summary's sources, with their former contents.
m.memory_id, m.version, m.timestamp, m.speaker, m.content, m.content_hash, m.relevance_score, m.user_id, m.namespace,
m.superseded_by, m.metadata, m.provenance,
coalesce((SELECT max(h.change_id) FROM memory_history h
           WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id
             AND (h.after ? 'content' OR h.after ? 'superseded_by')), 0) AS said_at_change,
ARRAY(SELECT h.before ->> 'content' FROM memory_history h
       WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id AND h.before ? 'content') AS said_before;

-- name: sources_of_summary
-- Returns the existing sources of a summary in time order.
SELECT {columns}
  FROM memories m
 WHERE m.agent_id = %(agent_id)s
   AND m.memory_id IN (SELECT l.target_id FROM memory_links l
                        WHERE l.agent_id = %(agent_id)s AND l.source_id = %(memory_id)s AND l.relation = 'summarises'
                        UNION
                       SELECT jsonb_array_elements_text(s.provenance -> 'sources')::uuid FROM memories s
                        WHERE s.agent_id = %(agent_id)s AND s.memory_id = %(memory_id)s)
   AND NOT m.flagged AND is_live(m.expires_at, m.pinned)
 ORDER BY m.timestamp, m.memory_id;

-- name: sessions_of_period
-- Returns the current session summaries of a user, namespace and time span, including callers' own.
SELECT {columns}
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_type = 'semantic'
   AND m.timestamp >= %(starts)s AND m.timestamp < %(ends)s
   AND m.user_id IS NOT DISTINCT FROM %(user_id)s::text AND m.namespace IS NOT DISTINCT FROM %(namespace)s::text
   AND (m.kind = 'session' OR m.metadata -> 'compaction' ? 'until' AND m.session_id IS NOT NULL)
   AND NOT m.flagged AND m.superseded_by IS NULL AND is_live(m.expires_at, m.pinned)
 ORDER BY m.timestamp, m.memory_id;

-- name: summary_of_period
-- Returns the summary of a user's period in a namespace.
SELECT m.memory_id
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_type = 'semantic'
   AND m.timestamp >= %(starts)s AND m.timestamp < %(ends)s
   AND m.user_id IS NOT DISTINCT FROM %(user_id)s::text AND m.namespace IS NOT DISTINCT FROM %(namespace)s::text
   AND m.kind = 'period' AND m.provenance ->> 'period' = %(label)s
   AND is_live(m.expires_at, m.pinned)
 ORDER BY m.memory_id LIMIT 1;

-- name: lock_periods
-- Takes the advisory lock for writing an agent's period summaries.
SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'agentcore periods', %(agent_id)s::text), 0));

-- name: dequeue_summaries
-- Dequeues memories; returns those that were pending.
DELETE FROM llm_queue
 WHERE agent_id = %(agent_id)s AND work = %(work)s AND memory_id = ANY (%(memory_ids)s::uuid[])
RETURNING memory_id;

-- name: update_summary_provenance
-- Updates provenance and time of a locked summary.
UPDATE memories SET provenance = %(provenance)s, timestamp = %(timestamp)s
 WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s;

-- name: expired_by_caller_ttl
-- Returns memories that expired at the TTL set by their caller and are sources of a summary.
SELECT m.memory_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.provenance ? 'ttl_seconds'
   AND m.expires_at <= now() AND NOT m.pinned
   AND EXISTS (SELECT FROM memory_links l
                WHERE l.agent_id = %(agent_id)s AND l.target_id = m.memory_id AND l.relation = 'summarises')
 ORDER BY m.memory_id;

-- name: summaries_of
-- Returns matching summaries of at least `least` of these memories, largest coverage first, except these memories.
SELECT s.memory_id, s.content, s.summary, s.timestamp, s.token_count, s.provenance -> 'sources' AS sources
  FROM (SELECT l.source_id, count(*) AS told FROM memory_links l
         WHERE l.agent_id = %(agent_id)s AND l.target_id = ANY (%(memory_ids)s::uuid[]) AND l.relation = 'summarises'
         GROUP BY l.source_id HAVING count(*) >= %(least)s) AS telling
  JOIN memories s ON s.agent_id = %(agent_id)s AND s.memory_id = telling.source_id
 WHERE s.kind IN ('consolidation', 'session', 'period') AND memory_matches(s, %(filter)s)
   AND s.memory_id <> ALL (%(memory_ids)s::uuid[])
 ORDER BY telling.told DESC, s.memory_id LIMIT %(limit)s;
