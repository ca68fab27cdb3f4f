-- name: consolidation_settings
-- Returns whether the agent's episodes are consolidated in the background, and up to which id.
SELECT consolidation, consolidated_to FROM agent_settings WHERE agent_id = %(agent_id)s;

-- name: set_consolidation
-- Sets the agent's consolidation settings; the row is locked already.
UPDATE agent_settings SET consolidation = %(consolidation)s, updated_at = now() WHERE agent_id = %(agent_id)s;

-- name: consolidated_to
-- Advances the id up to which memories were processed, never backwards. A no-op if the witness was deleted, for example
-- by an erasure; its lock prevents a concurrent deletion.
INSERT INTO agent_settings (agent_id, consolidated_to)
SELECT %(agent_id)s, %(memory_id)s::uuid
  FROM (SELECT FROM memories WHERE agent_id = %(agent_id)s AND memory_id = %(witness)s FOR KEY SHARE) AS there
    ON CONFLICT (agent_id) DO UPDATE
       SET consolidated_to = greatest(agent_settings.consolidated_to, EXCLUDED.consolidated_to);

-- name: agents_to_consolidate
-- Returns the agents, of all, with consolidation on and at least `least` unprocessed or late episodes that are old
-- enough.
SELECT s.agent_id FROM agent_settings s
 WHERE s.consolidation ->> 'consolidate' = 'true'
   AND EXISTS (SELECT m.memory_id FROM memories m
                WHERE m.agent_id = s.agent_id AND m.memory_type = 'episodic'
                  AND m.memory_id > coalesce(s.consolidated_to, '00000000-0000-0000-0000-000000000000')
                  AND m.timestamp <= %(before)s
                UNION ALL
               SELECT m.memory_id FROM late_episodes l
                 JOIN memories m ON m.agent_id = s.agent_id AND m.memory_id = l.memory_id
                WHERE l.agent_id = s.agent_id AND m.embedding IS NOT NULL AND m.timestamp <= %(before)s
               OFFSET %(least)s - 1)
 ORDER BY s.agent_id;

-- name: episodes_after
-- Returns the oldest episodic memories after an id.
SELECT m.memory_id, m.timestamp, m.created_at FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_type = 'episodic'
   AND m.memory_id > coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
 ORDER BY m.memory_id LIMIT %(limit)s;

-- name: count_young_episodes
-- Counts the episodes that are too young: said and stored after `before`.
SELECT count(*)::integer AS count FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_type = 'episodic'
   AND m.timestamp > %(before)s AND m.created_at > %(before)s;

-- name: enqueue_late_episodes
-- Records episodes that joined the layer after their ids were processed.
INSERT INTO late_episodes (agent_id, memory_id)
SELECT m.agent_id, m.memory_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.memory_type = 'episodic'
    ON CONFLICT DO NOTHING;

-- name: late_episodes
-- Returns late episodes that can be processed now: old enough, and with a vector of the model.
SELECT l.memory_id FROM late_episodes l
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = l.memory_id
 WHERE l.agent_id = %(agent_id)s AND m.embedding_model = %(model)s
   AND l.memory_id > coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
   AND (m.timestamp <= %(before)s OR m.created_at <= %(before)s)
 ORDER BY l.memory_id LIMIT %(limit)s;

-- name: dequeue_late_episodes
-- Removes processed late episodes.
DELETE FROM late_episodes WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: changed_sources
-- Returns memories that changed after their consolidation summary was created.
SELECT m.memory_id FROM memories s
  JOIN memory_links l ON l.agent_id = %(agent_id)s AND l.source_id = s.memory_id AND l.relation = 'summarises'
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = l.target_id
 WHERE s.agent_id = %(agent_id)s AND s.memory_type = 'semantic' AND s.kind = 'consolidation'
   AND s.superseded_by IS NULL AND m.updated_at > s.created_at
 ORDER BY m.updated_at DESC LIMIT %(limit)s;

-- name: can_be_clustered
-- Condition: the memory is old enough and eligible for a cluster.
(m.memory_type = 'episodic' AND NOT m.pinned AND NOT m.flagged AND m.superseded_by IS NULL AND m.timestamp <= %(before)s
 AND (m.expires_at IS NULL OR m.expires_at > now()));

-- name: near_by_comparison
-- Cosine distance by exact comparison.
m.embedding <=> asked.embedding;

