ALTER TABLE memories DROP COLUMN gist_hash;
