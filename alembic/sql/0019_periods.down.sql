DROP INDEX llm_queue_again;
ALTER TABLE llm_queue DROP COLUMN again;
DELETE FROM llm_queue WHERE work IN ('refresh', 'period');
ALTER TABLE llm_queue DROP CONSTRAINT llm_queue_work_check;
ALTER TABLE llm_queue ADD CONSTRAINT llm_queue_work_check CHECK (work IN ('facts', 'summary'));
