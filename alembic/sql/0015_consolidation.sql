-- Whether an agent's episodes are consolidated in the background, and the id up to which they were processed.
ALTER TABLE agent_settings ADD COLUMN consolidation jsonb NOT NULL DEFAULT '{}';
ALTER TABLE agent_settings ADD COLUMN consolidated_to uuid;
