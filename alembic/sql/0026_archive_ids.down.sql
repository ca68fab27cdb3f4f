DROP TABLE receipt_keys;
DROP INDEX archived_memories_by_archive;
ALTER TABLE archived_memories DROP COLUMN archive_id;
