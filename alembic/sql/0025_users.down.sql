DO $$
DECLARE
    owned record;
BEGIN
    FOR owned IN SELECT tablename FROM pg_policies WHERE schemaname = current_schema() AND policyname = 'own_users' LOOP
        EXECUTE format('DROP POLICY own_users ON %I', owned.tablename);
    END LOOP;
    FOR owned IN SELECT tablename FROM pg_policies WHERE schemaname = current_schema() AND policyname = 'own_agent' LOOP
        EXECUTE format('ALTER POLICY own_agent ON %I TO agentcore_service', owned.tablename);
    END LOOP;
    EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM agentcore_bound', current_schema());
    EXECUTE format('REVOKE ALL ON ALL FUNCTIONS IN SCHEMA %I FROM agentcore_bound', current_schema());
    EXECUTE format('REVOKE ALL ON SCHEMA %I FROM agentcore_bound', current_schema());
END
$$;
DROP FUNCTION bound_frequencies, of_other_users, lexical_hits;
CREATE FUNCTION lexical_hits(p_agent_id text, p_keys bigint[], p_weights real[], p_filter jsonb, p_limit integer,
                             p_session_limit integer)
    RETURNS TABLE (memory_id uuid, session_id text, weight real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET plan_cache_mode = force_custom_plan
    AS $$
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
                      AND memory_matches(held, p_filter)) AS m
        ), usual AS (
            SELECT greatest(1, avg(token_count)) AS token_count FROM posting
        ), memory AS (
            SELECT p.memory_id,
                   sum(p.weight) * 2.2 / (1 + 1.2 * (0.25 + 0.75 * max(p.token_count)
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
BEGIN
    EXECUTE format('ALTER FUNCTION lexical_hits SET search_path = %I, pg_temp', current_schema());
END
$$;
REVOKE ALL ON FUNCTION lexical_hits FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lexical_hits TO agentcore_service;
CREATE OR REPLACE FUNCTION memory_matches(m memories, filter jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT (m.expires_at IS NULL OR m.pinned OR m.expires_at > now())
       AND (filter -> 'memory_types' IS NULL OR m.memory_type = ANY (json_texts(filter -> 'memory_types')))
       AND (filter ->> 'task_id' IS NULL OR m.task_id = filter ->> 'task_id')
       AND (filter ->> 'session_id' IS NULL OR m.session_id = filter ->> 'session_id')
       AND (filter ->> 'user_id' IS NULL OR m.user_id = filter ->> 'user_id')
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
       AND (filter ->> 'user_id' IS NULL OR a.user_id = filter ->> 'user_id')
       AND (filter ->> 'namespace' IS NULL OR a.namespace = filter ->> 'namespace')
       AND (filter -> 'tags' IS NULL OR a.tags && json_texts(filter -> 'tags'))
       AND (filter ->> 'after' IS NULL OR a.timestamp >= (filter ->> 'after')::timestamptz)
       AND (filter ->> 'before' IS NULL OR a.timestamp < (filter ->> 'before')::timestamptz)
       AND (filter ->> 'archived_after' IS NULL OR a.archived_at >= (filter ->> 'archived_after')::timestamptz)
       AND (filter ->> 'archived_before' IS NULL OR a.archived_at < (filter ->> 'archived_before')::timestamptz)
    $$;
DROP FUNCTION of_bound_users, user_matches;
