-- name: insert_tombstones
-- Upserts tombstones: location of the copy, digest, and the columns that filters use.
INSERT INTO archived_memories (agent_id, memory_id, version, memory_type, object_key, sha256, size_bytes, reason,
                               timestamp, task_id, session_id, user_id, users, namespace, tags, archive_id, archived_at)
SELECT %(agent_id)s, t.memory_id, t.version, t.memory_type, t.object_key, t.sha256, t.size_bytes, t.reason,
       t.timestamp, t.task_id, t.session_id, t.user_id, t.users, t.namespace, t.tags, t.archive_id, now()
  FROM jsonb_populate_recordset(NULL::archived_memories, %(rows)s) AS t
 ORDER BY t.memory_id
    ON CONFLICT (agent_id, memory_id) DO UPDATE
       SET version = EXCLUDED.version, memory_type = EXCLUDED.memory_type, object_key = EXCLUDED.object_key,
           sha256 = EXCLUDED.sha256, size_bytes = EXCLUDED.size_bytes, reason = EXCLUDED.reason,
           timestamp = EXCLUDED.timestamp, task_id = EXCLUDED.task_id, session_id = EXCLUDED.session_id,
           user_id = EXCLUDED.user_id, users = EXCLUDED.users, namespace = EXCLUDED.namespace, tags = EXCLUDED.tags,
           archived_at = EXCLUDED.archived_at, archive_id = EXCLUDED.archive_id;

-- name: record_copies
-- Records that this archive contains, or will contain, copies of these memories.
INSERT INTO archived_copies (agent_id, memory_id, archive_id, user_id)
SELECT m.agent_id, m.memory_id, %(archive_id)s::uuid, m.user_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[])
 ORDER BY m.memory_id
    ON CONFLICT DO NOTHING;

-- name: list_tombstones
-- Returns a page of matching tombstones, last archived first, up to max_bytes but at least one. `found`: how many
-- match, up to the limit.
SELECT sized.* FROM (
       SELECT page.*, count(*) OVER () AS found, row_number() OVER latest AS row_place,
              sum(octet_length(page.tags::text) + 1000) OVER (latest ROWS UNBOUNDED PRECEDING) AS running
         FROM (SELECT a.memory_id, a.version, a.memory_type, a.timestamp, a.task_id, a.session_id, a.user_id,
                      a.namespace, a.tags, a.object_key, a.sha256, a.size_bytes, a.reason, a.archived_at, a.archive_id
                 FROM archived_memories a
                WHERE a.agent_id = %(agent_id)s AND archived_matches(a, %(filter)s)
                  AND (%(place)s::timestamptz IS NULL
                       OR (a.archived_at, a.memory_id) < (%(place)s::timestamptz, %(after_id)s::uuid))
                ORDER BY a.archived_at DESC, a.memory_id DESC
                LIMIT %(limit)s) AS page
       WINDOW latest AS (ORDER BY page.archived_at DESC, page.memory_id DESC)) AS sized
 WHERE sized.running <= %(max_bytes)s OR sized.row_place = 1
 ORDER BY sized.archived_at DESC, sized.memory_id DESC;

-- name: claim_tombstones
-- Locks a page of tombstones, named or matching, in id order; returns them last archived first. A row that another
-- transaction deleted meanwhile has no object_key, but counts for the page.
WITH chosen AS (
    SELECT a.memory_id, a.archived_at FROM archived_memories a
     WHERE a.agent_id = %(agent_id)s
       AND (%(memory_ids)s::uuid[] IS NULL OR a.memory_id = ANY (%(memory_ids)s::uuid[]))
       AND archived_matches(a, %(filter)s)
       AND (%(place)s::timestamptz IS NULL
            OR (a.archived_at, a.memory_id) < (%(place)s::timestamptz, %(after_id)s::uuid))
     ORDER BY a.archived_at DESC, a.memory_id DESC
     LIMIT %(limit)s),
held AS (
    SELECT a.memory_id, a.object_key, a.sha256, a.size_bytes, a.reason, a.archive_id
      FROM archived_memories a
     WHERE a.agent_id = %(agent_id)s AND a.memory_id IN (SELECT memory_id FROM chosen)
     ORDER BY a.memory_id
       FOR UPDATE)
