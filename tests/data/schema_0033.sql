-- The schema of revision 0033, the oldest that can be upgraded. Never change it.

-- The schema of procrastinate 3.10.0, word for word from its sql/schema.sql, under its license:
--
-- MIT License
--
-- Copyright (c) 2019-2021, PeopleDoc
-- Copyright (c) 2021-2023, Joachim Jablon, Eric Lemoine
-- Copyright (c) 2024-, Joachim Jablon, Kai Schlamp
--
-- Permission is hereby granted, free of charge, to any person obtaining a copy of this
-- software and associated documentation files (the "Software"), to deal in the Software
-- without restriction, including without limitation the rights to use, copy, modify,
-- merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
-- permit persons to whom the Software is furnished to do so, subject to the following
-- conditions:
--
-- The above copyright notice and this permission notice shall be included in all copies or
-- substantial portions of the Software.
--
-- THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED,
-- INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR
-- PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE
-- LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT
-- OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR
-- OTHER DEALINGS IN THE SOFTWARE.

-- Procrastinate Schema

DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog;
EXCEPTION
    WHEN OTHERS THEN
        -- On managed PostgreSQL services (e.g. Azure Database for PostgreSQL, Amazon RDS,
        -- Google Cloud SQL), CREATE EXTENSION may fail with various error codes:
        -- insufficient_privilege, feature_not_supported, or provider-specific errors.
        -- Before ignoring, verify the extension actually exists — if it does not exist
        -- and cannot be created, re-raise so the failure is explicit.
        IF EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'plpgsql') THEN
            RAISE NOTICE 'plpgsql extension already exists, skipping creation.';
        ELSE
            RAISE;
        END IF;
END;
$$;

-- Enums

CREATE TYPE procrastinate_job_status AS ENUM (
    'todo',  -- The job is queued
    'doing',  -- The job has been fetched by a worker
    'succeeded',  -- The job ended successfully
    'failed',  -- The job ended with an error
    'cancelled', -- The job was cancelled
    'aborting',  -- legacy, not used anymore since v3.0.0
    'aborted'  -- The job was aborted
);

CREATE TYPE procrastinate_job_event_type AS ENUM (
    'deferred',  -- Job created, in todo
    'started',  -- todo -> doing
    'deferred_for_retry',  -- doing -> todo
    'failed',  -- doing -> failed
    'succeeded',  -- doing -> succeeded
    'cancelled', -- todo -> cancelled
    'abort_requested', -- not a state transition, but set in a separate field
    'aborted', -- doing -> aborted (only allowed when abort_requested field is set)
    'scheduled', -- not a state transition, but recording when a task is scheduled for
    'retried' -- Manually retried failed job
);

-- Composite Types

CREATE TYPE procrastinate_job_to_defer_v1 AS (
    queue_name character varying,
    task_name character varying,
    priority integer,
    lock text,
    queueing_lock text,
    args jsonb,
    scheduled_at timestamp with time zone
);

-- Tables

CREATE TABLE procrastinate_workers(
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    last_heartbeat timestamp with time zone NOT NULL DEFAULT NOW()
);

CREATE TABLE procrastinate_jobs (
    id bigserial PRIMARY KEY,
    queue_name character varying(128) NOT NULL,
    task_name character varying(128) NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    lock text,
    queueing_lock text,
    args jsonb DEFAULT '{}' NOT NULL,
    status procrastinate_job_status DEFAULT 'todo'::procrastinate_job_status NOT NULL,
    scheduled_at timestamp with time zone NULL,
    attempts integer DEFAULT 0 NOT NULL,
    abort_requested boolean DEFAULT false NOT NULL,
    worker_id bigint REFERENCES procrastinate_workers(id) ON DELETE SET NULL,
    CONSTRAINT check_not_todo_abort_requested CHECK (NOT (status = 'todo' AND abort_requested = true))
);

CREATE TABLE procrastinate_periodic_defers (
    id bigserial PRIMARY KEY,
    task_name character varying(128) NOT NULL,
    defer_timestamp bigint,
    job_id bigint REFERENCES procrastinate_jobs(id) NULL,
    periodic_id character varying(128) NOT NULL DEFAULT '',
    CONSTRAINT procrastinate_periodic_defers_unique UNIQUE (task_name, periodic_id, defer_timestamp)
);

CREATE TABLE procrastinate_events (
    id bigserial PRIMARY KEY,
    job_id bigint NOT NULL REFERENCES procrastinate_jobs ON DELETE CASCADE,
    type procrastinate_job_event_type,
    at timestamp with time zone DEFAULT NOW() NULL
);

-- Constraints & Indices

-- this prevents from having several jobs with the same queueing lock in the "todo" state
CREATE UNIQUE INDEX procrastinate_jobs_queueing_lock_idx_v1 ON procrastinate_jobs (queueing_lock) WHERE status = 'todo';
-- this prevents from having several jobs with the same lock in the "doing" state
CREATE UNIQUE INDEX procrastinate_jobs_lock_idx_v1 ON procrastinate_jobs (lock) WHERE status = 'doing';

-- Index for select_stalled_jobs_by_heartbeat query
CREATE INDEX idx_procrastinate_jobs_worker_not_null ON procrastinate_jobs(worker_id) WHERE worker_id IS NOT NULL AND status = 'doing'::procrastinate_job_status;

CREATE INDEX procrastinate_jobs_queue_name_idx_v1 ON procrastinate_jobs(queue_name);
CREATE INDEX procrastinate_jobs_id_lock_idx_v1 ON procrastinate_jobs (id, lock) WHERE status = ANY (ARRAY['todo'::procrastinate_job_status, 'doing'::procrastinate_job_status]);
CREATE INDEX procrastinate_jobs_priority_idx_v1 ON procrastinate_jobs(priority desc, id asc) WHERE (status = 'todo'::procrastinate_job_status);

