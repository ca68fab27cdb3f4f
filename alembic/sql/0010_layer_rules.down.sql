DROP TABLE agent_settings;
ALTER TABLE memory_usage DROP COLUMN uses_in_life;
ALTER TABLE memories DROP COLUMN ttl_seconds;
