-- name: lock_layers
-- Takes the locks of claim_layer for several layers, in one order: no prune copies a memory before the commit.
SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'agentcore prune', %(agent_id)s::text, layer), 0))
  FROM (SELECT unnest(%(layers)s::text[]) AS layer ORDER BY 1) AS ordered;

-- name: erasable_memories
-- Returns all memories of the agent, or of one of its users, in any state.
SELECT memory_id FROM memories
 WHERE agent_id = %(agent_id)s AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s::text)
 ORDER BY memory_id;

-- name: erasable_tombstones
-- Returns the matching tombstones. One without user may belong to any user: older versions recorded none.
SELECT memory_id, user_id, users, archive_id FROM archived_memories
 WHERE agent_id = %(agent_id)s
   AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s::text OR users ? %(user_id)s::text)
 ORDER BY memory_id;

-- name: erasable_copies
-- Returns all recorded copies of the agent, or of a user and of no user.
SELECT memory_id, archive_id, user_id FROM archived_copies
 WHERE agent_id = %(agent_id)s
   AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s::text);

-- name: known_ids
-- Returns the ids that belong to memories of the agent, or to tombstones with a user.
SELECT memory_id FROM memories WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[])
 UNION
SELECT memory_id FROM archived_memories
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND user_id IS NOT NULL;

-- name: derived_memories
-- Returns memories without user that derive from these memories or from deleted ones of the user: children, and
-- summaries, including those whose provenance alone records the sources.
SELECT m.memory_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.user_id IS NULL
   AND (m.parent_memory_id = ANY (%(memory_ids)s::uuid[])
        OR m.memory_id IN (SELECT l.source_id FROM memory_links l
                            WHERE l.agent_id = %(agent_id)s AND l.target_id = ANY (%(memory_ids)s::uuid[])
                              AND l.relation = %(relation)s)
        OR m.provenance -> 'sources' ?| %(memory_ids)s::text[]
        OR m.provenance -> 'users' ? %(user_id)s::text);

-- name: lock_tombstones
-- Locks and returns tombstones; this serializes with a restore.
SELECT memory_id, object_key, user_id, archive_id FROM archived_memories
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[])
 ORDER BY memory_id
   FOR UPDATE;

-- name: assign_user_of_copies
-- Assigns copies without user to this user, as for tombstones.
UPDATE archived_copies SET user_id = %(user_id)s
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND user_id IS NULL;

-- name: assign_user
-- Assigns tombstones without user to this user, so that a retry after a crash finds them.
WITH held AS (
    SELECT memory_id FROM archived_memories
     WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND user_id IS NULL
     ORDER BY memory_id FOR UPDATE)
UPDATE archived_memories a SET user_id = %(user_id)s
  FROM held WHERE a.agent_id = %(agent_id)s AND a.memory_id = held.memory_id;

-- name: lock_for_erasure
-- Locks memories in id order; returns their tasks and term keys.
SELECT m.memory_id, m.task_id, m.term_keys
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[])
 ORDER BY m.memory_id
   FOR UPDATE OF m;

-- name: erase_rows
-- Deletes the rows of these memories in one table, by its memory column; returns how many.
WITH gone AS (
    DELETE FROM {table} WHERE agent_id = %(agent_id)s AND {column} = ANY (%(memory_ids)s::uuid[]) RETURNING 1
)
SELECT count(*) AS erased FROM gone;

-- name: erase_copies
-- Deletes the records of these memories' copies in one archive; returns how many.
WITH gone AS (
    DELETE FROM archived_copies
     WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND archive_id = %(archive_id)s::uuid
    RETURNING 1
)
SELECT count(*) AS erased FROM gone;

-- name: erase_ended_tasks
-- Deletes the completion records of tasks without memories; returns how many.
WITH gone AS (
    DELETE FROM completed_tasks t
     WHERE t.agent_id = %(agent_id)s AND t.task_id = ANY (%(task_ids)s::text[])
       AND NOT EXISTS (SELECT FROM memories m WHERE m.agent_id = %(agent_id)s AND m.task_id = t.task_id)
    RETURNING 1
)
SELECT count(*) AS erased FROM gone;

-- name: lock_lexical_totals
-- Blocks folding of the agent's term counts until the commit.
SELECT 1 AS held FROM lexical_totals WHERE agent_id = %(agent_id)s FOR UPDATE;

-- name: erase_word_counts
-- Deletes the term counts of an agent without memories; one snapshot, so a concurrent store keeps its own.
WITH none AS (
    SELECT 1 WHERE NOT EXISTS (SELECT FROM memories WHERE agent_id = %(agent_id)s)
), deltas AS (
    DELETE FROM lexical_deltas WHERE agent_id = %(agent_id)s AND EXISTS (SELECT FROM none) RETURNING 1
), terms AS (
    DELETE FROM lexical_terms WHERE agent_id = %(agent_id)s AND EXISTS (SELECT FROM none) RETURNING 1
), totals AS (
    DELETE FROM lexical_totals WHERE agent_id = %(agent_id)s AND EXISTS (SELECT FROM none) RETURNING 1
)
SELECT (SELECT count(*) FROM deltas) AS lexical_deltas, (SELECT count(*) FROM terms) AS lexical_terms,
       (SELECT count(*) FROM totals) AS lexical_totals;

-- name: erase_table
-- Deletes the rows of an agent without memories from one table; returns how many.
WITH gone AS (
    DELETE FROM {table}
     WHERE agent_id = %(agent_id)s AND NOT EXISTS (SELECT FROM memories WHERE agent_id = %(agent_id)s)
    RETURNING 1
)
SELECT count(*) AS erased FROM gone;

-- name: count_table
-- Counts the agent's rows in one table.
SELECT count(*) AS count FROM {table} WHERE agent_id = %(agent_id)s;

-- name: record_redis
-- Records that this Redis may contain working memory for so many seconds.
INSERT INTO redis_instances (redis_id, copies_until)
VALUES (%(redis_id)s, now() + make_interval(secs => %(seconds)s))
    ON CONFLICT (redis_id) DO UPDATE
       SET copies_until = greatest(redis_instances.copies_until, EXCLUDED.copies_until);

-- name: other_redis
-- Returns every other Redis that may contain working memory.
SELECT redis_id FROM redis_instances
 WHERE copies_until > now() AND redis_id IS DISTINCT FROM %(redis_id)s::uuid
 ORDER BY redis_id;

-- name: receipt_keys
-- Returns the keys of erasure receipts, newest first, or the one with this id.
SELECT key_id, key FROM receipt_keys
 WHERE %(key_id)s::text IS NULL OR key_id = %(key_id)s::text
 ORDER BY created_at DESC, key_id;

-- name: insert_receipt_key
-- Inserts a key. Two servers may insert the first one concurrently: both verify, since a receipt contains its key's id.
INSERT INTO receipt_keys (key_id, key) VALUES (%(key_id)s, %(key)s) RETURNING key_id, key;
