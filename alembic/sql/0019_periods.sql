-- Two more kinds of work: summaries whose sources changed, and session summaries pending for their period's summary.
ALTER TABLE llm_queue DROP CONSTRAINT llm_queue_work_check;
ALTER TABLE llm_queue ADD CONSTRAINT llm_queue_work_check CHECK (work IN ('facts', 'summary', 'refresh', 'period'));

-- Memories enqueued again, since their summary was deleted, are due at once for any trigger of the agent.
ALTER TABLE llm_queue ADD COLUMN again boolean NOT NULL DEFAULT false;
CREATE INDEX llm_queue_again ON llm_queue (agent_id) WHERE again;
