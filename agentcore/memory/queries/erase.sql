-- name: hold_layers
-- No prune copies a memory of the agent before this transaction ends; the same locks as claim_layer's, in one order.
SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'agentcore prune', %(agent_id)s::text, layer), 0))
  FROM (SELECT unnest(%(layers)s::text[]) AS layer ORDER BY 1) AS ordered;

-- name: erasable_memories
-- The memories of the agent, or of a user of it, whatever their state.
SELECT memory_id FROM memories
 WHERE agent_id = %(agent_id)s AND (%(user_id)s::text IS NULL OR user_id = %(user_id)s::text)
 ORDER BY memory_id;

-- name: erasable_tombstones
-- The same of archived memories. Those that name no user may be anybody's: an older version noted none.
SELECT memory_id, user_id, users, archive_id, object_key, sha256, size_bytes FROM archived_memories
 WHERE agent_id = %(agent_id)s
   AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s::text OR users ? %(user_id)s::text)
 ORDER BY memory_id;

-- name: erasable_copies
-- Every copy in an archive: of the agent, or of a user and of no user.
SELECT memory_id, archive_id, user_id FROM archived_copies
 WHERE agent_id = %(agent_id)s
   AND (%(user_id)s::text IS NULL OR user_id IS NULL OR user_id = %(user_id)s::text);

-- name: known_ids
-- Which of these are memories of the agent, archived ones with a user's name among them.
SELECT memory_id FROM memories WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[])
 UNION
SELECT memory_id FROM archived_memories
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND user_id IS NOT NULL;

-- name: derived_memories
-- What was made of these memories or of the user's that are gone, and names no user itself: their children, and the
-- summaries of them, be it that only the summary's own provenance still tells so.
SELECT m.memory_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.user_id IS NULL
   AND (m.parent_memory_id = ANY (%(memory_ids)s::uuid[])
        OR m.memory_id IN (SELECT l.source_id FROM memory_links l
                            WHERE l.agent_id = %(agent_id)s AND l.target_id = ANY (%(memory_ids)s::uuid[])
                              AND l.relation = %(relation)s)
        OR m.provenance -> 'sources' ?| %(memory_ids)s::text[]
        OR m.provenance -> 'users' ? %(user_id)s::text);

-- name: hold_tombstones
-- These archived memories, held until the transaction ends: a restore of them waits, or is waited for.
SELECT memory_id, object_key, user_id, archive_id FROM archived_memories
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[])
 ORDER BY memory_id
   FOR UPDATE;

-- name: name_copies
-- Copies that name no user are known to be this one's, as tombstones are.
UPDATE archived_copies SET user_id = %(user_id)s
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND user_id IS NULL;

-- name: name_tombstones
-- Archived memories that name no user are known to be this one's, should whoever erases them be killed.
WITH held AS (
    SELECT memory_id FROM archived_memories
     WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND user_id IS NULL
     ORDER BY memory_id FOR UPDATE)
UPDATE archived_memories a SET user_id = %(user_id)s
  FROM held WHERE a.agent_id = %(agent_id)s AND a.memory_id = held.memory_id;

-- name: hold_erasable
-- These memories, locked in id order, with their tasks and term keys.
SELECT m.memory_id, m.task_id, m.term_keys
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[])
 ORDER BY m.memory_id
   FOR UPDATE OF m;

-- name: erase_rows
-- The rows of these memories in one table, by the column that names the memory; how many.
WITH gone AS (
    DELETE FROM {table} WHERE agent_id = %(agent_id)s AND {column} = ANY (%(memory_ids)s::uuid[]) RETURNING 1
)
SELECT count(*) AS erased FROM gone;

-- name: erase_copies
-- The records of these memories' copies in one archive; how many.
WITH gone AS (
    DELETE FROM archived_copies
     WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND archive_id = %(archive_id)s::uuid
    RETURNING 1
)
SELECT count(*) AS erased FROM gone;

-- name: erase_ended_tasks
-- The ends of these tasks, where no memory of them is left.
WITH gone AS (
    DELETE FROM completed_tasks t
     WHERE t.agent_id = %(agent_id)s AND t.task_id = ANY (%(task_ids)s::text[])
       AND NOT EXISTS (SELECT FROM memories m WHERE m.agent_id = %(agent_id)s AND m.task_id = t.task_id)
    RETURNING 1
)
SELECT count(*) AS erased FROM gone;

-- name: hold_lexical_totals
-- No word counts of the agent are folded before this transaction ends.
SELECT 1 AS held FROM lexical_totals WHERE agent_id = %(agent_id)s FOR UPDATE;

-- name: erase_word_counts
-- Of an agent without memories, in one snapshot: a store meanwhile keeps its own.
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
-- What an agent without memories still has in one table; how many rows.
WITH gone AS (
    DELETE FROM {table}
     WHERE agent_id = %(agent_id)s AND NOT EXISTS (SELECT FROM memories WHERE agent_id = %(agent_id)s)
    RETURNING 1
)
SELECT count(*) AS erased FROM gone;

-- name: count_table
-- What the agent has in one table.
SELECT count(*) AS count FROM {table} WHERE agent_id = %(agent_id)s;

-- name: record_redis
-- The Redis of this id may contain working memory for so long.
INSERT INTO redis_instances (redis_id, copies_until)
VALUES (%(redis_id)s, now() + make_interval(secs => %(seconds)s))
    ON CONFLICT (redis_id) DO UPDATE
       SET copies_until = greatest(redis_instances.copies_until, EXCLUDED.copies_until);

-- name: other_redis
-- Every other Redis that may contain working memory.
SELECT redis_id FROM redis_instances
 WHERE copies_until > now() AND redis_id IS DISTINCT FROM %(redis_id)s::uuid
 ORDER BY redis_id;

-- name: receipt_keys
-- The keys of erasure receipts, newest first; or the one of this id.
SELECT key_id, key FROM receipt_keys
 WHERE %(key_id)s::text IS NULL OR key_id = %(key_id)s::text
 ORDER BY created_at DESC, key_id;

-- name: insert_receipt_key
-- A new key. Two servers may create the first at once: both verify, since each receipt has its key's id.
INSERT INTO receipt_keys (key_id, key) VALUES (%(key_id)s, %(key)s) RETURNING key_id, key;
