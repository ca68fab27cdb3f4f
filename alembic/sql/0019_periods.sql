-- Two more kinds of work: summaries whose sources changed, and summaries of sessions that their period's is to tell of.
ALTER TABLE llm_queue DROP CONSTRAINT llm_queue_work_check;
ALTER TABLE llm_queue ADD CONSTRAINT llm_queue_work_check CHECK (work IN ('facts', 'summary', 'refresh', 'period'));

-- What waits again, since a summary of it went, is due at once, whatever the agent's trigger is.
ALTER TABLE llm_queue ADD COLUMN again boolean NOT NULL DEFAULT false;
CREATE INDEX llm_queue_again ON llm_queue (agent_id) WHERE again;
