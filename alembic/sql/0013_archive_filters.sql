-- Filter columns of archived memories, so that restoring and listing need not read copies. They are null for memories
-- that were archived before this version, which are found by id, layer and archival time only.
ALTER TABLE archived_memories
    ADD COLUMN timestamp  timestamptz,
    ADD COLUMN task_id    text,
    ADD COLUMN session_id text,
    ADD COLUMN user_id    text,
    ADD COLUMN namespace  text,
    ADD COLUMN tags       text[] NOT NULL DEFAULT '{}';

CREATE INDEX archived_memories_by_time ON archived_memories (agent_id, archived_at, memory_id);

-- The only definition of these filters, with the keys of ArchiveFilters.conditions().
CREATE FUNCTION archived_matches(a archived_memories, filter jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT (filter -> 'memory_types' IS NULL OR a.memory_type = ANY (json_texts(filter -> 'memory_types')))
       AND (filter ->> 'task_id' IS NULL OR a.task_id = filter ->> 'task_id')
       AND (filter ->> 'session_id' IS NULL OR a.session_id = filter ->> 'session_id')
       AND (filter ->> 'user_id' IS NULL OR a.user_id = filter ->> 'user_id')
       AND (filter ->> 'namespace' IS NULL OR a.namespace = filter ->> 'namespace')
       AND (filter -> 'tags' IS NULL OR a.tags && json_texts(filter -> 'tags'))
       AND (filter ->> 'after' IS NULL OR a.timestamp >= (filter ->> 'after')::timestamptz)
       AND (filter ->> 'before' IS NULL OR a.timestamp < (filter ->> 'before')::timestamptz)
       AND (filter ->> 'archived_after' IS NULL OR a.archived_at >= (filter ->> 'archived_after')::timestamptz)
       AND (filter ->> 'archived_before' IS NULL OR a.archived_at < (filter ->> 'archived_before')::timestamptz)
    $$;
