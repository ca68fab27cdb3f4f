ALTER TABLE memory_history ADD COLUMN version integer;
