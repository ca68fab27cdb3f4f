-- The service's role has no privileges on procrastinate's tables: these functions run with their owner's rights, only
-- for the agent of the current transaction. A job's lock is a digest that includes the agent, so agents cannot collide.
CREATE INDEX agentcore_jobs_by_agent ON procrastinate_jobs ((args ->> 'agent_id'));

CREATE FUNCTION own_job_lock(p_agent_id text, p_lock text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    IF p_agent_id IS NULL OR p_agent_id IS DISTINCT FROM current_setting('agentcore.agent_id', true) THEN
        RAISE EXCEPTION 'jobs are those of the agent of the transaction alone'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN encode(sha256(convert_to(p_agent_id || chr(31) || p_lock, 'UTF8')), 'hex');
END
$$;

-- Returns whether a job with this lock is pending. If so, it starts only after this transaction, which shares the
-- advisory lock until its end: a worker takes it exclusively before a job. A caller can rely on a pending job to see
-- its writes.
CREATE FUNCTION job_waits(p_agent_id text, p_lock text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    AS $$
DECLARE
    own_lock text := own_job_lock(p_agent_id, p_lock);
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(own_lock, 0));
    RETURN EXISTS (SELECT FROM procrastinate_jobs WHERE queueing_lock = own_lock AND status = 'todo');
END
$$;

-- Enqueues a job for the agent, unless one with the same lock is pending. The queue has the name of the job, so that
-- workers of other versions ignore jobs that they do not implement.
CREATE FUNCTION enqueue_job(p_agent_id text, p_name text, p_ids jsonb, p_lock text, p_not_before timestamptz)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    AS $$
DECLARE
    own_lock text := own_job_lock(p_agent_id, p_lock);
BEGIN
    IF job_waits(p_agent_id, p_lock) THEN
        RETURN;
    END IF;
    BEGIN
        PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
            p_name, p_name, 0, own_lock, own_lock, p_ids || jsonb_build_object('agent_id', p_agent_id),
            p_not_before)::procrastinate_job_to_defer_v1]);
    EXCEPTION WHEN unique_violation THEN
        -- Another transaction enqueued the same meanwhile.
        NULL;
    END;
END
$$;

-- Deletes all jobs of the agent in any state; returns how many. A running job is not stopped.
CREATE FUNCTION forget_jobs(p_agent_id text) RETURNS integer
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    AS $$
DECLARE
    forgotten integer;
BEGIN
    PERFORM own_job_lock(p_agent_id, '');
    DELETE FROM procrastinate_jobs WHERE args ->> 'agent_id' = p_agent_id;
    GET DIAGNOSTICS forgotten = ROW_COUNT;
    RETURN forgotten;
END
$$;

DO $$
DECLARE
    own text;
BEGIN
    FOREACH own IN ARRAY ARRAY['own_job_lock', 'job_waits', 'enqueue_job', 'forget_jobs'] LOOP
        EXECUTE format('ALTER FUNCTION %I SET search_path = %I, pg_temp', own, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %I FROM PUBLIC', own);
    END LOOP;
END
$$;
GRANT EXECUTE ON FUNCTION job_waits, enqueue_job, forget_jobs TO agentcore_service;

-- Error classes and messages of this service, never a driver's message, which may quote a memory.
CREATE TABLE job_failures (
    job_id    bigint      NOT NULL REFERENCES procrastinate_jobs ON DELETE CASCADE,
    failed_at timestamptz NOT NULL DEFAULT now(),
    failure   text        NOT NULL
);
CREATE INDEX job_failures_by_job ON job_failures (job_id, failed_at);

-- Jobs of all agents for operators. Successful jobs are deleted.
CREATE VIEW background_jobs AS
    SELECT j.id AS job_id, j.task_name AS name, j.args AS ids, j.attempts, j.scheduled_at AS not_before,
           CASE WHEN j.status = 'todo' AND j.scheduled_at > now() THEN 'scheduled'
                WHEN j.status = 'todo' THEN 'waiting'
                WHEN j.status = 'doing' THEN 'running'
                WHEN j.status = 'failed' THEN 'failed'
                WHEN j.status = 'succeeded' THEN 'done'
                ELSE 'cancelled' END AS state,
           (SELECT e.at FROM procrastinate_events e WHERE e.job_id = j.id AND e.type = 'deferred'
             ORDER BY e.id LIMIT 1) AS enqueued_at,
           (SELECT f.failure FROM job_failures f WHERE f.job_id = j.id
             ORDER BY f.failed_at DESC LIMIT 1) AS failure
      FROM procrastinate_jobs j;

-- By successor, since memories that supersede others are not pruned: no other memory states their content.
CREATE INDEX memories_by_successor ON memories (agent_id, superseded_by) WHERE superseded_by IS NOT NULL;
