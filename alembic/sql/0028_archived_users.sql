-- Users of the memories that an archived memory was derived from, as provenance.users of `memories`. NULL: not
-- recorded, by an older version. A tombstone without user and `users` is hidden from tokens bound to users.
ALTER TABLE archived_memories ADD COLUMN users jsonb;
ALTER POLICY own_users ON archived_memories
    USING (of_bound_users(user_id, users) AND (user_id IS NOT NULL OR users IS NOT NULL));
