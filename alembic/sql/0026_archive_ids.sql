-- The archive that contains the copy. NULL: written by an older version, which did not record it.
ALTER TABLE archived_memories ADD COLUMN archive_id uuid;
CREATE INDEX archived_memories_by_archive ON archived_memories (archive_id) WHERE archive_id IS NOT NULL;

-- Keys that sign erasure receipts. Only for the owner: agentcore_service has no privilege on it.
CREATE TABLE receipt_keys (
    key_id     text        PRIMARY KEY,
    key        bytea       NOT NULL CHECK (octet_length(key) = 32),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
REVOKE ALL ON receipt_keys FROM PUBLIC;
