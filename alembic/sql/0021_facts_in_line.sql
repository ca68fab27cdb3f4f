-- A batch for the model is the head of this line, however long it is; what failed by itself stands behind the rest.
CREATE INDEX llm_queue_in_line ON llm_queue (agent_id, work, tries, queued_at, memory_id) WHERE work = 'facts';