CREATE INDEX procrastinate_events_job_id_fkey_v1 ON procrastinate_events(job_id);

CREATE INDEX procrastinate_periodic_defers_job_id_fkey_v1 ON procrastinate_periodic_defers(job_id);

CREATE INDEX idx_procrastinate_workers_last_heartbeat ON procrastinate_workers(last_heartbeat);

-- Functions
CREATE FUNCTION procrastinate_defer_jobs_v1(
    jobs procrastinate_job_to_defer_v1[]
)
    RETURNS bigint[]
    LANGUAGE plpgsql
AS $$
DECLARE
    job_ids bigint[];
BEGIN
    WITH inserted_jobs AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
        SELECT (job).queue_name,
               (job).task_name,
               (job).priority,
               (job).lock,
               (job).queueing_lock,
               (job).args,
               (job).scheduled_at
        FROM unnest(jobs) AS job
        RETURNING id
    )
    SELECT array_agg(id) FROM inserted_jobs INTO job_ids;

    RETURN job_ids;
END;
$$;

CREATE FUNCTION procrastinate_defer_periodic_job_v2(
    _queue_name character varying,
    _lock character varying,
    _queueing_lock character varying,
    _task_name character varying,
    _priority integer,
    _periodic_id character varying,
    _defer_timestamp bigint,
    _args jsonb
)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
	_job_id bigint;
	_defer_id bigint;
BEGIN
    INSERT
        INTO procrastinate_periodic_defers (task_name, periodic_id, defer_timestamp)
        VALUES (_task_name, _periodic_id, _defer_timestamp)
        ON CONFLICT DO NOTHING
        RETURNING id into _defer_id;

    IF _defer_id IS NULL THEN
        RETURN NULL;
    END IF;

    UPDATE procrastinate_periodic_defers
        SET job_id = (
            SELECT COALESCE((
                SELECT unnest(procrastinate_defer_jobs_v1(
                    ARRAY[
                        ROW(
                            _queue_name,
                            _task_name,
                            _priority,
                            _lock,
                            _queueing_lock,
                            _args,
                            NULL::timestamptz
                        )
                    ]::procrastinate_job_to_defer_v1[]
                ))
            ), NULL)
        )
        WHERE id = _defer_id
        RETURNING job_id INTO _job_id;

    DELETE
        FROM procrastinate_periodic_defers
        USING (
            SELECT id
            FROM procrastinate_periodic_defers
            WHERE procrastinate_periodic_defers.task_name = _task_name
            AND procrastinate_periodic_defers.periodic_id = _periodic_id
            AND procrastinate_periodic_defers.defer_timestamp < _defer_timestamp
            ORDER BY id
            FOR UPDATE
        ) to_delete
        WHERE procrastinate_periodic_defers.id = to_delete.id;

    RETURN _job_id;
END;
$$;

CREATE FUNCTION procrastinate_fetch_job_v2(
    target_queue_names character varying[],
    p_worker_id bigint
)
    RETURNS procrastinate_jobs
    LANGUAGE plpgsql
AS $$
DECLARE
	found_jobs procrastinate_jobs;
BEGIN
    WITH candidate AS (
        SELECT jobs.*
            FROM procrastinate_jobs AS jobs
            WHERE
                -- reject the job if its lock has earlier or higher priority jobs
                NOT EXISTS (
                    SELECT 1
                        FROM procrastinate_jobs AS other_jobs
                        WHERE
                            jobs.lock IS NOT NULL
                            AND other_jobs.lock = jobs.lock
                            AND (
                                -- job with same lock is already running
                                other_jobs.status = 'doing'
                                OR
                                -- job with same lock is waiting and has higher priority (or same priority but was queued first)
                                (
                                    other_jobs.status = 'todo'
                                    AND (
                                        other_jobs.priority > jobs.priority
                                        OR (
                                        other_jobs.priority = jobs.priority
                                        AND other_jobs.id < jobs.id
                                        )
                                    )
                                )
                            )
                )
                AND jobs.status = 'todo'
                AND (target_queue_names IS NULL OR jobs.queue_name = ANY( target_queue_names ))
                AND (jobs.scheduled_at IS NULL OR jobs.scheduled_at <= now())
            ORDER BY jobs.priority DESC, jobs.id ASC LIMIT 1
            FOR UPDATE OF jobs SKIP LOCKED
    )
    UPDATE procrastinate_jobs
        SET status = 'doing', worker_id = p_worker_id
        FROM candidate
        WHERE procrastinate_jobs.id = candidate.id
        RETURNING procrastinate_jobs.* INTO found_jobs;

 RETURN found_jobs;
END;
$$;

CREATE FUNCTION procrastinate_finish_job_v1(job_id bigint, end_status procrastinate_job_status, delete_job boolean)
    RETURNS void
    LANGUAGE plpgsql
AS $$
DECLARE
    _job_id bigint;
BEGIN
    IF end_status NOT IN ('succeeded', 'failed', 'aborted') THEN
        RAISE 'End status should be either "succeeded", "failed" or "aborted" (job id: %)', job_id;
    END IF;
    IF delete_job THEN
        DELETE FROM procrastinate_jobs
        WHERE id = job_id AND status IN ('todo', 'doing')
        RETURNING id INTO _job_id;
    ELSE
        UPDATE procrastinate_jobs
        SET status = end_status,
            abort_requested = false,
            attempts = CASE status
                WHEN 'doing' THEN attempts + 1 ELSE attempts
            END
        WHERE id = job_id AND status IN ('todo', 'doing')
        RETURNING id INTO _job_id;
    END IF;
    IF _job_id IS NULL THEN
        RAISE 'Job was not found or not in "doing" or "todo" status (job id: %)', job_id;
    END IF;
END;
$$;