-- name: near_by_index
-- Cosine distance through the partition's vector index.
m.embedding::halfvec({dimensions}) <=> asked.embedding::halfvec({dimensions});

-- name: near_episodes
-- Returns the nearest neighbors of each memory with the same user and namespace.
SELECT asked.memory_id AS one_id, near.memory_id AS other_id
  FROM memories asked
 CROSS JOIN LATERAL (
       SELECT m.memory_id FROM memories m
        WHERE m.agent_id = %(agent_id)s AND m.embedding_model = %(model)s AND {free}
          AND m.user_id IS NOT DISTINCT FROM asked.user_id AND m.namespace IS NOT DISTINCT FROM asked.namespace
        ORDER BY {distance} LIMIT %(limit)s) AS near
 WHERE asked.agent_id = %(agent_id)s AND asked.memory_id = ANY (%(memory_ids)s::uuid[])
   AND asked.embedding_model = %(model)s AND near.memory_id <> asked.memory_id;

-- name: standing_summaries
-- Returns the current consolidation summaries of any of these memories, with recorded and still existing sources.
SELECT s.memory_id, s.provenance ->> 'digest' AS digest, s.provenance -> 'sources' AS source_ids,
       ARRAY(SELECT l.target_id FROM memory_links l
              WHERE l.agent_id = %(agent_id)s AND l.source_id = s.memory_id AND l.relation = 'summarises') AS member_ids
  FROM memories s
 WHERE s.agent_id = %(agent_id)s AND s.kind = 'consolidation' AND s.superseded_by IS NULL
   AND s.memory_id IN (SELECT l.source_id FROM memory_links l
                        WHERE l.agent_id = %(agent_id)s AND l.target_id = ANY (%(memory_ids)s::uuid[])
                          AND l.relation = 'summarises')
 ORDER BY s.memory_id;

-- name: episodes
-- Returns the columns that clustering and summarization need.
SELECT m.memory_id, m.timestamp, m.user_id, m.namespace, m.speaker, m.session_id, m.content, m.content_hash,
       m.entity_keys, m.keywords, m.facts, m.tags, m.token_count, m.relevance_score::double precision AS relevance_score, m.embedding,
       m.superseded_by IS NOT NULL AS superseded, {free} AS free
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.embedding_model = %(model)s
 ORDER BY m.memory_id;

-- name: lock_consolidation
-- Takes the advisory lock for writing an agent's consolidation summaries.
SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'agentcore consolidate', %(agent_id)s::text), 0));

-- name: lock_episodes
-- Locks the current ones of these memories against changes; returns their content hashes.
SELECT m.memory_id, m.content_hash FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.superseded_by IS NULL
 ORDER BY m.memory_id FOR SHARE;

-- name: supersede_summary
-- Supersedes a summary by a newer one; it remains readable.
UPDATE memories
   SET superseded_by = %(successor)s, valid_to = %(valid_to)s, version = version + 1, updated_at = now()
 WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s AND superseded_by IS NULL
RETURNING version;

-- name: summarised_sources
-- Returns eligible episodic memories that have a current summary.
SELECT m.memory_id, m.version, m.timestamp, m.relevance_score::double precision AS relevance_score, m.pinned
  FROM memories s
  JOIN memory_links l ON l.agent_id = %(agent_id)s AND l.source_id = s.memory_id AND l.relation = 'summarises'
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = l.target_id
 WHERE s.agent_id = %(agent_id)s AND s.memory_type = 'semantic' AND s.kind = 'consolidation'
   AND s.superseded_by IS NULL AND (s.expires_at IS NULL OR s.expires_at > now()) AND {free}
 ORDER BY m.timestamp, m.memory_id LIMIT %(limit)s;

-- name: links_to_archived_sources
-- Returns a summary's links to its archived sources as history entries, since the links are deleted with the rows.
SELECT s.memory_id, jsonb_build_object('links', jsonb_agg(jsonb_build_object(
           'source_id', l.source_id, 'target_id', l.target_id, 'relation', l.relation, 'weight', l.weight)
           ORDER BY l.target_id)) AS before
  FROM memories s
  JOIN memory_links l ON l.agent_id = %(agent_id)s AND l.source_id = s.memory_id AND l.relation = 'summarises'
 WHERE s.agent_id = %(agent_id)s AND s.kind = 'consolidation'
   AND l.target_id = ANY (%(memory_ids)s::uuid[])
 GROUP BY s.memory_id;
