-- The first schema. All of an agent's rows are looked up by agent_id; memories are hash-partitioned by it. Functions
-- that run with their owner's rights have a fixed search path.

CREATE EXTENSION IF NOT EXISTS vector;

-- The role of the service: it owns no objects, is subject to row security, and has privileges on parent tables only.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'agentcore_service') THEN
        CREATE ROLE agentcore_service NOLOGIN NOSUPERUSER NOBYPASSRLS;
    END IF;
    BEGIN
        -- The creator of a role may administer it, which since PostgreSQL 16 does not include SET ROLE.
        EXECUTE format('GRANT agentcore_service TO %I', current_user);
    EXCEPTION WHEN insufficient_privilege THEN
        IF NOT pg_has_role(current_user, 'agentcore_service', 'MEMBER') THEN
            RAISE;
        END IF;
    END;
EXCEPTION WHEN insufficient_privilege THEN
    RAISE EXCEPTION 'the migrating role may not create or grant the role agentcore_service'
        USING ERRCODE = 'insufficient_privilege',
              HINT = format('As an administrator run: CREATE ROLE agentcore_service NOLOGIN; '
                            'GRANT agentcore_service TO %I;', current_user);
END
$$;

CREATE TABLE memories (
    agent_id          text        NOT NULL,
    memory_id         uuid        NOT NULL,
    memory_type       text        NOT NULL
                      CHECK (memory_type IN ('working', 'episodic', 'semantic', 'procedural')),
    content           text        NOT NULL,
    summary           text        NOT NULL,
    embedding         halfvec,
    embedding_model   text,
    timestamp         timestamptz NOT NULL,
    interaction_id    text,
    task_id           text,
    session_id        text,
    user_id           text,
    namespace         text,
    speaker           text,
    external_id       text,
    actions           jsonb,
    outcome           jsonb,
    action_outcomes   jsonb,
    entities          text[]      NOT NULL DEFAULT '{}',
    entity_keys       text[]      NOT NULL DEFAULT '{}',
    facts             text[]      NOT NULL DEFAULT '{}',
    keywords          text[]      NOT NULL DEFAULT '{}',
    tags              text[]      NOT NULL DEFAULT '{}',
    metadata          jsonb       NOT NULL DEFAULT '{}',
    relevance_score   real        NOT NULL DEFAULT 0.5 CHECK (relevance_score BETWEEN 0 AND 1),
    pinned            boolean     NOT NULL DEFAULT false,
    expires_at        timestamptz,
    valid_from        timestamptz,
    valid_to          timestamptz,
    superseded_by     uuid,
    parent_memory_id  uuid,
    provenance        jsonb       NOT NULL DEFAULT '{}',
    content_hash      bytea       NOT NULL,
    term_keys         bigint[]    NOT NULL DEFAULT '{}',
    token_count       integer     NOT NULL DEFAULT 0,
    version           integer     NOT NULL DEFAULT 1,
    created_at        timestamptz NOT NULL DEFAULT now(),
    updated_at        timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, memory_id)
) PARTITION BY HASH (agent_id);

-- Vectors are stored inline: an exact search reads all vectors of an agent.
ALTER TABLE memories ALTER COLUMN embedding SET STORAGE MAIN;

DO $$
BEGIN
    FOR part IN 0..31 LOOP
        EXECUTE format('CREATE TABLE memories_p%s PARTITION OF memories '
                       'FOR VALUES WITH (MODULUS 32, REMAINDER %s)', lpad(part::text, 2, '0'), part);
    END LOOP;
END
$$;

CREATE INDEX memories_by_time ON memories (agent_id, timestamp DESC, memory_id DESC);
CREATE INDEX memories_by_type ON memories (agent_id, memory_type, timestamp DESC);
CREATE INDEX memories_by_task ON memories (agent_id, task_id, timestamp DESC) WHERE task_id IS NOT NULL;
CREATE INDEX memories_by_session ON memories (agent_id, session_id, timestamp DESC) WHERE session_id IS NOT NULL;
CREATE INDEX memories_by_hash ON memories (agent_id, content_hash);
CREATE INDEX memories_by_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_without_vector ON memories (created_at) WHERE embedding IS NULL;
-- Term keys are digests of (agent, term), so two agents never share a posting.
CREATE INDEX memories_terms ON memories USING gin (term_keys) WITH (fastupdate = off);

CREATE TABLE memory_usage (
    agent_id      text        NOT NULL,
    memory_id     uuid        NOT NULL,
    access_count  integer     NOT NULL DEFAULT 0,
    last_accessed timestamptz NOT NULL,
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
    changed_at timestamptz NOT NULL DEFAULT now(),
    token_id   text,
    trace_id   text,
    before     jsonb,
    after      jsonb,
    PRIMARY KEY (agent_id, memory_id, change_id)
);

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
    PRIMARY KEY (agent_id, memory_id)
);

CREATE TABLE completed_tasks (
    agent_id     text        NOT NULL,
    task_id      text        NOT NULL,
    completed_at timestamptz NOT NULL,
    PRIMARY KEY (agent_id, task_id)
);

-- Document frequencies of each agent's memories. Stores append deltas, which a background task folds: updating counters
-- in the store's transaction would serialize an agent's stores on common words.
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
    agent_id     text     NOT NULL,
    delta_id     bigint   NOT NULL GENERATED ALWAYS AS IDENTITY,
    memory_count integer  NOT NULL,
    term_count   bigint   NOT NULL,
    term_keys    bigint[] NOT NULL,
    term_memories integer[] NOT NULL,
    PRIMARY KEY (agent_id, delta_id)
);

-- The only definition of the filters of DESIGN section 4, with the keys of Filters.conditions(). The service case-folds
-- entities and keywords of both sides, because lower() differs between databases.
CREATE FUNCTION json_texts(value jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT jsonb_array_elements_text(value));

CREATE FUNCTION memory_matches(m memories, filter jsonb) RETURNS boolean
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
       AND (filter ->> 'current' IS NULL OR m.superseded_by IS NULL)
       AND (filter ->> 'as_of' IS NULL
            OR (m.timestamp <= (filter ->> 'as_of')::timestamptz
                AND (m.valid_from IS NULL OR m.valid_from <= (filter ->> 'as_of')::timestamptz)
                AND (m.valid_to IS NULL OR m.valid_to > (filter ->> 'as_of')::timestamptz)))
    $$;

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

-- Second line of defense: if a statement omits the agent, row security still limits it to its own agent's rows.
DO $$
DECLARE
    owned text;
BEGIN
    FOREACH owned IN ARRAY ARRAY['memories', 'memory_usage', 'memory_links', 'memory_history', 'idempotency_keys',
                                 'archived_memories', 'completed_tasks', 'lexical_terms', 'lexical_totals',
                                 'lexical_deltas'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', owned);
        EXECUTE format('CREATE POLICY own_agent ON %I TO agentcore_service '
                       'USING (agent_id = current_setting(''agentcore.agent_id'', true)) '
                       'WITH CHECK (agent_id = current_setting(''agentcore.agent_id'', true))', owned);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO agentcore_service', owned);
    END LOOP;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO agentcore_service', current_schema());
END
$$;
