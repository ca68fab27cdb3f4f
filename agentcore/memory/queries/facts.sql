-- name: hold_facts_with
-- Facts that a model read from these memories and that held as long as those did; held until the transaction ends. Pinned,
-- or put into other words, a fact is its caller's.
SELECT m.memory_id, m.parent_memory_id, m.version
  FROM memories m
  JOIN unnest(%(memory_ids)s::uuid[], %(successors)s::uuid[]) AS parent (memory_id, successor)
    ON parent.memory_id = m.parent_memory_id AND parent.successor IS NOT DISTINCT FROM m.superseded_by
 WHERE m.agent_id = %(agent_id)s AND m.parent_memory_id = ANY (%(memory_ids)s::uuid[])
   AND m.provenance ->> 'form' = 'fact' AND NOT m.pinned
   AND NOT EXISTS (SELECT FROM memory_history h WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id
                      AND h.before ? 'content')
 ORDER BY m.memory_id
   FOR NO KEY UPDATE OF m;

-- name: facts_as_read
-- Facts that a model read from a memory, whether they hold or not; pinned, or put into other words, they are their caller's.
SELECT m.memory_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.parent_memory_id = %(memory_id)s
   AND m.provenance ->> 'form' = 'fact' AND NOT m.pinned
   AND NOT EXISTS (SELECT FROM memory_history h WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id
                      AND h.before ? 'content')
 ORDER BY m.memory_id;

-- name: facts_superseded_with
-- Facts that a model read from a memory and that what has its place has the place of; held until the transaction ends.
SELECT m.memory_id, m.content, m.timestamp, m.speaker, m.user_id, m.session_id, m.task_id, m.namespace,
       m.superseded_by, m.valid_to
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.parent_memory_id = %(memory_id)s
   AND m.provenance ->> 'form' = 'fact' AND m.superseded_by = %(successor)s
 ORDER BY m.memory_id
   FOR NO KEY UPDATE OF m;

-- name: leave_queue_for_facts
-- These memories hold no longer: nothing is read from them.
DELETE FROM llm_queue WHERE agent_id = %(agent_id)s AND work = 'facts' AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: unread_memories
-- Which of these hold and were not read for facts since they have their words.
SELECT m.memory_id, m.memory_type, m.content, m.session_id, m.metadata, m.parent_memory_id
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[])
   AND m.memory_type = 'episodic' AND m.superseded_by IS NULL
   AND NOT EXISTS (SELECT FROM memory_history h WHERE h.agent_id = %(agent_id)s AND h.memory_id = m.memory_id
                      AND h.operation = 'extract_facts'
                      AND NOT EXISTS (SELECT FROM memory_history later
                                       WHERE later.agent_id = %(agent_id)s AND later.memory_id = m.memory_id
                                         AND later.change_id > h.change_id AND later.before ? 'content'))
 ORDER BY m.memory_id;
