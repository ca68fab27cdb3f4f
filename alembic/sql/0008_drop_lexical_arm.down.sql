-- Both functions as in migrations 0001 and 0002.

-- Array operators are not leakproof: row security would turn the GIN index scan into a sequential scan. Therefore this
-- lookup runs with the owner's rights, only for the agent of the current transaction.
CREATE FUNCTION lexical_arm(p_agent_id text, p_keys bigint[], p_weights real[], p_filter jsonb, p_limit integer)
    RETURNS TABLE (memory_id uuid, weight real)
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET plan_cache_mode = force_custom_plan
    AS $$
BEGIN
    IF p_agent_id IS DISTINCT FROM current_setting('agentcore.agent_id', true) THEN
        RAISE EXCEPTION 'lexical_arm serves the agent of the transaction alone'
            USING ERRCODE = 'insufficient_privilege';
    END IF;
    RETURN QUERY
        SELECT posting.memory_id, sum(posting.weight)::real
          FROM (SELECT m.memory_id, m.timestamp, query.weight
                  FROM unnest(p_keys, p_weights) AS query (key, weight)
                 CROSS JOIN LATERAL (
                       SELECT held.memory_id, held.timestamp
                         FROM memories AS held
                        WHERE held.agent_id = p_agent_id
                          AND held.term_keys @> ARRAY[query.key]
                          AND memory_matches(held, p_filter)) AS m) AS posting
         GROUP BY posting.memory_id
         ORDER BY sum(posting.weight) DESC, max(posting.timestamp) DESC
         LIMIT p_limit;
END
$$;
-- Temporary objects last: by default they are searched first, and a caller's temporary `memories` would replace ours.
DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION lexical_arm SET search_path = %I, pg_temp', current_schema());
END
$$;
REVOKE ALL ON FUNCTION lexical_arm FROM PUBLIC;
GRANT EXECUTE ON FUNCTION lexical_arm TO agentcore_service;

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
