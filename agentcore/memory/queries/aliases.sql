-- name: insert_alias
-- Two forms of one thing that a memory tells.
INSERT INTO memory_aliases (agent_id, alias, means, alias_key, means_key, memory_id)
VALUES (%(agent_id)s, %(alias)s, %(means)s, %(alias_key)s, %(means_key)s, %(memory_id)s);

-- name: forget_learnt_aliases
-- What a memory told before it was changed.
DELETE FROM memory_aliases WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s;

-- name: set_alias
-- An alias of the caller's own; setting it again gives it another meaning.
INSERT INTO memory_aliases (agent_id, alias, means, alias_key, means_key)
VALUES (%(agent_id)s, %(alias)s, %(means)s, %(alias_key)s, %(means_key)s)
    ON CONFLICT (agent_id, alias_key) WHERE memory_id IS NULL
    DO UPDATE SET alias = EXCLUDED.alias, means = EXCLUDED.means, means_key = EXCLUDED.means_key,
                  created_at = now();

-- name: delete_alias
-- Every meaning of an alias, set or learnt.
DELETE FROM memory_aliases WHERE agent_id = %(agent_id)s AND alias_key = %(alias_key)s RETURNING alias_id;

-- name: forget_set_aliases
-- What the caller set, all of it.
DELETE FROM memory_aliases WHERE agent_id = %(agent_id)s AND memory_id IS NULL;

-- name: list_aliases
-- The agent's aliases in the order of their words; what an expired memory told is gone with it.
SELECT a.alias, a.means, a.memory_id, a.created_at
  FROM memory_aliases a
 WHERE a.agent_id = %(agent_id)s
   AND (%(after_alias)s::text IS NULL
        OR (a.alias, a.means, coalesce(a.memory_id, '00000000-0000-0000-0000-000000000000'))
           > (%(after_alias)s::text, %(after_means)s::text, %(after_id)s::uuid))
   AND (a.memory_id IS NULL
        OR EXISTS (SELECT FROM memories m WHERE m.agent_id = %(agent_id)s AND m.memory_id = a.memory_id
                      AND memory_matches(m, '{}')))
 ORDER BY a.alias, a.means, coalesce(a.memory_id, '00000000-0000-0000-0000-000000000000')
 LIMIT %(limit)s;

-- name: other_forms
-- What these forms, given as keys, are called too: as the caller set it, then as the newest memories in reach of
-- the query tell it.
SELECT key, written, other, is_alias, is_set
  FROM other_forms(%(agent_id)s, %(form_keys)s::bigint[], %(reach)s, %(limit)s);
