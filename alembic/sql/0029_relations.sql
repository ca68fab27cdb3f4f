-- `relations`: a message pending for comparison with its user's nearest ones (queries/relations.sql).
ALTER TABLE llm_queue DROP CONSTRAINT llm_queue_work_check;
ALTER TABLE llm_queue ADD CONSTRAINT llm_queue_work_check
    CHECK (work IN ('facts', 'summary', 'refresh', 'period', 'relations'));
CREATE INDEX llm_queue_relations ON llm_queue (agent_id, queued_at, memory_id) WHERE work = 'relations';
