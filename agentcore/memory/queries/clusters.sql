-- name: consolidation_settings
-- Whether the agent's episodes are consolidated in the background, and how far that has come.
SELECT consolidation, consolidated_to FROM agent_settings WHERE agent_id = %(agent_id)s;

-- name: set_consolidation
-- What the agent wishes from now on; the row is held already.
UPDATE agent_settings SET consolidation = %(consolidation)s, updated_at = now() WHERE agent_id = %(agent_id)s;

-- name: consolidated_to
-- Everything up to this id was looked at; it never goes back by itself. Where what was looked at is gone by now, be it
-- that the agent was erased, nothing is noted, and while it is noted nothing of it goes.
INSERT INTO agent_settings (agent_id, consolidated_to)
SELECT %(agent_id)s, %(memory_id)s::uuid
  FROM (SELECT FROM memories WHERE agent_id = %(agent_id)s AND memory_id = %(witness)s FOR KEY SHARE) AS there
    ON CONFLICT (agent_id) DO UPDATE
       SET consolidated_to = greatest(agent_settings.consolidated_to, EXCLUDED.consolidated_to);

-- name: agents_to_consolidate
-- Agents that wish it and have so many new or late episodes of an age, all agents together.
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

-- name: unseen_episodes
-- The oldest episodic memories behind an id.
SELECT m.memory_id, m.timestamp, m.created_at FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_type = 'episodic'
   AND m.memory_id > coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
 ORDER BY m.memory_id LIMIT %(limit)s;

-- name: count_young_episodes
-- How many are left for later: said and stored after a time.
SELECT count(*)::integer AS count FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_type = 'episodic'
   AND m.timestamp > %(before)s AND m.created_at > %(before)s;

-- name: note_late_episodes
-- Those of these that are episodes came into their layer after their ids were passed.
INSERT INTO late_episodes (agent_id, memory_id)
SELECT m.agent_id, m.memory_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.memory_type = 'episodic'
    ON CONFLICT DO NOTHING;

-- name: late_episodes
-- Episodes that came late and can be looked at by now: of an age, and with a vector of the model.
SELECT l.memory_id FROM late_episodes l
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = l.memory_id
 WHERE l.agent_id = %(agent_id)s AND m.embedding_model = %(model)s
   AND l.memory_id > coalesce(%(after)s::uuid, '00000000-0000-0000-0000-000000000000')
   AND (m.timestamp <= %(before)s OR m.created_at <= %(before)s)
 ORDER BY l.memory_id LIMIT %(limit)s;

-- name: forget_late_episodes
-- These were looked at.
DELETE FROM late_episodes WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: changed_sources
-- Memories that were changed after the summary of them was made.
SELECT m.memory_id FROM memories s
  JOIN memory_links l ON l.agent_id = %(agent_id)s AND l.source_id = s.memory_id AND l.relation = 'summarises'
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = l.target_id
 WHERE s.agent_id = %(agent_id)s AND s.memory_type = 'semantic' AND s.provenance ->> 'form' = 'consolidation'
   AND s.superseded_by IS NULL AND m.updated_at > s.created_at
 ORDER BY m.updated_at DESC LIMIT %(limit)s;

-- name: can_be_clustered
-- What is old enough and free to stand in a cluster.
(m.memory_type = 'episodic' AND NOT m.pinned AND NOT m.flagged AND m.superseded_by IS NULL AND m.timestamp <= %(before)s
 AND (m.expires_at IS NULL OR m.expires_at > now()));

-- name: near_by_comparison
-- How far two vectors are from each other.
m.embedding <=> asked.embedding;

-- name: near_by_index
-- The same through the partition's vector index.
m.embedding::halfvec({dimensions}) <=> asked.embedding::halfvec({dimensions});

-- name: near_episodes
-- The nearest to each of these memories, of the same user and namespace.
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
-- The summaries that stand for any of these memories, what they are of, and which of that is not there any more.
SELECT s.memory_id, s.provenance ->> 'digest' AS digest, s.provenance -> 'sources' AS source_ids,
       ARRAY(SELECT l.target_id FROM memory_links l
              WHERE l.agent_id = %(agent_id)s AND l.source_id = s.memory_id AND l.relation = 'summarises') AS member_ids
  FROM memories s
 WHERE s.agent_id = %(agent_id)s AND s.provenance ->> 'form' = 'consolidation' AND s.superseded_by IS NULL
   AND s.memory_id IN (SELECT l.source_id FROM memory_links l
                        WHERE l.agent_id = %(agent_id)s AND l.target_id = ANY (%(memory_ids)s::uuid[])
                          AND l.relation = 'summarises')
 ORDER BY s.memory_id;

-- name: episodes
-- What clustering and summing up need to know of memories.
SELECT m.memory_id, m.timestamp, m.user_id, m.namespace, m.speaker, m.session_id, m.content, m.content_hash,
       m.entity_keys, m.keywords, m.facts, m.tags, m.token_count, m.relevance_score::double precision AS relevance_score, m.embedding,
       m.superseded_by IS NOT NULL AS superseded, {free} AS free
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.embedding_model = %(model)s
 ORDER BY m.memory_id;

-- name: claim_consolidation
-- One at a time writes the summaries of an agent.
SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'agentcore consolidate', %(agent_id)s::text), 0));

-- name: hold_episodes
-- What these memories say now, which nobody changes before the end.
SELECT m.memory_id, m.content_hash FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[]) AND m.superseded_by IS NULL
 ORDER BY m.memory_id FOR SHARE;

-- name: supersede_summary
-- An older summary points to the one that says more; it stays to be read.
UPDATE memories
   SET superseded_by = %(successor)s, valid_to = %(valid_to)s, version = version + 1, updated_at = now()
 WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s AND superseded_by IS NULL
RETURNING version;

-- name: summarised_sources
-- Free episodic memories said before a time whose summary stands.
SELECT m.memory_id, m.version, m.timestamp, m.relevance_score::double precision AS relevance_score, m.pinned
  FROM memories s
  JOIN memory_links l ON l.agent_id = %(agent_id)s AND l.source_id = s.memory_id AND l.relation = 'summarises'
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = l.target_id
 WHERE s.agent_id = %(agent_id)s AND s.memory_type = 'semantic' AND s.provenance ->> 'form' = 'consolidation'
   AND s.superseded_by IS NULL AND (s.expires_at IS NULL OR s.expires_at > now()) AND {free}
 ORDER BY m.timestamp, m.memory_id LIMIT %(limit)s;

-- name: note_archived_sources
-- A summary's ties to what goes to the archive end with the rows: its history keeps them.
INSERT INTO memory_history (agent_id, memory_id, operation, token_id, trace_id, before, after)
SELECT %(agent_id)s, s.memory_id, 'archive_sources', %(token_id)s, %(trace_id)s,
       jsonb_build_object('links', jsonb_agg(jsonb_build_object(
           'source_id', l.source_id, 'target_id', l.target_id, 'relation', l.relation, 'weight', l.weight)
           ORDER BY l.target_id)), '{}'
  FROM memories s
  JOIN memory_links l ON l.agent_id = %(agent_id)s AND l.source_id = s.memory_id AND l.relation = 'summarises'
 WHERE s.agent_id = %(agent_id)s AND s.provenance ->> 'form' = 'consolidation'
   AND l.target_id = ANY (%(memory_ids)s::uuid[])
 GROUP BY s.memory_id;
