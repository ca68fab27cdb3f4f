-- The schema of AgentCore Memory. A new database gets exactly this; a migration that changes it changes this file, too.
--
-- Every table that an agent owns has agent_id first in its primary key, and row security:
--   agentcore_service  the role of the service: only rows of the transaction's agent (setting agentcore.agent_id)
--   agentcore_bound    the role of callers whose token is bound to users: of those only rows of these users
--                      (setting agentcore.users, a JSON array; null in it: memories without a user)
-- Functions that run with their owner's rights (SECURITY DEFINER) check the agent themselves and have a fixed search_path.
-- Vector indexes are not part of the schema: the index keeper builds them on existing rows.
-- procrastinate.sql, the tables of the job queue, runs before this file.

CREATE EXTENSION IF NOT EXISTS vector;

-- --- roles ------------------------------------------------------------------------------------------------------------
-- Roles belong to the whole server: another database's migration may create the same ones at the same time.
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
                -- Since PostgreSQL 16 the creator of a role may administer it, but not SET ROLE to it.
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

-- --- memories ---------------------------------------------------------------------------------------------------------

CREATE TABLE memories (
    agent_id             text        NOT NULL,
    memory_id            uuid        NOT NULL,  -- UUID version 7: ordered by time of creation
    memory_type          text        NOT NULL
                         CHECK (memory_type IN ('working', 'episodic', 'semantic', 'procedural')),
    kind                 text        GENERATED ALWAYS AS (provenance ->> 'form') STORED
                         CHECK (kind IN ('content', 'interaction', 'fact', 'consolidation', 'session', 'period')),
    content              text        NOT NULL,
    summary              text        NOT NULL,
    response             text,                  -- an assistant's answer with its reasoning, if keep_reasoning was set
    embedding            halfvec,
    embedding_model      text,                  -- with 'refused:' if the model refuses the text
    next_embedding       halfvec,               -- of the next model, during a re-embedding
    next_embedding_model text,
    timestamp            timestamptz NOT NULL,
    event_from           timestamptz,           -- the time that the content names ("yesterday", "in May 2023"):
    event_to             timestamptz,           -- from, and before
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
    entity_keys          text[]      NOT NULL DEFAULT '{}',  -- entities, case-folded by the service
    facts                text[]      NOT NULL DEFAULT '{}',
    keywords             text[]      NOT NULL DEFAULT '{}',
    tags                 text[]      NOT NULL DEFAULT '{}',
    metadata             jsonb       NOT NULL DEFAULT '{}',
    relevance_score      real        NOT NULL DEFAULT 0.5 CHECK (relevance_score BETWEEN 0 AND 1),
    pinned               boolean     NOT NULL DEFAULT false,
    flagged              boolean     NOT NULL DEFAULT false, -- matches a pattern of injected instructions
    expires_at           timestamptz,
    ttl_seconds          bigint,                -- to renew expires_at; null if it was never given
    valid_from           timestamptz,
    valid_to             timestamptz,
    superseded_by        uuid,
    parent_memory_id     uuid,                  -- of a fact: the memory that it was extracted from
    provenance           jsonb       NOT NULL DEFAULT '{}',
    content_hash         bytea       NOT NULL,
    term_keys            bigint[]    NOT NULL DEFAULT '{}',  -- digests of (agent, term)
    token_count          integer     NOT NULL DEFAULT 0,
    version              integer     NOT NULL DEFAULT 1,
    created_at           timestamptz NOT NULL DEFAULT now(),
    updated_at           timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, memory_id)
) PARTITION BY HASH (agent_id);

-- Vectors are stored in the row: an exact search reads all of an agent's.
ALTER TABLE memories ALTER COLUMN embedding SET STORAGE MAIN, ALTER COLUMN next_embedding SET STORAGE MAIN;

