-- name: insert_tombstones
-- Where pruned memories' copies are, and what they are chosen by.
INSERT INTO archived_memories (agent_id, memory_id, version, memory_type, object_key, sha256, size_bytes, reason,
                               timestamp, task_id, session_id, user_id, users, namespace, tags, archive_id)
SELECT %(agent_id)s, t.memory_id, t.version, t.memory_type, t.object_key, t.sha256, t.size_bytes, t.reason,
       t.timestamp, t.task_id, t.session_id, t.user_id, t.users, t.namespace, t.tags, t.archive_id
  FROM jsonb_populate_recordset(NULL::archived_memories, %(rows)s) AS t
 ORDER BY t.memory_id
    ON CONFLICT (agent_id, memory_id) DO UPDATE
       SET version = EXCLUDED.version, memory_type = EXCLUDED.memory_type, object_key = EXCLUDED.object_key,
           sha256 = EXCLUDED.sha256, size_bytes = EXCLUDED.size_bytes, reason = EXCLUDED.reason,
           timestamp = EXCLUDED.timestamp, task_id = EXCLUDED.task_id, session_id = EXCLUDED.session_id,
           user_id = EXCLUDED.user_id, users = EXCLUDED.users, namespace = EXCLUDED.namespace, tags = EXCLUDED.tags,
           archived_at = now(), archive_id = EXCLUDED.archive_id;

-- name: record_copies
-- These memories have, or will have, a copy in this archive.
INSERT INTO archived_copies (agent_id, memory_id, archive_id, user_id)
SELECT m.agent_id, m.memory_id, %(archive_id)s::uuid, m.user_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[])
 ORDER BY m.memory_id
    ON CONFLICT DO NOTHING;

-- name: list_tombstones
-- Archived memories that match, those archived last first, from a place on: as many as fit into max_bytes, one at least,
-- and how many were found.
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
-- Archived memories that are named or match, those archived last first, from a place on; held until the transaction
-- ends, in id order. Without a key where another call took it while this one waited: it counts to the page even so.
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
-- These memories are archived no longer.
DELETE FROM archived_memories WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: visible_ids
-- Which of these rows there are for the agent to see; what expired is not, though a sweep may still have to take it.
SELECT memory_id FROM memories m
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND memory_matches(m, '{}');

-- name: held_ids
-- Which of these rows there are, expired ones too; they stay until the transaction ends.
SELECT memory_id FROM memories
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[])
 ORDER BY memory_id
   FOR KEY SHARE;

-- name: buried_ids
-- Which of these are archived.
SELECT memory_id FROM archived_memories WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: table_columns
-- The columns that the tables of an archived memory have by now.
SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
  FROM pg_attribute a
  JOIN pg_class c ON c.oid = a.attrelid
 WHERE a.attrelid IN ('memories'::regclass, 'memory_history'::regclass, 'memory_links'::regclass,
                      'memory_usage'::regclass)
   AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
 GROUP BY c.relname;

-- name: put_back
-- Rows as they were when they were archived. {table} is one of an archived memory's, {columns} those that the copies
-- have of it; a column that came later takes its default.
INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE
SELECT {columns} FROM jsonb_populate_recordset(NULL::{table}, %(rows)s)
    ON CONFLICT DO NOTHING;

-- name: archived_everywhere
-- The tombstones of all agents in the order of their keys, for the operator's check.
SELECT agent_id, memory_id, object_key, sha256, size_bytes, archive_id FROM archived_memories
 WHERE (agent_id, memory_id) > (%(after_agent_id)s::text, %(after_id)s::uuid)
   AND (%(agent_id)s::text IS NULL OR agent_id = %(agent_id)s)
 ORDER BY agent_id, memory_id
 LIMIT %(limit)s;

-- name: note_archive
-- These copies are in this archive: they were read there. A tombstone of another digest is of a later copy.
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

-- name: other_archives
-- The other archives that contain copies, with their number, counted up to a limit; each found by one index lookup.
-- Those of no recorded archive come last, without an id.
WITH RECURSIVE found AS (
    (SELECT archive_id FROM archived_copies ORDER BY archive_id LIMIT 1)
     UNION ALL
    SELECT (SELECT c.archive_id FROM archived_copies c
             WHERE c.archive_id > found.archive_id ORDER BY c.archive_id LIMIT 1)
      FROM found WHERE found.archive_id IS NOT NULL),
counted AS (
    SELECT f.archive_id, (SELECT count(*) FROM (SELECT FROM archived_copies c
                                                 WHERE c.archive_id = f.archive_id LIMIT %(most)s) AS listed) AS copies
      FROM found f
     WHERE f.archive_id IS DISTINCT FROM %(archive_id)s::uuid AND f.archive_id IS NOT NULL
     UNION ALL
    SELECT NULL, count(*) FROM (SELECT FROM archived_memories WHERE archive_id IS NULL LIMIT %(most)s) AS listed)
SELECT archive_id, copies FROM counted WHERE copies > 0 ORDER BY archive_id;

-- name: own_vectors
-- The vectors that callers gave with these memories, for the text that they still have.
SELECT m.memory_id, m.embedding FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.embedding IS NOT NULL
   AND m.provenance ->> 'own_vector_of' = encode(m.content_hash, 'hex');
