-- name: backup_snapshot
-- Exports the snapshot for pg_dump; it is valid until the end of the transaction.
SELECT pg_export_snapshot() AS snapshot, current_setting('server_version') AS postgresql,
       (SELECT version_num FROM alembic_version) AS schema_revision;

-- name: backup_counts
SELECT (SELECT count(*) FROM memories) AS memories, (SELECT count(*) FROM archived_memories) AS archived;

-- name: backup_copies
SELECT object_key, sha256 FROM archived_memories;

-- name: backup_analyze
ANALYZE;
