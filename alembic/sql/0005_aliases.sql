-- Two forms of one name, and the memory that stated it; null if the caller set them. Each form has a key by which
-- queries find it: a digest of its words keyed by agent, as for single terms.
CREATE TABLE memory_aliases (
    agent_id   text        NOT NULL,
    alias_id   bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    alias      text        NOT NULL,
    means      text        NOT NULL,
    alias_key  bigint      NOT NULL,
    means_key  bigint      NOT NULL,
    memory_id  uuid,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, alias_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
CREATE UNIQUE INDEX memory_aliases_set ON memory_aliases (agent_id, alias_key) WHERE memory_id IS NULL;
CREATE INDEX memory_aliases_by_alias ON memory_aliases (agent_id, alias_key, memory_id);
CREATE INDEX memory_aliases_by_means ON memory_aliases (agent_id, means_key, memory_id);
CREATE INDEX memory_aliases_by_memory ON memory_aliases (agent_id, memory_id) WHERE memory_id IS NOT NULL;

ALTER TABLE memory_aliases ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_agent ON memory_aliases TO agentcore_service
    USING (agent_id = current_setting('agentcore.agent_id', true))
    WITH CHECK (agent_id = current_setting('agentcore.agent_id', true));
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_aliases TO agentcore_service;

-- A function, so that only queries with a known form pay for planning the join. It runs with the caller's rights: the
-- operator on keys is leakproof, so row security allows index scans.
CREATE FUNCTION other_forms(p_agent_id text, p_keys bigint[], p_reach jsonb, p_limit integer)
    RETURNS TABLE (key bigint, written text, other text, is_alias boolean, is_set boolean)
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM memory_aliases AS a WHERE a.agent_id = p_agent_id AND a.alias_key = ANY (p_keys))
       AND NOT EXISTS (SELECT FROM memory_aliases AS a WHERE a.agent_id = p_agent_id AND a.means_key = ANY (p_keys))
    THEN
        RETURN;
    END IF;
    RETURN QUERY
        SELECT asked.key, found.written, found.other, found.is_alias, found.memory_id IS NULL
          FROM unnest(p_keys) AS asked (key)
         CROSS JOIN LATERAL (
               (SELECT a.alias AS written, a.means AS other, true AS is_alias, a.memory_id
                  FROM memory_aliases AS a
                 WHERE a.agent_id = p_agent_id AND a.alias_key = asked.key
                   AND (a.memory_id IS NULL
                        OR EXISTS (SELECT FROM memories AS m
                                    WHERE m.agent_id = p_agent_id AND m.memory_id = a.memory_id
                                      AND memory_matches(m, p_reach)))
                 ORDER BY a.memory_id DESC LIMIT p_limit)
                UNION ALL
               (SELECT a.means, a.alias, false, a.memory_id
                  FROM memory_aliases AS a
                 WHERE a.agent_id = p_agent_id AND a.means_key = asked.key
                   AND (a.memory_id IS NULL
                        OR EXISTS (SELECT FROM memories AS m
                                    WHERE m.agent_id = p_agent_id AND m.memory_id = a.memory_id
                                      AND memory_matches(m, p_reach)))
                 ORDER BY a.memory_id DESC LIMIT p_limit)
               ) AS found
         ORDER BY found.memory_id IS NULL DESC, found.memory_id DESC, found.written, found.other;
END
$$;
