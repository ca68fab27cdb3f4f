-- The users whose memories an archived memory was made of, as provenance.users of `memories`. NULL: not recorded, by an
-- older version; a tombstone that names no user either is then hidden from tokens bound to users.
ALTER TABLE archived_memories ADD COLUMN users jsonb;
ALTER POLICY own_users ON archived_memories
    USING (of_bound_users(user_id, users) AND (user_id IS NOT NULL OR users IS NOT NULL));
