ALTER TABLE agent_settings DROP COLUMN models;
DROP TABLE llm_queue;
DROP TABLE llm_usage;
