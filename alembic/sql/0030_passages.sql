-- Passages of long memories after the first one, which the memory's own vector covers. The text is not copied: `start`
-- and `end` are offsets in `memories.content`, in characters. A passage has one row per embedding model.
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
BEGIN
    FOR part IN 0..31 LOOP
        EXECUTE format('CREATE TABLE memory_passages_p%s PARTITION OF memory_passages '
                       'FOR VALUES WITH (MODULUS 32, REMAINDER %s)', lpad(part::text, 2, '0'), part);
    END LOOP;
END
$$;

ALTER TABLE memory_passages ENABLE ROW LEVEL SECURITY;
CREATE POLICY own_agent ON memory_passages TO agentcore_service, agentcore_bound
    USING (agent_id = current_setting('agentcore.agent_id', true))
    WITH CHECK (agent_id = current_setting('agentcore.agent_id', true));
-- The subquery is subject to row security too: for bound users it finds only their own memories.
CREATE POLICY own_users ON memory_passages AS RESTRICTIVE TO agentcore_bound
    USING (EXISTS (SELECT FROM memories m
                    WHERE m.agent_id = memory_passages.agent_id AND m.memory_id = memory_passages.memory_id));
GRANT SELECT, INSERT, UPDATE, DELETE ON memory_passages TO agentcore_service, agentcore_bound;

-- `passages`: a long memory whose passages are not all embedded yet (queries/passages.sql).
ALTER TABLE llm_queue DROP CONSTRAINT llm_queue_work_check;
ALTER TABLE llm_queue ADD CONSTRAINT llm_queue_work_check
    CHECK (work IN ('facts', 'summary', 'refresh', 'period', 'relations', 'passages'));
CREATE INDEX llm_queue_passages ON llm_queue (agent_id, queued_at, memory_id) WHERE work = 'passages';
INSERT INTO llm_queue (agent_id, memory_id, work)
SELECT agent_id, memory_id, 'passages' FROM memories WHERE length(content) > 236;
