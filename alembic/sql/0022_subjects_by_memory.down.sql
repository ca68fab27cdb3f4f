DROP INDEX memory_subjects_by_memory;
CREATE INDEX memory_subjects_by_memory ON memory_subjects (agent_id, memory_id);
