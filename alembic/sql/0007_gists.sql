-- Digest of a memory's meaning, equal for near-duplicates.
ALTER TABLE memories ADD COLUMN gist_hash bytea;