CREATE FUNCTION procrastinate_cancel_job_v1(job_id bigint, abort boolean, delete_job boolean)
    RETURNS bigint
    LANGUAGE plpgsql
AS $$
DECLARE
    _job_id bigint;
BEGIN
    IF delete_job THEN
        DELETE FROM procrastinate_jobs
        WHERE id = job_id AND status = 'todo'
        RETURNING id INTO _job_id;
    END IF;
    IF _job_id IS NULL THEN
        IF abort THEN
            UPDATE procrastinate_jobs
            SET abort_requested = true,
                status = CASE status
                    WHEN 'todo' THEN 'cancelled'::procrastinate_job_status ELSE status
                END
            WHERE id = job_id AND status IN ('todo', 'doing')
            RETURNING id INTO _job_id;
        ELSE
            UPDATE procrastinate_jobs
            SET status = 'cancelled'::procrastinate_job_status
            WHERE id = job_id AND status = 'todo'
            RETURNING id INTO _job_id;
        END IF;
    END IF;
    RETURN _job_id;
END;
$$;

CREATE FUNCTION procrastinate_retry_job_v1(
    job_id bigint,
    retry_at timestamp with time zone,
    new_priority integer,
    new_queue_name character varying,
    new_lock character varying
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _job_id bigint;
    _abort_requested boolean;
BEGIN
    SELECT abort_requested FROM procrastinate_jobs
    WHERE id = job_id AND status = 'doing'
    FOR UPDATE
    INTO _abort_requested;
    IF _abort_requested THEN
        UPDATE procrastinate_jobs
        SET status = 'failed'::procrastinate_job_status
        WHERE id = job_id AND status = 'doing'
        RETURNING id INTO _job_id;
    ELSE
        UPDATE procrastinate_jobs
        SET status = 'todo'::procrastinate_job_status,
            attempts = attempts + 1,
            scheduled_at = retry_at,
            priority = COALESCE(new_priority, priority),
            queue_name = COALESCE(new_queue_name, queue_name),
            lock = COALESCE(new_lock, lock)
        WHERE id = job_id AND status = 'doing'
        RETURNING id INTO _job_id;
    END IF;

    IF _job_id IS NULL THEN
        RAISE 'Job was not found or not in "doing" status (job id: %)', job_id;
    END IF;
END;
$$;

CREATE FUNCTION procrastinate_retry_job_v2(
    job_id bigint,
    retry_at timestamp with time zone,
    new_priority integer,
    new_queue_name character varying,
    new_lock character varying
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    _job_id bigint;
    _abort_requested boolean;
    _current_status procrastinate_job_status;
BEGIN
    SELECT status, abort_requested FROM procrastinate_jobs
    WHERE id = job_id AND status IN ('doing', 'failed')
    FOR UPDATE
    INTO _current_status, _abort_requested;
    IF _current_status = 'doing' AND _abort_requested THEN
        UPDATE procrastinate_jobs
        SET status = 'failed'::procrastinate_job_status
        WHERE id = job_id AND status = 'doing'
        RETURNING id INTO _job_id;
    ELSE
        UPDATE procrastinate_jobs
        SET status = 'todo'::procrastinate_job_status,
            attempts = attempts + 1,
            scheduled_at = retry_at,
            priority = COALESCE(new_priority, priority),
            queue_name = COALESCE(new_queue_name, queue_name),
            lock = COALESCE(new_lock, lock)
        WHERE id = job_id AND status IN ('doing', 'failed')
        RETURNING id INTO _job_id;
    END IF;

    IF _job_id IS NULL THEN
        RAISE 'Job was not found or has an invalid status to retry (job id: %)', job_id;
    END IF;

END;
$$;

CREATE FUNCTION procrastinate_notify_queue_job_inserted_v1()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    payload TEXT;
BEGIN
    SELECT json_build_object('type', 'job_inserted', 'job_id', NEW.id)::text INTO payload;
	PERFORM pg_notify('procrastinate_queue_v1#' || NEW.queue_name, payload);
	PERFORM pg_notify('procrastinate_any_queue_v1', payload);
	RETURN NEW;
END;
$$;

CREATE FUNCTION procrastinate_notify_queue_abort_job_v1()
RETURNS trigger
    LANGUAGE plpgsql
AS $$
DECLARE
    payload TEXT;
BEGIN
    SELECT json_build_object('type', 'abort_job_requested', 'job_id', NEW.id)::text INTO payload;
	PERFORM pg_notify('procrastinate_queue_v1#' || NEW.queue_name, payload);
	PERFORM pg_notify('procrastinate_any_queue_v1', payload);
	RETURN NEW;
END;
$$;

CREATE FUNCTION procrastinate_trigger_function_status_events_insert_v1()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO procrastinate_events(job_id, type)
        VALUES (NEW.id, 'deferred'::procrastinate_job_event_type);
	RETURN NEW;
END;
$$;

CREATE FUNCTION procrastinate_trigger_function_status_events_update_v1()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    WITH t AS (
        SELECT CASE
            WHEN OLD.status = 'todo'::procrastinate_job_status
                AND NEW.status = 'doing'::procrastinate_job_status
                THEN 'started'::procrastinate_job_event_type
            WHEN OLD.status = 'doing'::procrastinate_job_status
                AND NEW.status = 'todo'::procrastinate_job_status
                THEN 'deferred_for_retry'::procrastinate_job_event_type
            WHEN OLD.status = 'doing'::procrastinate_job_status
                AND NEW.status = 'failed'::procrastinate_job_status
                THEN 'failed'::procrastinate_job_event_type
            WHEN OLD.status = 'doing'::procrastinate_job_status
                AND NEW.status = 'succeeded'::procrastinate_job_status
                THEN 'succeeded'::procrastinate_job_event_type
            WHEN OLD.status = 'todo'::procrastinate_job_status
                AND (
                    NEW.status = 'cancelled'::procrastinate_job_status
                    OR NEW.status = 'failed'::procrastinate_job_status
                    OR NEW.status = 'succeeded'::procrastinate_job_status
                )
                THEN 'cancelled'::procrastinate_job_event_type
            WHEN OLD.status = 'doing'::procrastinate_job_status
                AND NEW.status = 'aborted'::procrastinate_job_status
                THEN 'aborted'::procrastinate_job_event_type
            WHEN OLD.status = 'failed'::procrastinate_job_status
                AND NEW.status = 'todo'::procrastinate_job_status
                THEN 'retried'::procrastinate_job_event_type
            ELSE NULL
        END as event_type
    )
    INSERT INTO procrastinate_events(job_id, type)
        SELECT NEW.id, t.event_type
        FROM t
        WHERE t.event_type IS NOT NULL;
	RETURN NEW;
END;
$$;

CREATE FUNCTION procrastinate_trigger_function_scheduled_events_v1()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO procrastinate_events(job_id, type, at)
        VALUES (NEW.id, 'scheduled'::procrastinate_job_event_type, NEW.scheduled_at);

	RETURN NEW;
END;
$$;

CREATE FUNCTION procrastinate_trigger_abort_requested_events_procedure_v1()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    INSERT INTO procrastinate_events(job_id, type)
        VALUES (NEW.id, 'abort_requested'::procrastinate_job_event_type);
    RETURN NEW;
END;
$$;

CREATE FUNCTION procrastinate_unlink_periodic_defers_v1()
    RETURNS trigger
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE procrastinate_periodic_defers
    SET job_id = NULL
    WHERE job_id = OLD.id;
    RETURN OLD;
END;
$$;

CREATE FUNCTION procrastinate_register_worker_v1()
    RETURNS TABLE(worker_id bigint)
    LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY
    INSERT INTO procrastinate_workers DEFAULT VALUES
    RETURNING procrastinate_workers.id;
END;
$$;

CREATE FUNCTION procrastinate_unregister_worker_v1(worker_id bigint)
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    DELETE FROM procrastinate_workers
    WHERE id = worker_id;
END;
$$;

CREATE FUNCTION procrastinate_update_heartbeat_v1(worker_id bigint)
    RETURNS void
    LANGUAGE plpgsql
AS $$
BEGIN
    UPDATE procrastinate_workers
    SET last_heartbeat = NOW()
    WHERE id = worker_id;
END;
$$;

CREATE FUNCTION procrastinate_prune_stalled_workers_v1(seconds_since_heartbeat float)
    RETURNS TABLE(worker_id bigint)
    LANGUAGE plpgsql
AS $$
BEGIN
    RETURN QUERY
    DELETE FROM procrastinate_workers
    WHERE last_heartbeat < NOW() - (seconds_since_heartbeat || 'SECOND')::INTERVAL
    RETURNING procrastinate_workers.id;
END;
$$;

-- Triggers

CREATE TRIGGER procrastinate_jobs_notify_queue_job_inserted_v1
    AFTER INSERT ON procrastinate_jobs
    FOR EACH ROW WHEN ((new.status = 'todo'::procrastinate_job_status))
    EXECUTE PROCEDURE procrastinate_notify_queue_job_inserted_v1();

CREATE TRIGGER procrastinate_jobs_notify_queue_job_aborted_v1
    AFTER UPDATE OF abort_requested ON procrastinate_jobs
    FOR EACH ROW WHEN ((old.abort_requested = false AND new.abort_requested = true AND new.status = 'doing'::procrastinate_job_status))
    EXECUTE PROCEDURE procrastinate_notify_queue_abort_job_v1();

CREATE TRIGGER procrastinate_trigger_status_events_update_v1
    AFTER UPDATE OF status ON procrastinate_jobs
    FOR EACH ROW
    EXECUTE PROCEDURE procrastinate_trigger_function_status_events_update_v1();

CREATE TRIGGER procrastinate_trigger_status_events_insert_v1
    AFTER INSERT ON procrastinate_jobs
    FOR EACH ROW WHEN ((new.status = 'todo'::procrastinate_job_status))
    EXECUTE PROCEDURE procrastinate_trigger_function_status_events_insert_v1();

CREATE TRIGGER procrastinate_trigger_scheduled_events_v1
    AFTER UPDATE OR INSERT ON procrastinate_jobs
    FOR EACH ROW WHEN ((new.scheduled_at IS NOT NULL AND new.status = 'todo'::procrastinate_job_status))
    EXECUTE PROCEDURE procrastinate_trigger_function_scheduled_events_v1();

CREATE TRIGGER procrastinate_trigger_abort_requested_events_v1
    AFTER UPDATE OF abort_requested ON procrastinate_jobs
    FOR EACH ROW WHEN ((new.abort_requested = true))
    EXECUTE PROCEDURE procrastinate_trigger_abort_requested_events_procedure_v1();

CREATE TRIGGER procrastinate_trigger_delete_jobs_v1
    BEFORE DELETE ON procrastinate_jobs
    FOR EACH ROW EXECUTE PROCEDURE procrastinate_unlink_periodic_defers_v1();

CREATE EXTENSION IF NOT EXISTS vector;

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['agentcore_service', 'agentcore_bound'] LOOP
        BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role) THEN
                BEGIN
                    EXECUTE format('CREATE ROLE %I NOLOGIN NOSUPERUSER NOBYPASSRLS', role);
                EXCEPTION WHEN duplicate_object OR unique_violation THEN
                    NULL;
                END;
            END IF;
            BEGIN
                EXECUTE format('GRANT %I TO %I', role, current_user);
            EXCEPTION WHEN insufficient_privilege THEN
                IF NOT pg_has_role(current_user, role, 'MEMBER') THEN
                    RAISE;
                END IF;
            END;
        EXCEPTION WHEN insufficient_privilege THEN
            RAISE EXCEPTION 'the migrating role may not create or grant the role %', role
                USING ERRCODE = 'insufficient_privilege',
                      HINT = format('As an administrator run: CREATE ROLE %1$I NOLOGIN; GRANT %1$I TO %2$I;',
                                    role, current_user);
        END;
    END LOOP;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO agentcore_service, agentcore_bound', current_schema());
END
$$;

CREATE TABLE memories (
    agent_id             text        NOT NULL,
    memory_id            uuid        NOT NULL,
    memory_type          text        NOT NULL
                         CHECK (memory_type IN ('working', 'episodic', 'semantic', 'procedural')),
    kind                 text        GENERATED ALWAYS AS (provenance ->> 'form') STORED
                         CHECK (kind IN ('content', 'interaction', 'fact', 'consolidation', 'session', 'period')),
    content              text        NOT NULL,
    summary              text        NOT NULL,
    response             text,
    embedding            halfvec,
    embedding_model      text,
    next_embedding       halfvec,
    next_embedding_model text,
    timestamp            timestamptz NOT NULL,
    event_from           timestamptz,
    event_to             timestamptz,
    interaction_id       text,
    task_id              text,
    session_id           text,
    user_id              text,
    namespace            text,
    speaker              text,
    external_id          text,
    actions              jsonb,
    outcome              jsonb,
    action_outcomes      jsonb,
    entities             text[]      NOT NULL DEFAULT '{}',
    entity_keys          text[]      NOT NULL DEFAULT '{}',
    facts                text[]      NOT NULL DEFAULT '{}',
    keywords             text[]      NOT NULL DEFAULT '{}',
    tags                 text[]      NOT NULL DEFAULT '{}',
    metadata             jsonb       NOT NULL DEFAULT '{}',
    relevance_score      real        NOT NULL DEFAULT 0.5 CHECK (relevance_score BETWEEN 0 AND 1),
    pinned               boolean     NOT NULL DEFAULT false,
    flagged              boolean     NOT NULL DEFAULT false,
    expires_at           timestamptz,
    ttl_seconds          bigint,
    valid_from           timestamptz,
    valid_to             timestamptz,
    superseded_by        uuid,
    parent_memory_id     uuid,
    provenance           jsonb       NOT NULL DEFAULT '{}',
    content_hash         bytea       NOT NULL,
    term_keys            bigint[]    NOT NULL DEFAULT '{}',
    token_count          integer     NOT NULL DEFAULT 0,
    version              integer     NOT NULL DEFAULT 1,
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, memory_id)
) PARTITION BY HASH (agent_id);

