-- Functions, and which rows each role sees. `agentcore migrate` and `alembic upgrade head` execute this file as a whole
-- after the newest revision, in its transaction. So a change of this file needs a revision, which drops what CREATE OR
-- REPLACE cannot replace.
--
-- Functions that run with their owner's rights (SECURITY DEFINER) check the agent themselves and have a fixed search_path.

-- All tables of agents in one statement, in the order of an erasure: archive records, memories, the others. The policies
-- below would lock them one by one.
DO $$
BEGIN
    EXECUTE (SELECT format('LOCK TABLE %s IN ACCESS EXCLUSIVE MODE', string_agg(
                        t.oid::regclass::text, ', '
                        ORDER BY t.relname <> 'archived_memories', t.relname <> 'memories', t.relname))
               FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'agent_id'
              WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p')
                AND NOT t.relispartition);
END
$$;

-- --- filters ----------------------------------------------------------------------------------------------------------

CREATE OR REPLACE FUNCTION json_texts(value jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT jsonb_array_elements_text(value));

-- `wanted` is a user or an array of users; null in it: memories without a user.
CREATE OR REPLACE FUNCTION user_matches(user_id text, wanted jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE jsonb_typeof(wanted)
           WHEN 'array' THEN user_id = ANY (json_texts(wanted)) OR (user_id IS NULL AND wanted @> 'null')
           ELSE user_id = wanted #>> '{}' END
    $$;

CREATE OR REPLACE FUNCTION is_live(expires_at timestamptz, pinned boolean) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$ SELECT expires_at IS NULL OR pinned OR expires_at > now() $$;

-- Whether a user said it, rather than an assistant; an interaction contains both sides.
CREATE OR REPLACE FUNCTION is_user_turn(kind text, metadata jsonb, speaker text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT kind = 'interaction' OR lower(coalesce(metadata ->> 'role', speaker, 'user')) IN ('user', 'human') $$;

-- The definition of the filters of all methods; the keys are those of Filters.conditions(). Entities and keywords are
-- case-folded by the service on both sides: lower() of a database differs.
CREATE OR REPLACE FUNCTION memory_matches(m anyelement, filter jsonb) RETURNS boolean
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

-- The same for archived memories; the keys are those of ArchiveFilters.conditions().
CREATE OR REPLACE FUNCTION archived_matches(a anyelement, filter jsonb) RETURNS boolean
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

-- --- settings of a transaction ----------------------------------------------------------------------------------------

-- Citus sends SET LOCAL, not set_config, to the workers; the role it takes from the connection.
CREATE OR REPLACE FUNCTION set_on_workers(settings json) RETURNS void
    LANGUAGE plpgsql VOLATILE
    AS $$
DECLARE
    name text;
    setting text;
BEGIN
    PERFORM set_config('citus.propagate_set_commands', 'local', true);
    FOR name, setting IN SELECT * FROM json_each_text(settings) AS each (name, setting) WHERE each.name <> 'role' LOOP
        EXECUTE format('SET LOCAL %s = %L', name, setting);
    END LOOP;
    -- Citus plans few statements without their parameters.
    SET LOCAL plan_cache_mode = force_custom_plan;
    -- lexical_hits and of_other_users read, on the worker of the agent's rows, other rows of this agent.
    SET LOCAL citus.allow_nested_distributed_execution = on;
END
$$;

-- Sets settings of the transaction, on all nodes that it uses.
CREATE OR REPLACE FUNCTION set_for_transaction(settings json) RETURNS void
    LANGUAGE plpgsql VOLATILE
    AS $$
BEGIN
    PERFORM set_config(name, setting, true) FROM json_each_text(settings) AS each (name, setting);
    IF current_setting('citus.propagate_set_commands', true) IS NOT NULL THEN
        -- In a function of its own: Citus takes the first statement of a pipeline for no part of a transaction.
        PERFORM set_on_workers(settings);
    END IF;
END
$$;

-- --- tokens bound to users --------------------------------------------------------------------------------------------

-- Whether a row belongs to the transaction's users: its own user, and all users whose memories it was derived from. Setting
-- agentcore.users: a JSON array of users; `*`: all users; empty: no row belongs.
CREATE OR REPLACE FUNCTION of_bound_users(p_user_id text, p_made_of jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT coalesce(current_setting('agentcore.users', true), '') = '*'
        OR coalesce(nullif(nullif(current_setting('agentcore.users', true), ''), '*')::jsonb
                    @> coalesce(to_jsonb(p_user_id), 'null'), false)
           AND nullif(nullif(current_setting('agentcore.users', true), ''), '*')::jsonb @> coalesce(p_made_of, '[]')
    $$;

-- With the owner's rights: row security would not tell another user's memory from a deleted one, whose history and links
-- must still be found.
CREATE OR REPLACE FUNCTION of_other_users(p_agent_id text, p_memory_id uuid) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER
    AS $$
    SELECT EXISTS (SELECT FROM memories AS m
                    WHERE m.agent_id = p_agent_id AND m.memory_id = p_memory_id
                      AND NOT of_bound_users(m.user_id, m.provenance -> 'users'))
    $$;

-- --- word search ------------------------------------------------------------------------------------------------------

-- In how many memories of the transaction's users each term occurs: the agent's own counts would reveal others' words.
CREATE OR REPLACE FUNCTION bound_frequencies(p_agent_id text, p_keys bigint[]) RETURNS TABLE (term_key bigint, memory_count bigint)
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

-- The memories that contain these terms, best first, by BM25 with each term counted once and the length in tokens. k1 and b
-- are those of agentcore/memory/lexical.py. With the owner's rights: array operators are not leakproof, so under row
-- security the GIN index would not be used.
CREATE OR REPLACE FUNCTION lexical_hits(p_agent_id text, p_keys bigint[], p_weights real[], p_filter jsonb, p_limit integer,
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

-- --- jobs -------------------------------------------------------------------------------------------------------------
-- The service's roles have no rights on procrastinate's tables: these functions work for the transaction's agent only. A
-- job's lock is a digest that contains the agent, so no agent can collide with another.

CREATE OR REPLACE FUNCTION own_job_lock(p_agent_id text, p_lock text) RETURNS text
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

-- Whether a job with this lock is pending. If so it starts after this transaction has ended: a worker takes the advisory
-- lock before it starts a job.
CREATE OR REPLACE FUNCTION job_waits(p_agent_id text, p_lock text) RETURNS boolean
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    AS $$
DECLARE
    own_lock text := own_job_lock(p_agent_id, p_lock);
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(own_lock, 0));
    RETURN EXISTS (SELECT FROM procrastinate_jobs WHERE queueing_lock = own_lock AND status = 'todo');
END
$$;

-- Enqueues a job for the agent, unless one with the same lock is pending. The queue is named after the job: a worker of
-- another version takes no job that it does not know.
CREATE OR REPLACE FUNCTION enqueue_job(p_agent_id text, p_name text, p_ids jsonb, p_lock text, p_not_before timestamptz)
    RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER
    AS $$
DECLARE
    own_lock text := own_job_lock(p_agent_id, p_lock);
BEGIN
    IF job_waits(p_agent_id, p_lock) THEN
        RETURN;
    END IF;
    -- In the function's own schema: a caller's temporary table of this name could have a trigger, which would run with the
    -- owner's rights.
    IF to_regclass(format('%I.two_phase_commits', current_schema())) IS NOT NULL THEN
        -- Makes Citus commit in two phases: without it a worker commits before the coordinator, and a crash in between
        -- would lose the job.
        EXECUTE format('DELETE FROM %I.two_phase_commits', current_schema());
    END IF;
    BEGIN
        PERFORM procrastinate_defer_jobs_v1(ARRAY[ROW(
            p_name, p_name, 0, own_lock, own_lock, p_ids || jsonb_build_object('agent_id', p_agent_id),
            p_not_before)::procrastinate_job_to_defer_v1]);
    EXCEPTION WHEN unique_violation THEN
        -- Another transaction has just enqueued the same job.
        NULL;
    END;
END
$$;

-- Deletes every job of the agent and returns their number. A running one is not stopped.
CREATE OR REPLACE FUNCTION forget_jobs(p_agent_id text) RETURNS integer
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

-- --- row security -----------------------------------------------------------------------------------------------------

-- The outbox of an external vector store. The trigger `vector_changed` exists only while such a store is used.
CREATE OR REPLACE FUNCTION record_vector_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    AS $$
BEGIN
    IF TG_OP = 'INSERT' AND NEW.embedding IS NULL AND NEW.next_embedding IS NULL THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND (OLD.embedding, OLD.embedding_model, OLD.next_embedding, OLD.next_embedding_model,
                             OLD.user_id, OLD.session_id, OLD.memory_type, OLD.timestamp) IS NOT DISTINCT FROM
                            (NEW.embedding, NEW.embedding_model, NEW.next_embedding, NEW.next_embedding_model,
                             NEW.user_id, NEW.session_id, NEW.memory_type, NEW.timestamp) THEN
        RETURN NULL;
    END IF;
    INSERT INTO vector_changes (agent_id, memory_id)
    VALUES (coalesce(NEW.agent_id, OLD.agent_id), coalesce(NEW.memory_id, OLD.memory_id));
    RETURN NULL;
END
$$;

-- One policy for each role: Citus creates a restrictive policy as a permissive one on the workers.
DO $$
DECLARE
    name text;
    own_users text;
    distributed constant boolean := NOT EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = 'memories'::regclass);
    own_agent constant text := 'agent_id = current_setting(''agentcore.agent_id'', true)';
BEGIN
    FOR name, own_users IN VALUES
        ('memories', 'of_bound_users(user_id, provenance -> ''users'')'),
        -- The subquery is under row security, too: it finds only memories of the bound users.
        -- Citus refuses it.
        ('memory_passages', CASE WHEN distributed THEN 'NOT of_other_users(agent_id, memory_id)'
                            ELSE 'EXISTS (SELECT FROM memories m WHERE m.agent_id = memory_passages.agent_id '
                                 'AND m.memory_id = memory_passages.memory_id)' END),
        ('memory_usage', 'NOT of_other_users(agent_id, memory_id)'),
        ('memory_links', 'NOT of_other_users(agent_id, source_id) AND NOT of_other_users(agent_id, target_id)'),
        ('memory_history', 'NOT of_other_users(agent_id, memory_id)'),
        ('memory_subjects', 'NOT of_other_users(agent_id, memory_id)'),
        ('idempotency_keys', 'true'),
        ('completed_tasks', 'true'),
        ('agent_settings', 'true'),
        ('llm_queue', 'true'),
        ('late_episodes', 'true'),
        ('llm_usage', 'true'),
        ('lexical_terms', NULL),
        ('lexical_totals', NULL),
        ('lexical_deltas', NULL),
        ('archived_memories', 'of_bound_users(user_id, users) AND (user_id IS NOT NULL OR users IS NOT NULL)'),
        ('archived_copies', 'of_bound_users(user_id, NULL)'),
        ('vector_changes', 'true')
    LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('DROP POLICY IF EXISTS own_agent ON %I', name);
        EXECUTE format('DROP POLICY IF EXISTS own_users ON %I', name);
        EXECUTE format('CREATE POLICY own_agent ON %I TO agentcore_service USING (%s)', name, own_agent);
        IF own_users IS NULL THEN
            -- Counts over all words of the agent: bound callers add to them, and read none.
            EXECUTE format('CREATE POLICY own_users ON %I FOR INSERT TO agentcore_bound WITH CHECK (%s)', name, own_agent);
        ELSE
            EXECUTE format('CREATE POLICY own_users ON %I TO agentcore_bound USING (%s AND %s)', name, own_agent, own_users);
        END IF;
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO agentcore_service, agentcore_bound', name);
    END LOOP;

    -- Searches of large agents name the partition, so that their plan is made once.
    FOR name IN SELECT c.relname FROM pg_inherits h JOIN pg_class c ON c.oid = h.inhrelid
                 WHERE h.inhparent = 'memories'::regclass LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('DROP POLICY IF EXISTS own_agent ON %I', name);
        EXECUTE format('CREATE POLICY own_agent ON %I FOR SELECT TO agentcore_service USING (%s)', name, own_agent);
        EXECUTE format('GRANT SELECT ON %I TO agentcore_service', name);
    END LOOP;

    -- Temporary objects last in the path: by default they come first, and a caller's own `memories` would be read.
    FOREACH name IN ARRAY ARRAY['of_other_users', 'bound_frequencies', 'lexical_hits', 'own_job_lock', 'job_waits',
                                'enqueue_job', 'forget_jobs', 'record_vector_change'] LOOP
        EXECUTE format('ALTER FUNCTION %I SET search_path = %I, pg_temp', name, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %I FROM PUBLIC', name);
    END LOOP;
END
$$;
GRANT EXECUTE ON FUNCTION of_other_users, bound_frequencies, lexical_hits, job_waits, enqueue_job, forget_jobs
    TO agentcore_service, agentcore_bound;
