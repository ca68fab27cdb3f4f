DROP INDEX memory_subjects_by_memory;
-- Not the agent first: with it this index would look as good as the primary key for what an unknown agent states.
CREATE INDEX memory_subjects_by_memory ON memory_subjects (memory_id, agent_id);
