-- name: enqueue_job
-- Enqueues a job for the agent of the transaction, unless one with the same lock is pending.
SELECT enqueue_job(%(agent_id)s, %(name)s, %(ids)s, %(lock)s, %(not_before)s);

-- name: job_waits
-- Returns whether a job of the agent with this lock is pending; if so, it starts after this transaction.
SELECT job_waits(%(agent_id)s, %(lock)s) AS waits;

-- name: forget_jobs
-- Deletes all jobs of the agent.
SELECT forget_jobs(%(agent_id)s) AS forgotten;

-- name: await_enqueuers
-- Waits for the transactions that found this job pending, so that it sees their writes.
SELECT pg_advisory_xact_lock(hashtextextended(%(lock)s, 0));

-- name: layers_near_capacity
-- Returns the layers with a capacity below the agent's total count, a cheap upper bound of each layer's.
SELECT asked.layer, asked.capacity
  FROM (SELECT named.layer, coalesce((s.layers -> named.layer ->> 'capacity')::bigint, named.capacity) AS capacity
          FROM unnest(%(layers)s::text[], %(capacities)s::bigint[]) AS named (layer, capacity)
          LEFT JOIN agent_settings s ON s.agent_id = %(agent_id)s) AS asked
 WHERE CASE
       WHEN asked.capacity = 0 THEN false
       ELSE (SELECT coalesce(sum(held.memory_count), 0)
               FROM (SELECT t.memory_count FROM lexical_totals t WHERE t.agent_id = %(agent_id)s
                      UNION ALL
                     SELECT d.memory_count FROM lexical_deltas d WHERE d.agent_id = %(agent_id)s) AS held)
            > asked.capacity
       END
 ORDER BY asked.layer;

-- name: layer_is_over_capacity
-- Returns whether a layer has more memories than its capacity.
SELECT EXISTS (SELECT FROM memories m
                WHERE m.agent_id = %(agent_id)s AND m.memory_type = %(layer)s AND is_live(m.expires_at, m.pinned)
               OFFSET %(capacity)s) AS over;

-- name: agents_over_capacity
-- Returns the layers over capacity of all agents; the agent's own capacity overrides the service's.
SELECT t.agent_id, asked.layer
  FROM lexical_totals t
  LEFT JOIN agent_settings s ON s.agent_id = t.agent_id
 CROSS JOIN LATERAL (
       SELECT named.layer, coalesce((s.layers -> named.layer ->> 'capacity')::bigint, named.capacity) AS capacity
         FROM unnest(%(layers)s::text[], %(capacities)s::bigint[]) AS named (layer, capacity)) AS asked
 WHERE asked.capacity > 0 AND t.memory_count > asked.capacity
   AND EXISTS (SELECT FROM memories m
                WHERE m.agent_id = t.agent_id AND m.memory_type = asked.layer
                  AND is_live(m.expires_at, m.pinned)
               OFFSET asked.capacity)
 ORDER BY t.agent_id, asked.layer;

-- name: note_job_failure
-- Records why a job failed, without quoting data. A no-op if the job was deleted meanwhile.
INSERT INTO job_failures (job_id, failure)
SELECT j.id, %(failure)s FROM procrastinate_jobs j WHERE j.id = %(job_id)s FOR KEY SHARE;

-- name: hand_job_over
-- Merges a job that cannot be requeued, since one with the same lock is pending, into that one: its failures and
-- attempts.
WITH job AS (
    SELECT id, queueing_lock, attempts FROM procrastinate_jobs
     WHERE id = %(job_id)s AND status IN ('doing', 'failed') FOR UPDATE
), twin AS (
    SELECT waiting.id FROM procrastinate_jobs waiting JOIN job ON waiting.queueing_lock = job.queueing_lock
     WHERE waiting.status = 'todo' FOR UPDATE OF waiting
), moved AS (
    UPDATE job_failures SET job_id = twin.id FROM twin WHERE job_failures.job_id = %(job_id)s
), gone AS (
    DELETE FROM procrastinate_jobs USING twin WHERE procrastinate_jobs.id = %(job_id)s
)
UPDATE procrastinate_jobs
   SET attempts = greatest(procrastinate_jobs.attempts, job.attempts + 1),
       scheduled_at = greatest(procrastinate_jobs.scheduled_at, %(retry_at)s)
  FROM twin, job
 WHERE procrastinate_jobs.id = twin.id
RETURNING procrastinate_jobs.id;

-- name: count_jobs
-- Counts the jobs of all agents by state.
SELECT state, count(*) AS count FROM background_jobs GROUP BY state;

-- name: list_jobs
-- Returns jobs, newest first.
SELECT * FROM background_jobs
 WHERE (%(job_id)s::bigint IS NULL OR job_id = %(job_id)s)
   AND (%(state)s::text IS NULL OR state = %(state)s)
   AND (%(agent_id)s::text IS NULL OR ids ->> 'agent_id' = %(agent_id)s)
 ORDER BY job_id DESC LIMIT %(limit)s;

-- name: job_story
-- Returns the events and failures of a job in order.
SELECT at, happened FROM (
    SELECT e.at, e.type::text AS happened FROM procrastinate_events e
     WHERE e.job_id = %(job_id)s AND e.type <> 'scheduled'
     UNION ALL
    SELECT f.failed_at, f.failure FROM job_failures f WHERE f.job_id = %(job_id)s) AS story
 ORDER BY at;
