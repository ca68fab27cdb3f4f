-- Usage of language models per agent and day (UTC): reserved before each request, corrected after its answer.
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

-- Memories pending for fact extraction or for their session's summary. A worker dequeues them in the transaction that
-- writes the result, so each is processed once.
CREATE TABLE llm_queue (
    agent_id   text        NOT NULL,
    memory_id  uuid        NOT NULL,
    work       text        NOT NULL CHECK (work IN ('facts', 'summary')),
    session_id text,
    user_turn  boolean     NOT NULL DEFAULT false,
    queued_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (agent_id, work, memory_id),
    FOREIGN KEY (agent_id, memory_id) REFERENCES memories (agent_id, memory_id) ON DELETE CASCADE
);
CREATE INDEX llm_queue_of_session ON llm_queue (agent_id, session_id) WHERE work = 'summary';
-- For the foreign key: a deletion looks up by memory, for any kind of work.
CREATE INDEX llm_queue_of_memory ON llm_queue (agent_id, memory_id);

-- The agent's settings for models: whether facts are extracted, and how sessions are summarized.
ALTER TABLE agent_settings ADD COLUMN models jsonb NOT NULL DEFAULT '{}';

DO $$
DECLARE
    owned text;
BEGIN
    FOREACH owned IN ARRAY ARRAY['llm_usage', 'llm_queue'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', owned);
        EXECUTE format('CREATE POLICY own_agent ON %I TO agentcore_service
            USING (agent_id = current_setting(''agentcore.agent_id'', true))
            WITH CHECK (agent_id = current_setting(''agentcore.agent_id'', true))', owned);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO agentcore_service', owned);
    END LOOP;
END
$$;
