-- A user filter accepts several users, and null for memories without user. Adds a role for callers with tokens bound to
-- users, for which row security hides the rows of other users. Roles are global to the server: the migration of another
-- database may have created this one.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'agentcore_bound') THEN
        BEGIN
            CREATE ROLE agentcore_bound NOLOGIN NOSUPERUSER NOBYPASSRLS;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
    END IF;
    BEGIN
        EXECUTE format('GRANT agentcore_bound TO %I', current_user);
    EXCEPTION WHEN insufficient_privilege THEN
        IF NOT pg_has_role(current_user, 'agentcore_bound', 'MEMBER') THEN
            RAISE;
        END IF;
    END;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'the migrating role may not create or grant the role agentcore_bound'
        USING ERRCODE = 'insufficient_privilege',
              HINT = format('As an administrator run: CREATE ROLE agentcore_bound NOLOGIN; '
                            'GRANT agentcore_bound TO %I;', current_user);
END
$$;

CREATE FUNCTION user_matches(user_id text, wanted jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE jsonb_typeof(wanted)
           WHEN 'array' THEN user_id = ANY (json_texts(wanted)) OR (user_id IS NULL AND wanted @> 'null')
           ELSE user_id = wanted #>> '{}' END
    $$;

CREATE OR REPLACE FUNCTION memory_matches(m memories, filter jsonb) RETURNS boolean
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

CREATE OR REPLACE FUNCTION archived_matches(a archived_memories, filter jsonb) RETURNS boolean
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

-- Returns whether a row is visible to the users of the current transaction: they include its own user and all users of
-- the memories it was derived from. False without such users.
CREATE FUNCTION of_bound_users(p_user_id text, p_made_of jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT coalesce(nullif(current_setting('agentcore.users', true), '')::jsonb
                    @> coalesce(to_jsonb(p_user_id), 'null'), false)
       AND nullif(current_setting('agentcore.users', true), '')::jsonb @> coalesce(p_made_of, '[]')
    $$;

-- With the owner's rights: row security would make a memory of other users look like a deleted one, whose history and
-- links must remain accessible.
CREATE FUNCTION of_other_users(p_agent_id text, p_memory_id uuid) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER
    AS $$
    SELECT EXISTS (SELECT FROM memories AS m
                    WHERE m.agent_id = p_agent_id AND m.memory_id = p_memory_id
                      AND NOT of_bound_users(m.user_id, m.provenance -> 'users'))
    $$;

-- Document frequencies in the memories of the transaction's users: the agent's counts would reveal words of other
-- users.
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

-- As before, but BM25's k1 and b are passed by the caller (defined in agentcore/memory/lexical.py), and bound users get
-- their own memories only.
DROP FUNCTION lexical_hits(text, bigint[], real[], jsonb, integer, integer);
CREATE FUNCTION lexical_hits(p_agent_id text, p_keys bigint[], p_weights real[], p_filter jsonb, p_limit integer,
                             p_session_limit integer, p_k1 double precision, p_b double precision)
    RETURNS TABLE (memory_id uuid, session_id text, weight real)
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
            SELECT m.memory_id, m.session_id, m.timestamp, m.token_count, query.key, query.weight
              FROM unnest(p_keys, p_weights) AS query (key, weight)
             CROSS JOIN LATERAL (
                   SELECT held.memory_id, held.session_id, held.timestamp, held.token_count
                     FROM memories AS held
                    WHERE held.agent_id = p_agent_id
                      AND held.term_keys @> ARRAY[query.key]
                      AND (unbound OR of_bound_users(held.user_id, held.provenance -> 'users'))
                      AND memory_matches(held, p_filter)) AS m
        ), usual AS (
            SELECT greatest(1, avg(token_count)) AS token_count FROM posting
        ), memory AS (
            SELECT p.memory_id,
                   sum(p.weight) * (p_k1 + 1) / (1 + p_k1 * (1 - p_b + p_b * max(p.token_count)
                                                             / (SELECT u.token_count FROM usual AS u))) AS weight,
                   max(p.timestamp) AS timestamp
              FROM posting AS p
             GROUP BY p.memory_id
             ORDER BY 2 DESC, 3 DESC
             LIMIT p_limit
        ), session AS (
            SELECT said.session_id, sum(said.weight) AS weight
              FROM (SELECT DISTINCT p.session_id, p.key, p.weight FROM posting AS p
                     WHERE p.session_id IS NOT NULL) AS said
             GROUP BY said.session_id
             ORDER BY 2 DESC, 1
             LIMIT p_session_limit
        )
        SELECT memory.memory_id, NULL::text, memory.weight::real FROM memory
         UNION ALL
        SELECT NULL::uuid, session.session_id, session.weight::real FROM session;
END
$$;

DO $$
DECLARE
    definer text;
BEGIN
    FOREACH definer IN ARRAY ARRAY['of_other_users', 'bound_frequencies', 'lexical_hits'] LOOP
        EXECUTE format('ALTER FUNCTION %I SET search_path = %I, pg_temp', definer, current_schema());
        EXECUTE format('REVOKE ALL ON FUNCTION %I FROM PUBLIC', definer);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %I TO agentcore_service, agentcore_bound', definer);
    END LOOP;
END
$$;

-- Grants the role the service's privileges, on fewer rows: its grants and policies are copied table by table, so that
-- no membership in a role created by an administrator is necessary.
DO $$
DECLARE
    owned record;
BEGIN
    FOR owned IN SELECT schemaname, tablename, policyname FROM pg_policies
                  WHERE schemaname = current_schema() AND policyname = 'own_agent' LOOP
        EXECUTE format('ALTER POLICY own_agent ON %I TO agentcore_service, agentcore_bound', owned.tablename);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO agentcore_bound', owned.tablename);
    END LOOP;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO agentcore_bound', current_schema());
    -- Functions with the owner's rights that the service calls (jobs).
    FOR owned IN SELECT p.oid::regprocedure AS signature FROM pg_proc p
                  WHERE p.pronamespace = current_schema()::regnamespace AND p.prosecdef
                    AND has_function_privilege('agentcore_service', p.oid, 'EXECUTE') LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO agentcore_bound', owned.signature);
    END LOOP;
END
$$;

CREATE POLICY own_users ON memories AS RESTRICTIVE TO agentcore_bound
    USING (of_bound_users(user_id, provenance -> 'users'));
CREATE POLICY own_users ON archived_memories AS RESTRICTIVE TO agentcore_bound USING (of_bound_users(user_id, NULL));
CREATE POLICY own_users ON memory_links AS RESTRICTIVE TO agentcore_bound
    USING (NOT of_other_users(agent_id, source_id) AND NOT of_other_users(agent_id, target_id));
CREATE POLICY own_users ON memory_aliases AS RESTRICTIVE TO agentcore_bound
    USING (CASE WHEN memory_id IS NULL THEN of_bound_users(NULL, NULL) ELSE NOT of_other_users(agent_id, memory_id) END);
DO $$
DECLARE
    owned text;
BEGIN
    FOREACH owned IN ARRAY ARRAY['memory_usage', 'memory_history', 'memory_subjects'] LOOP
        EXECUTE format('CREATE POLICY own_users ON %I AS RESTRICTIVE TO agentcore_bound '
                       'USING (NOT of_other_users(agent_id, memory_id))', owned);
    END LOOP;
    -- Counts over all of the agent's words: bound callers may add to them, not read them.
    FOREACH owned IN ARRAY ARRAY['lexical_terms', 'lexical_totals', 'lexical_deltas'] LOOP
        EXECUTE format('CREATE POLICY own_users ON %I AS RESTRICTIVE FOR SELECT TO agentcore_bound USING (false)', owned);
    END LOOP;
END
$$;
