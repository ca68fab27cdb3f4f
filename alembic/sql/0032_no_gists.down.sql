ALTER TABLE memories ADD COLUMN gist_hash bytea;
