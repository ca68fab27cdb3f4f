DROP FUNCTION archived_matches;
DROP INDEX archived_memories_by_time;
ALTER TABLE archived_memories
    DROP COLUMN timestamp, DROP COLUMN task_id, DROP COLUMN session_id, DROP COLUMN user_id,
    DROP COLUMN namespace, DROP COLUMN tags;