SELECT * FROM chosen LEFT JOIN held USING (memory_id) ORDER BY archived_at DESC, memory_id DESC;

-- name: delete_tombstones
-- Deletes tombstones.
DELETE FROM archived_memories WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: visible_ids
-- Returns the memories that are visible, without expired ones that the sweep has not deleted yet.
SELECT memory_id FROM memories m
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND memory_matches(m, '{}');

-- name: lock_existing
-- Locks and returns the memories that exist, including expired ones; they cannot be deleted until the commit.
SELECT memory_id FROM memories
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[])
 ORDER BY memory_id
   FOR KEY SHARE;

-- name: archived_ids
-- Returns the ids that have a tombstone.
SELECT memory_id FROM archived_memories WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: table_columns
-- Returns the current columns of the tables of an archived memory.
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
  FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
 WHERE a.attrelid IN ('memories'::regclass, 'memory_history'::regclass, 'memory_links'::regclass,
                      'memory_usage'::regclass)
   AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
 GROUP BY c.relname;

-- name: restore_rows
-- Restores archived rows. `table`: one of the tables of an archived memory; `columns`: those that the copies contain.
-- Newer columns get their defaults.
INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE
SELECT {columns} FROM jsonb_populate_recordset(NULL::{table}, %(rows)s)
    ON CONFLICT DO NOTHING;

-- name: archived_everywhere
-- Returns a page of the tombstones of all agents in key order, for the operator's verification.
SELECT agent_id, memory_id, object_key, sha256, size_bytes, archive_id FROM archived_memories
 WHERE (agent_id, memory_id) > (%(after_agent_id)s::text, %(after_id)s::uuid)
   AND (%(agent_id)s::text IS NULL OR agent_id = %(agent_id)s)
 ORDER BY agent_id, memory_id
 LIMIT %(limit)s;

-- name: record_archive
-- Records the archive in which copies were read. A tombstone with another digest belongs to a later copy.
WITH held AS (
    SELECT a.agent_id, a.memory_id, a.user_id, a.archive_id AS moved_from FROM archived_memories a
      JOIN unnest(%(agent_ids)s::text[], %(memory_ids)s::uuid[], %(digests)s::bytea[]) AS t (agent_id, memory_id, sha256)
           ON a.agent_id = t.agent_id AND a.memory_id = t.memory_id AND a.sha256 = t.sha256
     ORDER BY a.agent_id, a.memory_id FOR UPDATE OF a),
moved AS (
    DELETE FROM archived_copies c USING held
     WHERE c.agent_id = held.agent_id AND c.memory_id = held.memory_id AND c.archive_id = held.moved_from
       AND c.archive_id <> %(archive_id)s::uuid),
recorded AS (
    INSERT INTO archived_copies (agent_id, memory_id, archive_id, user_id)
    SELECT agent_id, memory_id, %(archive_id)s::uuid, user_id FROM held ON CONFLICT DO NOTHING)
UPDATE archived_memories a SET archive_id = %(archive_id)s
  FROM held WHERE a.agent_id = held.agent_id AND a.memory_id = held.memory_id;

-- name: next_archive
-- Returns the next other archive with copies after an id, by one index lookup.
SELECT archive_id FROM archived_copies
 WHERE archive_id > %(after)s::uuid AND archive_id IS DISTINCT FROM %(archive_id)s::uuid
 ORDER BY archive_id LIMIT 1;

-- name: count_copies
-- Counts the copies in an archive, up to a limit.
SELECT count(*) AS copies
  FROM (SELECT memory_id FROM archived_copies WHERE archive_id = %(archive_id)s::uuid LIMIT %(most)s) AS listed;

-- name: own_vectors
-- Returns the vectors that callers supplied, if the memory still has the text they belong to.
SELECT m.memory_id, m.embedding FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.embedding IS NOT NULL
   AND m.provenance ->> 'own_vector_of' = encode(m.content_hash, 'hex');
