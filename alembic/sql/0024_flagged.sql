-- Whether a memory matches a pattern of injected instructions, and the assistant's response with its reasoning.
ALTER TABLE memories ADD COLUMN flagged boolean NOT NULL DEFAULT false, ADD COLUMN response text;

CREATE INDEX memories_flagged ON memories (agent_id) WHERE flagged;

CREATE OR REPLACE FUNCTION memory_matches(m memories, filter jsonb) RETURNS boolean
    LANGUAGE sql STABLE PARALLEL SAFE
    AS $$
    SELECT (m.expires_at IS NULL OR m.pinned OR m.expires_at > now())
       AND (filter -> 'memory_types' IS NULL OR m.memory_type = ANY (json_texts(filter -> 'memory_types')))
       AND (filter ->> 'task_id' IS NULL OR m.task_id = filter ->> 'task_id')
       AND (filter ->> 'session_id' IS NULL OR m.session_id = filter ->> 'session_id')
       AND (filter ->> 'user_id' IS NULL OR m.user_id = filter ->> 'user_id')
       AND (filter ->> 'namespace' IS NULL OR m.namespace = filter ->> 'namespace')
       AND (filter ->> 'after' IS NULL OR m.timestamp >= (filter ->> 'after')::timestamptz)
       AND (filter ->> 'before' IS NULL OR m.timestamp < (filter ->> 'before')::timestamptz)
       AND (filter -> 'tags' IS NULL OR m.tags && json_texts(filter -> 'tags'))
       AND (filter -> 'entities' IS NULL OR m.entity_keys && json_texts(filter -> 'entities'))
       AND (filter -> 'keywords' IS NULL OR m.keywords && json_texts(filter -> 'keywords'))
       AND (filter ->> 'min_importance' IS NULL
            OR m.relevance_score >= (filter ->> 'min_importance')::real)
       AND (filter ->> 'current' IS NULL OR m.superseded_by IS NULL)
       AND (filter ->> 'as_of' IS NULL
            OR (m.timestamp <= (filter ->> 'as_of')::timestamptz
                AND (m.valid_from IS NULL OR m.valid_from <= (filter ->> 'as_of')::timestamptz)
                AND (m.valid_to IS NULL OR m.valid_to > (filter ->> 'as_of')::timestamptz)))
       AND (filter ->> 'unflagged' IS NULL OR NOT m.flagged)
    $$;
