DROP TABLE redis_instances;
DROP INDEX archived_memories_of_unknown_archive;
CREATE INDEX archived_memories_by_archive ON archived_memories (archive_id) WHERE archive_id IS NOT NULL;
DROP TABLE archived_copies;
