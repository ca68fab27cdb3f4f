-- name: lock_facts_of
-- Locks and returns extracted facts of these memories that have the same successor as their memory. Excludes facts that
-- a caller pinned or reworded.
SELECT m.memory_id, m.parent_memory_id, m.version
  FROM memories m
  JOIN unnest(%(memory_ids)s::uuid[], %(successors)s::uuid[]) AS parent (memory_id, successor)
    ON parent.memory_id = m.parent_memory_id AND parent.successor IS NOT DISTINCT FROM m.superseded_by
 WHERE m.agent_id = %(agent_id)s AND m.parent_memory_id = ANY (%(memory_ids)s::uuid[])
   AND m.kind = 'fact' AND NOT m.pinned
   AND NOT EXISTS (SELECT FROM memory_history h WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id
                      AND h.before ? 'content')
 ORDER BY m.memory_id
   FOR NO KEY UPDATE OF m;

-- name: unmodified_facts
-- Returns all extracted facts of a memory, current or superseded, except those that a caller pinned or reworded.
SELECT m.memory_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.parent_memory_id = %(memory_id)s
   AND m.kind = 'fact' AND NOT m.pinned
   AND NOT EXISTS (SELECT FROM memory_history h WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id
                      AND h.before ? 'content')
 ORDER BY m.memory_id;

-- name: facts_superseded_with
-- Locks and returns extracted facts of a memory that have the memory's successor.
SELECT m.memory_id, m.content, m.timestamp, m.speaker, m.user_id, m.session_id, m.task_id, m.namespace,
       m.flagged, m.superseded_by, m.valid_to
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.parent_memory_id = %(memory_id)s
   AND m.kind = 'fact' AND m.superseded_by = %(successor)s
 ORDER BY m.memory_id
   FOR NO KEY UPDATE OF m;

-- name: dequeue_facts
-- Dequeues superseded memories from fact extraction. Locks in id order, as record_llm_failure does.
WITH held AS (
    SELECT q.memory_id FROM llm_queue q
     WHERE q.agent_id = %(agent_id)s AND q.work = 'facts' AND q.memory_id = ANY (%(memory_ids)s::uuid[])
     ORDER BY q.memory_id FOR UPDATE)
DELETE FROM llm_queue
 WHERE agent_id = %(agent_id)s AND work = 'facts' AND memory_id = ANY (ARRAY (SELECT memory_id FROM held));

-- name: unread_memories
-- Returns the current memories whose present content was not read for facts yet.
SELECT m.memory_id, m.memory_type, m.content, m.session_id, m.metadata, m.parent_memory_id, m.flagged
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[])
   AND m.memory_type = 'episodic' AND m.superseded_by IS NULL
   AND NOT EXISTS (SELECT FROM memory_history h WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id
                      AND h.operation = 'extract_facts'
                      AND NOT EXISTS (SELECT FROM memory_history later
                                       WHERE later.agent_id = %(agent_id)s AND later.memory_id = m.memory_id
                                         AND later.change_id > h.change_id AND later.before ? 'content'))
 ORDER BY m.memory_id;

-- name: sync_expiry_of_facts
-- Sets the expiry of extracted facts to their memory's; none if that is pinned or never expires. Excludes facts that a
-- caller pinned, reworded, or gave an expiry other than by use. Returns the history entries.
WITH held AS (
    SELECT m.memory_id, m.expires_at AS before, own.expires_at AS ends, own.ttl_seconds
      FROM memories m
     CROSS JOIN LATERAL (SELECT CASE WHEN NOT p.pinned THEN p.expires_at END AS expires_at,
                                CASE WHEN NOT p.pinned THEN p.ttl_seconds END AS ttl_seconds
                           FROM memories p WHERE p.agent_id = %(agent_id)s AND p.memory_id = %(memory_id)s) AS own
     WHERE m.agent_id = %(agent_id)s AND m.parent_memory_id = %(memory_id)s
       AND m.kind = 'fact' AND NOT m.pinned
       AND (m.expires_at IS NULL OR m.expires_at > now()) AND m.expires_at IS DISTINCT FROM own.expires_at
       AND NOT EXISTS (SELECT FROM memory_history h WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id
                          AND (h.before ? 'content' OR h.before ? 'expires_at' AND NOT h.after ? 'with'
                                                       AND h.operation <> 'extend'))
     ORDER BY m.memory_id
       FOR NO KEY UPDATE OF m),
ended AS (
    UPDATE memories m SET expires_at = held.ends, ttl_seconds = held.ttl_seconds, updated_at = now(), version = m.version + 1
      FROM held
     WHERE m.agent_id = %(agent_id)s AND m.memory_id = held.memory_id
    RETURNING m.memory_id, m.version, held.before, m.expires_at AS after)
SELECT memory_id, version, jsonb_build_object('expires_at', before) AS before,
       jsonb_build_object('expires_at', after, 'with', %(memory_id)s::uuid) AS after
  FROM ended
 ORDER BY memory_id;

-- name: reworded_since
-- Returns the facts whose memory was reworded since. The first content recorded in its history after the extraction is
-- the content that was read.
SELECT fact.memory_id, p.memory_id AS parent_memory_id
  FROM unnest(%(memory_ids)s::uuid[], %(parents)s::uuid[], %(moments)s::timestamptz[]) AS fact (memory_id, parent_id, read_at)
  JOIN memories p ON p.agent_id = %(agent_id)s AND p.memory_id = fact.parent_id
 WHERE p.content <> (SELECT h.before ->> 'content' FROM memory_history h
                      WHERE h.agent_id = %(agent_id)s AND h.memory_id = p.memory_id AND h.before ? 'content'
                        AND h.changed_at > fact.read_at
                      ORDER BY h.change_id LIMIT 1)
 ORDER BY fact.memory_id;

-- name: superseded_since
-- Returns current facts whose memories were superseded after these times, with the successor.
SELECT f.memory_id, p.superseded_by, p.valid_to
  FROM unnest(%(memory_ids)s::uuid[], %(moments)s::timestamptz[]) AS fact (memory_id, archived_at)
  JOIN memories f ON f.agent_id = %(agent_id)s AND f.memory_id = fact.memory_id AND f.superseded_by IS NULL
  JOIN memories p ON p.agent_id = %(agent_id)s AND p.memory_id = f.parent_memory_id AND p.superseded_by IS NOT NULL
 WHERE EXISTS (SELECT FROM memory_history h
                WHERE h.agent_id = %(agent_id)s AND h.memory_id = p.memory_id AND h.after ? 'superseded_by'
                  AND h.changed_at > fact.archived_at)
 ORDER BY f.memory_id;
