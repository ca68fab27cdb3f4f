-- name: enqueue_relations
-- Enqueues memories for comparison with the nearest ones, in id order.
INSERT INTO llm_queue (agent_id, memory_id, work)
SELECT %(agent_id)s, pending.memory_id, 'relations' FROM unnest(%(memory_ids)s::uuid[]) AS pending (memory_id)
 ORDER BY 2
    ON CONFLICT DO NOTHING;

-- name: pending_relations
-- Returns the longest pending memories that have a vector of the current model, or none because it refused their text.
SELECT m.memory_id, m.version, m.content, m.timestamp, m.speaker, m.user_id, m.session_id, m.task_id, m.namespace,
       m.memory_type, m.flagged, m.provenance, m.parent_memory_id, m.embedding
  FROM llm_queue q
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = q.memory_id
                 AND (m.embedding_model = %(model)s OR m.embedding IS NULL AND m.embedding_model IS NOT NULL)
 WHERE q.agent_id = %(agent_id)s AND q.work = 'relations'
 ORDER BY q.queued_at, q.memory_id LIMIT %(limit)s;

-- name: still_pending_relations
-- Returns those of these memories that are pending for comparison.
SELECT memory_id FROM llm_queue
 WHERE agent_id = %(agent_id)s AND work = 'relations' AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: ends_of_changes
-- Returns source and target of the `probably_changes` links of these memories.
SELECT source_id, target_id FROM memory_links
 WHERE agent_id = %(agent_id)s AND relation = 'probably_changes'
   AND (source_id = ANY (%(memory_ids)s::uuid[]) OR target_id = ANY (%(memory_ids)s::uuid[]));

-- name: forget_changes
-- Deletes the `probably_changes` links of these memories, locked in one order.
WITH held AS (
    SELECT source_id, target_id, relation FROM memory_links
     WHERE agent_id = %(agent_id)s AND relation = 'probably_changes'
       AND (source_id = ANY (%(memory_ids)s::uuid[]) OR target_id = ANY (%(memory_ids)s::uuid[]))
     ORDER BY source_id, target_id
       FOR UPDATE)
DELETE FROM memory_links l
 USING held
 WHERE l.agent_id = %(agent_id)s AND l.source_id = held.source_id AND l.target_id = held.target_id
   AND l.relation = held.relation;
