ALTER TABLE memory_history DROP COLUMN version;