ALTER TABLE memories ALTER COLUMN embedding SET STORAGE MAIN, ALTER COLUMN next_embedding SET STORAGE MAIN;

CREATE INDEX memories_by_time ON memories (agent_id, timestamp DESC, memory_id DESC);
CREATE INDEX memories_by_type ON memories (agent_id, memory_type, timestamp DESC);
CREATE INDEX memories_by_task ON memories (agent_id, task_id, timestamp DESC) WHERE task_id IS NOT NULL;
CREATE INDEX memories_by_session ON memories (agent_id, session_id, timestamp DESC) WHERE session_id IS NOT NULL;
CREATE INDEX memories_by_hash ON memories (agent_id, content_hash);
CREATE INDEX memories_by_parent ON memories (agent_id, parent_memory_id) WHERE parent_memory_id IS NOT NULL;
CREATE INDEX memories_by_successor ON memories (agent_id, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX memories_by_event ON memories (agent_id, event_to, event_from) WHERE event_to IS NOT NULL;
CREATE INDEX memories_flagged ON memories (agent_id) WHERE flagged;
CREATE INDEX memories_by_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_without_vector ON memories (created_at) WHERE embedding IS NULL;
CREATE INDEX memories_terms ON memories USING gin (term_keys) WITH (fastupdate = off);

CREATE TABLE memory_passages (
    agent_id        text     NOT NULL,
    memory_id       uuid     NOT NULL,
    passage         smallint NOT NULL CHECK (passage > 0),
    embedding_model text     NOT NULL,
    start           integer  NOT NULL CHECK (start > 0),
    "end"           integer  NOT NULL CHECK ("end" > start),
    embedding       halfvec,
    PRIMARY KEY (agent_id, memory_id, passage, embedding_model),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories ON DELETE CASCADE
) PARTITION BY HASH (agent_id);
ALTER TABLE memory_passages ALTER COLUMN embedding SET STORAGE MAIN;

DO $$
DECLARE
    parent text;
BEGIN
    FOREACH parent IN ARRAY ARRAY['memories', 'memory_passages'] LOOP
        FOR part IN 0..31 LOOP
            EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 32, REMAINDER %s)',
                           parent || '_p' || lpad(part::text, 2, '0'), parent, part);
        END LOOP;
    END LOOP;
