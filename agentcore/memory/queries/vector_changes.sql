-- name: pending_vectors
-- Returns the store for which changes are recorded, and the agent's memories whose changes it may lack.
SELECT (SELECT obj_description(t.oid, 'pg_trigger') FROM pg_trigger t
         WHERE t.tgrelid = 'memories'::regclass AND t.tgname = 'vector_changed') AS store,
       ARRAY(SELECT c.memory_id FROM vector_changes c WHERE c.agent_id = %(agent_id)s
              ORDER BY c.change_id DESC LIMIT %(limit)s) AS memory_ids;

-- name: vector_outbox
-- Returns whether the outbox is enabled, and for which store.
SELECT t.oid IS NOT NULL AS exists, obj_description(t.oid, 'pg_trigger') AS store
  FROM (SELECT) AS one
  LEFT JOIN pg_trigger t ON t.tgrelid = 'memories'::regclass AND t.tgname = 'vector_changed';

-- name: enable_vector_outbox
-- Enables the outbox.
CREATE TRIGGER vector_changed
    AFTER INSERT OR DELETE OR UPDATE OF embedding, embedding_model, next_embedding, next_embedding_model, user_id,
                                        session_id, memory_type, timestamp
    ON memories FOR EACH ROW EXECUTE FUNCTION record_vector_change();

-- name: name_vector_store
-- Names the store for which changes are recorded.
COMMENT ON TRIGGER vector_changed ON memories IS {store};

-- name: short_lock_wait
-- Limits how long this transaction waits for a lock: all later calls queue behind it.
SET LOCAL lock_timeout = '2s';

-- name: disable_vector_outbox
-- Disables the outbox.
DROP TRIGGER IF EXISTS vector_changed ON memories;

-- name: empty_vector_outbox
-- Empties the outbox.
DELETE FROM vector_changes;

-- name: backfill_vectors
-- Enqueues every memory with a vector, or those of an agent or its users, after what is enqueued already.
INSERT INTO vector_changes (agent_id, memory_id, filling)
SELECT m.agent_id, m.memory_id, %(filling)s
  FROM memories m
 WHERE (m.embedding IS NOT NULL OR m.next_embedding IS NOT NULL)
   AND (%(agent_id)s::text IS NULL OR m.agent_id = %(agent_id)s)
   AND (%(user_ids)s::text[] IS NULL OR m.user_id = ANY (%(user_ids)s::text[]));

-- name: count_vector_changes
-- Counts pending changes, and those of a filling.
SELECT count(*) AS changes, count(*) FILTER (WHERE c.filling) AS filling FROM vector_changes c;

-- name: vector_changes
-- Returns the oldest changes, those of a filling last, without agents whose changes were refused.
SELECT c.change_id, c.agent_id, c.memory_id FROM vector_changes c
 WHERE (%(agent_id)s::text IS NULL OR c.agent_id = %(agent_id)s) AND c.agent_id <> ALL (%(refused)s::text[])
 ORDER BY c.filling, c.change_id LIMIT %(limit)s;

-- name: changed_vectors
-- Returns the vectors of these memories, with the fields by which a store filters.
SELECT m.agent_id, m.memory_id, m.user_id, m.session_id, m.memory_type, m.timestamp, m.embedding, m.embedding_model,
       m.next_embedding, m.next_embedding_model
  FROM (SELECT DISTINCT * FROM unnest(%(agent_ids)s::text[], %(memory_ids)s::uuid[]) AS each (agent_id, memory_id)) AS changed
  JOIN memories m USING (agent_id, memory_id);

-- name: delete_vector_changes
-- Deletes changes that were applied.
DELETE FROM vector_changes c
 USING unnest(%(agent_ids)s::text[], %(change_ids)s::bigint[]) AS done (agent_id, change_id)
 WHERE c.agent_id = done.agent_id AND c.change_id = done.change_id;

-- name: orphaned_points
-- Returns those of a store's ids that are no memory.
SELECT stored.memory_id
  FROM unnest(%(agent_ids)s::text[], %(memory_ids)s::uuid[]) AS stored (agent_id, memory_id)
 WHERE NOT EXISTS (SELECT FROM memories m WHERE m.agent_id = stored.agent_id AND m.memory_id = stored.memory_id);

-- name: take_vector_lock
-- Waits for the lock of writers to a vector store; the end of the connection releases it.
SELECT pg_advisory_lock(%(key)s);
