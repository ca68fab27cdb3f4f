ALTER TABLE llm_queue DROP COLUMN tries, DROP COLUMN failing_since;
DROP INDEX memories_by_parent;