END
$$;

CREATE TABLE memory_usage (
    agent_id      text        NOT NULL,
    memory_id     uuid        NOT NULL,
    access_count  integer     NOT NULL DEFAULT 0,
    last_accessed timestamptz NOT NULL,
    uses_in_life  integer     NOT NULL DEFAULT 0,
    PRIMARY KEY (agent_id, memory_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories ON DELETE CASCADE
) WITH (fillfactor = 80);

CREATE TABLE memory_links (
    agent_id   text        NOT NULL,
    source_id  uuid        NOT NULL,
    target_id  uuid        NOT NULL,
    relation   text        NOT NULL,
    weight     real        NOT NULL DEFAULT 1 CHECK (weight BETWEEN 0 AND 1),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, source_id, target_id, relation),
    FOREIGN KEY (agent_id, source_id) REFERENCES memories ON DELETE CASCADE,
    FOREIGN KEY (agent_id, target_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_links_by_target ON memory_links (agent_id, target_id);

CREATE TABLE memory_history (
    agent_id   text        NOT NULL,
    memory_id  uuid        NOT NULL,
    change_id  bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    operation  text        NOT NULL,
    version    integer,
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    token_id   text,
    trace_id   text,
    before     jsonb,
    after      jsonb,
    PRIMARY KEY (agent_id, memory_id, change_id)
);

CREATE TABLE memory_subjects (
    agent_id    text   NOT NULL,
    subject_key bigint NOT NULL,
    memory_id   uuid   NOT NULL,
    PRIMARY KEY (agent_id, subject_key, memory_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE INDEX memory_subjects_by_memory ON memory_subjects (memory_id, agent_id);

CREATE TABLE idempotency_keys (
    agent_id        text        NOT NULL,
    idempotency_key text        NOT NULL,
    request_digest  bytea       NOT NULL,
    memory_id       uuid        NOT NULL,
    created_at      timestamptz NOT NULL DEFAULT now(),
    expires_at      timestamptz NOT NULL,
    PRIMARY KEY (agent_id, idempotency_key)
);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

CREATE TABLE completed_tasks (
    agent_id     text        NOT NULL,
    task_id      text        NOT NULL,
    completed_at timestamptz NOT NULL,
    PRIMARY KEY (agent_id, task_id)
);

CREATE TABLE agent_settings (
    agent_id        text        NOT NULL PRIMARY KEY,
    layers          jsonb       NOT NULL DEFAULT '{}',
    updated_at      timestamptz NOT NULL DEFAULT now(),
    consolidation   jsonb       NOT NULL DEFAULT '{}',
    consolidated_to uuid,
    models          jsonb       NOT NULL DEFAULT '{}'
);

CREATE TABLE llm_queue (
    agent_id      text        NOT NULL,
    memory_id     uuid        NOT NULL,
    work          text        NOT NULL
                  CHECK (work IN ('facts', 'summary', 'refresh', 'period', 'relations', 'passages')),
    session_id    text,
    user_turn     boolean     NOT NULL DEFAULT false,
    again         boolean     NOT NULL DEFAULT false,
    queued_at     timestamptz NOT NULL DEFAULT now(),
    failing_since timestamptz,
    tries         smallint    NOT NULL DEFAULT 0,
    PRIMARY KEY (agent_id, work, memory_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories (agent_id, memory_id) ON DELETE CASCADE
);
CREATE INDEX llm_queue_of_session ON llm_queue (agent_id, session_id) WHERE work = 'summary';
CREATE INDEX llm_queue_of_memory ON llm_queue (agent_id, memory_id);
CREATE INDEX llm_queue_again ON llm_queue (agent_id) WHERE again;
CREATE INDEX llm_queue_in_line ON llm_queue (agent_id, work, tries, queued_at, memory_id) WHERE work = 'facts';
CREATE INDEX llm_queue_relations ON llm_queue (agent_id, queued_at, memory_id) WHERE work = 'relations';
CREATE INDEX llm_queue_passages ON llm_queue (agent_id, queued_at, memory_id) WHERE work = 'passages';

CREATE TABLE late_episodes (
    agent_id  text NOT NULL,
    memory_id uuid NOT NULL,
    PRIMARY KEY (agent_id, memory_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories ON DELETE CASCADE
);

CREATE TABLE llm_usage (
    agent_id    text          NOT NULL,
    day         date          NOT NULL,
    calls       bigint        NOT NULL DEFAULT 0,
    refused     bigint        NOT NULL DEFAULT 0,
    tokens      bigint        NOT NULL DEFAULT 0,
    cost_micros numeric(20,6) NOT NULL DEFAULT 0,
    PRIMARY KEY (agent_id, day)
);
CREATE INDEX llm_usage_by_day ON llm_usage (day);

CREATE TABLE lexical_terms (
    agent_id     text    NOT NULL,
    term_key     bigint  NOT NULL,
    memory_count integer NOT NULL,
    PRIMARY KEY (agent_id, term_key)
) WITH (fillfactor = 80);

CREATE TABLE lexical_totals (
    agent_id     text   NOT NULL PRIMARY KEY,
    memory_count bigint NOT NULL,
    term_count   bigint NOT NULL
) WITH (fillfactor = 80);

CREATE TABLE lexical_deltas (
    agent_id      text      NOT NULL,
    delta_id      bigint    NOT NULL GENERATED ALWAYS AS IDENTITY,
    memory_count  integer   NOT NULL,
    term_count    bigint    NOT NULL,
    term_keys     bigint[]  NOT NULL,
    term_memories integer[] NOT NULL,
    PRIMARY KEY (agent_id, delta_id)
);

CREATE TABLE archived_memories (
    agent_id    text        NOT NULL,
    memory_id   uuid        NOT NULL,
    version     integer     NOT NULL,
    memory_type text        NOT NULL,
    object_key  text        NOT NULL,
    sha256      bytea       NOT NULL,
    size_bytes  bigint      NOT NULL,
    reason      text        NOT NULL,
    archived_at timestamptz NOT NULL DEFAULT now(),
    timestamp   timestamptz,
    task_id     text,
    session_id  text,
    user_id     text,
    namespace   text,
    tags        text[]      NOT NULL DEFAULT '{}',
    archive_id  uuid,
    users       jsonb,
    PRIMARY KEY (agent_id, memory_id)
);
CREATE INDEX archived_memories_by_time ON archived_memories (agent_id, archived_at, memory_id);
CREATE INDEX archived_memories_of_unknown_archive ON archived_memories (agent_id) WHERE archive_id IS NULL;

CREATE TABLE archived_copies (
    agent_id   text NOT NULL,
    memory_id  uuid NOT NULL,
    archive_id uuid NOT NULL,
    user_id    text,
    PRIMARY KEY (agent_id, memory_id, archive_id)
);
CREATE INDEX archived_copies_by_archive ON archived_copies (archive_id);

CREATE TABLE embedding_models (
    model      text        NOT NULL PRIMARY KEY,
    provider   text        NOT NULL,
    model_name text,
    dimensions integer     NOT NULL CHECK (dimensions BETWEEN 1 AND 16000),
    stage      text        NOT NULL CHECK (stage IN ('filling', 'moving', 'settled')),
    changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX embedding_models_in_force ON embedding_models ((true)) WHERE stage <> 'filling';
CREATE UNIQUE INDEX embedding_models_to_come ON embedding_models ((true)) WHERE stage = 'filling';

CREATE TABLE receipt_keys (
    key_id     text        PRIMARY KEY,
    key        bytea       NOT NULL CHECK (octet_length(key) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
REVOKE ALL ON receipt_keys FROM PUBLIC;

CREATE TABLE redis_instances (
    redis_id     uuid        PRIMARY KEY,
    copies_until timestamptz NOT NULL
);
REVOKE ALL ON redis_instances FROM PUBLIC;

CREATE TABLE job_failures (
    job_id    bigint      NOT NULL REFERENCES procrastinate_jobs ON DELETE CASCADE,
    failed_at timestamptz NOT NULL DEFAULT now(),
    failure   text        NOT NULL
);
CREATE INDEX job_failures_by_job ON job_failures (job_id, failed_at);

CREATE INDEX agentcore_jobs_by_agent ON procrastinate_jobs ((args ->> 'agent_id'));

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

CREATE FUNCTION json_texts(value jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT jsonb_array_elements_text(value));

CREATE FUNCTION user_matches(user_id text, wanted jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE jsonb_typeof(wanted)
           WHEN 'array' THEN user_id = ANY (json_texts(wanted)) OR (user_id IS NULL AND wanted @> 'null')
           ELSE user_id = wanted #>> '{}' END
    $$;

CREATE FUNCTION is_live(expires_at timestamptz, pinned boolean) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT expires_at IS NULL OR pinned OR expires_at > now() $$;

CREATE FUNCTION is_user_turn(kind text, metadata jsonb, speaker text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT kind = 'interaction' OR lower(coalesce(metadata ->> 'role', speaker, 'user')) IN ('user', 'human') $$;

CREATE FUNCTION memory_matches(m memories, filter jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT (m.expires_at IS NULL OR m.pinned OR m.expires_at > now())
       AND (filter -> 'memory_types' IS NULL OR m.memory_type = ANY (json_texts(filter -> 'memory_types')))
       AND (filter ->> 'task_id' IS NULL OR m.task_id = filter ->> 'task_id')
       AND (filter ->> 'session_id' IS NULL OR m.session_id = filter ->> 'session_id')
       AND (filter -> 'user_id' IS NULL OR user_matches(m.user_id, filter -> 'user_id'))
       AND (filter ->> 'namespace' IS NULL OR m.namespace = filter ->> 'namespace')
       AND (filter ->> 'after' IS NULL OR m.timestamp >= (filter ->> 'after')::timestamptz)
       AND (filter ->> 'before' IS NULL OR m.timestamp < (filter ->> 'before')::timestamptz)
       AND (filter -> 'tags' IS NULL OR m.tags && json_texts(filter -> 'tags'))
       AND (filter -> 'entities' IS NULL OR m.entity_keys && json_texts(filter -> 'entities'))
       AND (filter -> 'keywords' IS NULL OR m.keywords && json_texts(filter -> 'keywords'))
       AND (filter ->> 'min_importance' IS NULL
            OR m.relevance_score >= (filter ->> 'min_importance')::real)
       AND (filter ->> 'unflagged' IS NULL OR NOT m.flagged)
       AND (filter ->> 'current' IS NULL OR m.superseded_by IS NULL)
       AND (filter ->> 'as_of' IS NULL
            OR (m.timestamp <= (filter ->> 'as_of')::timestamptz
                AND (m.valid_from IS NULL OR m.valid_from <= (filter ->> 'as_of')::timestamptz)
                AND (m.valid_to IS NULL OR m.valid_to > (filter ->> 'as_of')::timestamptz)))
    $$;

CREATE FUNCTION archived_matches(a archived_memories, filter jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT (filter -> 'memory_types' IS NULL OR a.memory_type = ANY (json_texts(filter -> 'memory_types')))
       AND (filter ->> 'task_id' IS NULL OR a.task_id = filter ->> 'task_id')
       AND (filter ->> 'session_id' IS NULL OR a.session_id = filter ->> 'session_id')
       AND (filter -> 'user_id' IS NULL OR user_matches(a.user_id, filter -> 'user_id'))
       AND (filter ->> 'namespace' IS NULL OR a.namespace = filter ->> 'namespace')
       AND (filter -> 'tags' IS NULL OR a.tags && json_texts(filter -> 'tags'))
       AND (filter ->> 'after' IS NULL OR a.timestamp >= (filter ->> 'after')::timestamptz)
       AND (filter ->> 'before' IS NULL OR a.timestamp < (filter ->> 'before')::timestamptz)
       AND (filter ->> 'archived_after' IS NULL OR a.archived_at >= (filter ->> 'archived_after')::timestamptz)
       AND (filter ->> 'archived_before' IS NULL OR a.archived_at < (filter ->> 'archived_before')::timestamptz)
    $$;

CREATE FUNCTION of_bound_users(p_user_id text, p_made_of jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT coalesce(nullif(current_setting('agentcore.users', true), '')::jsonb
                    @> coalesce(to_jsonb(p_user_id), 'null'), false)
       AND nullif(current_setting('agentcore.users', true), '')::jsonb @> coalesce(p_made_of, '[]')
    $$;

CREATE FUNCTION of_other_users(p_agent_id text, p_memory_id uuid) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER
    AS $$
    SELECT EXISTS (SELECT FROM memories AS m
                    WHERE m.agent_id = p_agent_id AND m.memory_id = p_memory_id
                      AND NOT of_bound_users(m.user_id, m.provenance -> 'users'))
    $$;

CREATE FUNCTION bound_frequencies(p_agent_id text, p_keys bigint[]) RETURNS TABLE (term_key bigint, memory_count bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET plan_cache_mode = force_custom_plan
    AS $$
BEGIN
    IF p_agent_id IS DISTINCT FROM current_setting('agentcore.agent_id', true) THEN
        RAISE EXCEPTION 'bound_frequencies serves the agent of the transaction alone'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
        SELECT asked.key, counted.count
          FROM unnest(p_keys) AS asked (key)
         CROSS JOIN LATERAL (SELECT count(*) AS count FROM memories AS m
                              WHERE m.agent_id = p_agent_id AND m.term_keys @> ARRAY[asked.key]
                                AND of_bound_users(m.user_id, m.provenance -> 'users')) AS counted
         WHERE counted.count > 0;
END
$$;

CREATE FUNCTION lexical_hits(p_agent_id text, p_keys bigint[], p_weights real[], p_filter jsonb, p_limit integer,
                             p_k1 double precision, p_b double precision)
    RETURNS TABLE (memory_id uuid, weight real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET plan_cache_mode = force_custom_plan
    AS $$
DECLARE
    unbound boolean := coalesce(current_setting('agentcore.users', true), '') = '';
BEGIN
    IF p_agent_id IS DISTINCT FROM current_setting('agentcore.agent_id', true) THEN
        RAISE EXCEPTION 'lexical_hits serves the agent of the transaction alone'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
        WITH posting AS MATERIALIZED (
            SELECT m.memory_id, m.timestamp, m.token_count, query.weight
              FROM unnest(p_keys, p_weights) AS query (key, weight)
             CROSS JOIN LATERAL (
                   SELECT held.memory_id, held.timestamp, held.token_count
                     FROM memories AS held
                    WHERE held.agent_id = p_agent_id
                      AND held.term_keys @> ARRAY[query.key]
                      AND (unbound OR of_bound_users(held.user_id, held.provenance -> 'users'))
                      AND memory_matches(held, p_filter)) AS m
        ), usual AS (
            SELECT greatest(1, avg(token_count)) AS token_count FROM posting
        )
        SELECT hit.memory_id, hit.weight::real
          FROM (SELECT p.memory_id,
                       sum(p.weight) * (p_k1 + 1) / (1 + p_k1 * (1 - p_b + p_b * max(p.token_count)
                                                                 / (SELECT u.token_count FROM usual AS u))) AS weight,
                       max(p.timestamp) AS timestamp
                  FROM posting AS p
                 GROUP BY p.memory_id
                 ORDER BY 2 DESC, 3 DESC
                 LIMIT p_limit) AS hit;
END
$$;

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
        NULL;
    END;
END
$$;

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
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['memories', 'memory_passages', 'memory_usage', 'memory_links', 'memory_history',
                                'memory_subjects', 'idempotency_keys', 'completed_tasks', 'agent_settings', 'llm_queue',
                                'late_episodes', 'llm_usage', 'lexical_terms', 'lexical_totals', 'lexical_deltas',
                                'archived_memories', 'archived_copies'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_agent ON %I TO agentcore_service, agentcore_bound '
                       'USING (agent_id = current_setting(''agentcore.agent_id'', true)) '
                       'WITH CHECK (agent_id = current_setting(''agentcore.agent_id'', true))', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO agentcore_service, agentcore_bound', name);
    END LOOP;

    FOREACH name IN ARRAY ARRAY['memory_usage', 'memory_history', 'memory_subjects'] LOOP
        EXECUTE format('CREATE POLICY own_users ON %I AS RESTRICTIVE TO agentcore_bound '
                       'USING (NOT of_other_users(agent_id, memory_id))', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['lexical_terms', 'lexical_totals', 'lexical_deltas'] LOOP
        EXECUTE format('CREATE POLICY own_users ON %I AS RESTRICTIVE FOR SELECT TO agentcore_bound USING (false)', name);
    END LOOP;

    FOREACH name IN ARRAY ARRAY['of_other_users', 'bound_frequencies', 'lexical_hits', 'own_job_lock', 'job_waits',
                                'enqueue_job', 'forget_jobs'] LOOP
        EXECUTE format('ALTER FUNCTION %I SET search_path = %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %I FROM PUBLIC', name);
    END LOOP;
END
$$;
GRANT EXECUTE ON FUNCTION of_other_users, bound_frequencies, lexical_hits, job_waits, enqueue_job, forget_jobs
    TO agentcore_service, agentcore_bound;

CREATE POLICY own_users ON memories AS RESTRICTIVE TO agentcore_bound
    USING (of_bound_users(user_id, provenance -> 'users'));
CREATE POLICY own_users ON memory_links AS RESTRICTIVE TO agentcore_bound
    USING (NOT of_other_users(agent_id, source_id) AND NOT of_other_users(agent_id, target_id));
CREATE POLICY own_users ON memory_passages AS RESTRICTIVE TO agentcore_bound
    USING (EXISTS (SELECT FROM memories m
                    WHERE m.agent_id = memory_passages.agent_id AND m.memory_id = memory_passages.memory_id));
CREATE POLICY own_users ON archived_memories AS RESTRICTIVE TO agentcore_bound
    USING (of_bound_users(user_id, users) AND (user_id IS NOT NULL OR users IS NOT NULL));
CREATE POLICY own_users ON archived_copies AS RESTRICTIVE TO agentcore_bound USING (of_bound_users(user_id, NULL));
