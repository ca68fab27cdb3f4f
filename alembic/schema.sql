-- The schema of AgentCore Memory. A new database gets exactly this; a migration that changes it changes this file, too.
--
-- Every table that an agent owns has agent_id first in its primary key, and row security:
--   agentcore_service  the role of the service: only rows of the transaction's agent (setting agentcore.agent_id)
--   agentcore_bound    the role of callers whose token is bound to users: of those only rows of these users
--                      (setting agentcore.users, a JSON array; null in it: memories without a user; `*`: all users)
-- Vector indexes are not part of the schema: the index keeper builds them on existing rows.
-- procrastinate.sql, the tables of the job queue, runs before this file; functions.sql, the functions and the row security
-- of these tables, after it.

-- Citus executes CREATE EXTENSION on every node, for which a role that owns only this database has no rights.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN
        CREATE EXTENSION vector;
    END IF;
END
$$;

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
        -- Distributed tables have shards instead.
        CONTINUE WHEN NOT EXISTS (SELECT FROM pg_partitioned_table WHERE partrelid = parent::regclass);
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
