DROP INDEX llm_queue_passages;
DELETE FROM llm_queue WHERE work = 'passages';
ALTER TABLE llm_queue DROP CONSTRAINT llm_queue_work_check;
ALTER TABLE llm_queue ADD CONSTRAINT llm_queue_work_check
    CHECK (work IN ('facts', 'summary', 'refresh', 'period', 'relations'));
DROP TABLE memory_passages;
