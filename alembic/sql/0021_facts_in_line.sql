-- A batch for the model is the head of this index, at any length of the queue; memories that failed alone come last.
CREATE INDEX llm_queue_in_line ON llm_queue (agent_id, work, tries, queued_at, memory_id) WHERE work = 'facts';
