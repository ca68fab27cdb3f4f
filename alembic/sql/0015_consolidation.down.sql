ALTER TABLE agent_settings DROP COLUMN consolidated_to;
ALTER TABLE agent_settings DROP COLUMN consolidation;
