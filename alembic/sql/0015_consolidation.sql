-- Whether an agent's episodes are consolidated in the background, and how far that has come: everything with an id up
-- to `consolidated_to` was looked at.
ALTER TABLE agent_settings ADD COLUMN consolidation jsonb NOT NULL DEFAULT '{}';
ALTER TABLE agent_settings ADD COLUMN consolidated_to uuid;
