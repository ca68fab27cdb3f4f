-- The digest of what a memory says, whichever its words: equal for near-duplicates.
ALTER TABLE memories ADD COLUMN gist_hash bytea;
