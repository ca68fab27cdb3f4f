-- Returns in one pass over the postings the memories that contain these terms, by BM25 with each term counted once and
-- the length in tokens, and their sessions, by the sum of the weights of their distinct terms. Runs with the owner's
-- rights for the same reason as lexical_arm.
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