CREATE INDEX memories_by_time ON memories (agent_id, timestamp DESC, memory_id DESC);
CREATE INDEX memories_by_type ON memories (agent_id, memory_type, timestamp DESC);
CREATE INDEX memories_by_task ON memories (agent_id, task_id, timestamp DESC) WHERE task_id IS NOT NULL;
CREATE INDEX memories_by_session ON memories (agent_id, session_id, timestamp DESC) WHERE session_id IS NOT NULL;
CREATE INDEX memories_by_user ON memories (agent_id, user_id, timestamp DESC) WHERE user_id IS NOT NULL;
CREATE INDEX memories_by_hash ON memories (agent_id, content_hash);
CREATE INDEX memories_by_parent ON memories (agent_id, parent_memory_id) WHERE parent_memory_id IS NOT NULL;
CREATE INDEX memories_by_successor ON memories (agent_id, superseded_by) WHERE superseded_by IS NOT NULL;
-- The end first: most questions are about recent times, and fewer spans end after such a time than begin before it.
CREATE INDEX memories_by_event ON memories (agent_id, event_to, event_from) WHERE event_to IS NOT NULL;
CREATE INDEX memories_flagged ON memories (agent_id) WHERE flagged;
CREATE INDEX memories_by_expiry ON memories (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX memories_without_vector ON memories (created_at) WHERE embedding IS NULL;
-- A key contains the agent, so a posting list never has rows of two agents.
CREATE INDEX memories_terms ON memories USING gin (term_keys) WITH (fastupdate = off);

-- Vectors of a long memory's later passages; the memory's own vector covers the first. `start` and `end` are offsets in
-- `memories.content`, in characters. One row for each model that the passage was embedded with.
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

-- Counted apart from the memory, so that counting an access does not rewrite its row.
CREATE TABLE memory_usage (
    agent_id      text        NOT NULL,
    memory_id     uuid        NOT NULL,
    access_count  integer     NOT NULL DEFAULT 0,
    last_accessed timestamptz NOT NULL,
    uses_in_life  integer     NOT NULL DEFAULT 0,  -- since the time to live was set or renewed
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

-- Every change of a memory. No foreign key: it outlives the memory.
CREATE TABLE memory_history (
    agent_id   text        NOT NULL,
    memory_id  uuid        NOT NULL,
    change_id  bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    operation  text        NOT NULL,
    version    integer,                         -- that the change made; null if the memory itself did not change
    changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    token_id   text,
    trace_id   text,
    before     jsonb,
    after      jsonb,
    PRIMARY KEY (agent_id, memory_id, change_id)
);

-- What current memories state something about: digests of subjects.
CREATE TABLE memory_subjects (
    agent_id    text   NOT NULL,
    subject_key bigint NOT NULL,
    memory_id   uuid   NOT NULL,
    PRIMARY KEY (agent_id, subject_key, memory_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories ON DELETE CASCADE
);
-- Not the agent first: for an agent without statistics the planner would prefer this index to the primary key.
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
    consolidated_to uuid,                       -- episodes up to this id were processed
    models          jsonb       NOT NULL DEFAULT '{}'  -- fact extraction and session summaries
);

-- --- pending work -----------------------------------------------------------------------------------------------------

-- Memories pending for a model. The transaction that writes the result deletes the row, so each is processed once.
CREATE TABLE llm_queue (
    agent_id      text        NOT NULL,
    memory_id     uuid        NOT NULL,
    work          text        NOT NULL
                  CHECK (work IN ('facts', 'summary', 'refresh', 'period', 'relations', 'passages')),
    session_id    text,
    user_turn     boolean     NOT NULL DEFAULT false,
    again         boolean     NOT NULL DEFAULT false,  -- its summary was deleted: due at once
    queued_at     timestamptz NOT NULL DEFAULT now(),
    failing_since timestamptz,
    tries         smallint    NOT NULL DEFAULT 0,      -- failed requests about this memory alone
    PRIMARY KEY (agent_id, work, memory_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories (agent_id, memory_id) ON DELETE CASCADE
);
CREATE INDEX llm_queue_of_session ON llm_queue (agent_id, session_id) WHERE work = 'summary';
CREATE INDEX llm_queue_of_memory ON llm_queue (agent_id, memory_id);
CREATE INDEX llm_queue_again ON llm_queue (agent_id) WHERE again;
CREATE INDEX llm_queue_in_line ON llm_queue (agent_id, work, tries, queued_at, memory_id) WHERE work = 'facts';
CREATE INDEX llm_queue_relations ON llm_queue (agent_id, queued_at, memory_id) WHERE work = 'relations';
CREATE INDEX llm_queue_passages ON llm_queue (agent_id, queued_at, memory_id) WHERE work = 'passages';

-- Episodes that consolidation must still process although it has passed their ids.
CREATE TABLE late_episodes (
    agent_id  text NOT NULL,
    memory_id uuid NOT NULL,
    PRIMARY KEY (agent_id, memory_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories ON DELETE CASCADE
);

-- Memories whose vectors a vector store beside PostgreSQL must still receive or delete. Rows are recorded by the trigger
-- `vector_changed`, which exists only while such a store is used.
CREATE TABLE vector_changes (
    agent_id  text    NOT NULL,
    change_id bigint  NOT NULL GENERATED ALWAYS AS IDENTITY,
    memory_id uuid    NOT NULL,
    filling   boolean NOT NULL DEFAULT false,  -- of all memories, for a store that is new or rebuilt
    PRIMARY KEY (agent_id, change_id)
);
CREATE INDEX vector_changes_by_age ON vector_changes (filling, change_id);

CREATE FUNCTION record_vector_change() RETURNS trigger
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

-- What language models cost an agent on a day (UTC): reserved before a request, corrected after its answer.
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

-- --- document frequencies ---------------------------------------------------------------------------------------------

-- A store appends a delta, and a background job folds it: a counter updated in the store's transaction would serialize
-- an agent's stores on its common words.
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

-- --- archive ----------------------------------------------------------------------------------------------------------

-- Tombstones: an archived memory, where its copy is, and the columns that it is filtered by.
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
    archive_id  uuid        NOT NULL,           -- the archive that contains the copy
    users       jsonb,                          -- as provenance.users of `memories`
    PRIMARY KEY (agent_id, memory_id)
);
CREATE INDEX archived_memories_by_time ON archived_memories (agent_id, archived_at, memory_id);

-- Every copy in an archive: recorded before it is written, deleted after it. A tombstone names only the one to restore.
CREATE TABLE archived_copies (
    agent_id   text NOT NULL,
    memory_id  uuid NOT NULL,
    archive_id uuid NOT NULL,
    user_id    text,
    PRIMARY KEY (agent_id, memory_id, archive_id)
);
CREATE INDEX archived_copies_by_archive ON archived_copies (archive_id);

-- --- of the service, for the owner only -------------------------------------------------------------------------------

-- The embedding model that is searched, once a re-embedding has begun; before, the settings decide. `filling`: memories
-- are being embedded with it. `moving`: searched, its vectors are being moved from next_embedding to embedding.
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

-- Keys that sign erasure receipts.
CREATE TABLE receipt_keys (
    key_id     text        PRIMARY KEY,
    key        bytea       NOT NULL CHECK (octet_length(key) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
REVOKE ALL ON receipt_keys FROM PUBLIC;

-- Every Redis in use by its id, and until when it may contain working memory.
CREATE TABLE redis_instances (
    redis_id     uuid        PRIMARY KEY,
    copies_until timestamptz NOT NULL
);
REVOKE ALL ON redis_instances FROM PUBLIC;

-- Sessions and one-time sign-in links of the console: a digest of the id, and the token, encrypted with the id.
CREATE TABLE console_sessions (
    digest     bytea       PRIMARY KEY,
    is_link    boolean     NOT NULL,
    sealed     bytea       NOT NULL,
    expires_at timestamptz NOT NULL
);
REVOKE ALL ON console_sessions FROM PUBLIC;

-- Why jobs failed: classes of errors and the service's own messages, never a driver's, which may quote a memory.
CREATE TABLE job_failures (
    job_id    bigint      NOT NULL REFERENCES procrastinate_jobs ON DELETE CASCADE,
    failed_at timestamptz NOT NULL DEFAULT now(),
    failure   text        NOT NULL
);
CREATE INDEX job_failures_by_job ON job_failures (job_id, failed_at);

CREATE INDEX agentcore_jobs_by_agent ON procrastinate_jobs ((args ->> 'agent_id'));

-- The jobs of all agents for operators. A job that succeeded is deleted.
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

-- --- filters ----------------------------------------------------------------------------------------------------------

CREATE FUNCTION json_texts(value jsonb) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN ARRAY(SELECT jsonb_array_elements_text(value));

-- `wanted` is a user or an array of users; null in it: memories without a user.
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

-- Whether a user said it, rather than an assistant; an interaction contains both sides.
CREATE FUNCTION is_user_turn(kind text, metadata jsonb, speaker text) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT kind = 'interaction' OR lower(coalesce(metadata ->> 'role', speaker, 'user')) IN ('user', 'human') $$;

-- The definition of the filters of all methods; the keys are those of Filters.conditions(). Entities and keywords are
-- case-folded by the service on both sides: lower() of a database differs.
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

-- The same for archived memories; the keys are those of ArchiveFilters.conditions().
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

-- --- tokens bound to users --------------------------------------------------------------------------------------------

-- Whether a row belongs to the transaction's users: its own user, and all users whose memories it was derived from.
CREATE FUNCTION of_bound_users(p_user_id text, p_made_of jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT coalesce(nullif(current_setting('agentcore.users', true), '')::jsonb
                    @> coalesce(to_jsonb(p_user_id), 'null'), false)
       AND nullif(current_setting('agentcore.users', true), '')::jsonb @> coalesce(p_made_of, '[]')
    $$;

-- With the owner's rights: row security would not tell another user's memory from a deleted one, whose history and links
-- must still be found.
CREATE FUNCTION of_other_users(p_agent_id text, p_memory_id uuid) RETURNS boolean
    LANGUAGE sql STABLE SECURITY DEFINER
    AS $$
    SELECT EXISTS (SELECT FROM memories AS m
                    WHERE m.agent_id = p_agent_id AND m.memory_id = p_memory_id
                      AND NOT of_bound_users(m.user_id, m.provenance -> 'users'))
    $$;

-- --- word search ------------------------------------------------------------------------------------------------------

-- In how many memories of the transaction's users each term occurs: the agent's own counts would reveal others' words.
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

-- The memories that contain these terms, best first, by BM25 with each term counted once and the length in tokens. k1 and b
-- are those of agentcore/memory/lexical.py. With the owner's rights: array operators are not leakproof, so under row
-- security the GIN index would not be used.
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

-- --- jobs -------------------------------------------------------------------------------------------------------------
-- The service's roles have no rights on procrastinate's tables: these functions work for the transaction's agent only. A
-- job's lock is a digest that contains the agent, so no agent can collide with another.

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

-- Whether a job with this lock is pending. If so it starts after this transaction has ended: a worker takes the advisory
-- lock before it starts a job.
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

-- Enqueues a job for the agent, unless one with the same lock is pending. The queue is named after the job: a worker of
-- another version takes no job that it does not know.
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
        -- Another transaction has just enqueued the same job.
        NULL;
    END;
END
$$;

-- Deletes every job of the agent and returns their number. A running one is not stopped.
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

-- --- rights -----------------------------------------------------------------------------------------------------------

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['memories', 'memory_passages', 'memory_usage', 'memory_links', 'memory_history',
                                'memory_subjects', 'idempotency_keys', 'completed_tasks', 'agent_settings', 'llm_queue',
                                'late_episodes', 'llm_usage', 'lexical_terms', 'lexical_totals', 'lexical_deltas',
                                'archived_memories', 'archived_copies', 'vector_changes'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_agent ON %I TO agentcore_service, agentcore_bound '
                       'USING (agent_id = current_setting(''agentcore.agent_id'', true)) '
                       'WITH CHECK (agent_id = current_setting(''agentcore.agent_id'', true))', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO agentcore_service, agentcore_bound', name);
    END LOOP;

    -- Searches of large agents name the partition, so that their plan is made once.
    FOR number IN 0 .. 31 LOOP
        name := format('memories_p%s', lpad(number::text, 2, '0'));
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY own_agent ON %I FOR SELECT TO agentcore_service '
                       'USING (agent_id = current_setting(''agentcore.agent_id'', true))', name);
        EXECUTE format('GRANT SELECT ON %I TO agentcore_service', name);
    END LOOP;

    FOREACH name IN ARRAY ARRAY['memory_usage', 'memory_history', 'memory_subjects'] LOOP
        EXECUTE format('CREATE POLICY own_users ON %I AS RESTRICTIVE TO agentcore_bound '
                       'USING (NOT of_other_users(agent_id, memory_id))', name);
    END LOOP;
    -- Counts over all words of the agent: bound callers add to them, and read none.
    FOREACH name IN ARRAY ARRAY['lexical_terms', 'lexical_totals', 'lexical_deltas'] LOOP
        EXECUTE format('CREATE POLICY own_users ON %I AS RESTRICTIVE FOR SELECT TO agentcore_bound USING (false)', name);
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

CREATE POLICY own_users ON memories AS RESTRICTIVE TO agentcore_bound
    USING (of_bound_users(user_id, provenance -> 'users'));
CREATE POLICY own_users ON memory_links AS RESTRICTIVE TO agentcore_bound
    USING (NOT of_other_users(agent_id, source_id) AND NOT of_other_users(agent_id, target_id));
-- The subquery is under row security, too: it finds only memories of the bound users.
CREATE POLICY own_users ON memory_passages AS RESTRICTIVE TO agentcore_bound
    USING (EXISTS (SELECT FROM memories m
                    WHERE m.agent_id = memory_passages.agent_id AND m.memory_id = memory_passages.memory_id));
CREATE POLICY own_users ON archived_memories AS RESTRICTIVE TO agentcore_bound
    USING (of_bound_users(user_id, users) AND (user_id IS NOT NULL OR users IS NOT NULL));
CREATE POLICY own_users ON archived_copies AS RESTRICTIVE TO agentcore_bound USING (of_bound_users(user_id, NULL));
