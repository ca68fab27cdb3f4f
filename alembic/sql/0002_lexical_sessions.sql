-- Returns the sessions whose memories contain these terms, by the sum of the weights of their distinct terms. Runs with
-- the owner's rights for the same reason as lexical_arm.
CREATE FUNCTION lexical_sessions(p_agent_id text, p_keys bigint[], p_weights real[], p_filter jsonb, p_limit integer)
    RETURNS TABLE (session_id text, weight real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET plan_cache_mode = force_custom_plan
    AS $$
BEGIN
    IF p_agent_id IS DISTINCT FROM current_setting('agentcore.agent_id', true) THEN
        RAISE EXCEPTION 'lexical_sessions serves the agent of the transaction alone'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
        SELECT said.session_id, sum(said.weight)::real
          FROM (SELECT DISTINCT m.session_id, query.key, query.weight
                  FROM unnest(p_keys, p_weights) AS query (key, weight)
                 CROSS JOIN LATERAL (
                       SELECT held.session_id
                         FROM memories AS held
                        WHERE held.agent_id = p_agent_id
                          AND held.term_keys @> ARRAY[query.key]
                          AND held.session_id IS NOT NULL
                          AND memory_matches(held, p_filter)) AS m) AS said
         GROUP BY said.session_id
         ORDER BY sum(said.weight) DESC, said.session_id
         LIMIT p_limit;
END
$$;
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION lexical_sessions SET search_path = %I, pg_temp', current_schema());
END
$$;
REVOKE ALL ON FUNCTION lexical_sessions FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lexical_sessions TO agentcore_service;
