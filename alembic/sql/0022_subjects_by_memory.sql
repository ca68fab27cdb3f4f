DROP INDEX memory_subjects_by_memory;
-- The agent is not the first column: otherwise this index would look as good as the primary key for an agent without
-- statistics.
CREATE INDEX memory_subjects_by_memory ON memory_subjects (memory_id, agent_id);
