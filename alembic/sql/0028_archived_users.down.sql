ALTER POLICY own_users ON archived_memories USING (of_bound_users(user_id, NULL));
ALTER TABLE archived_memories DROP COLUMN users;
