-- name: embedding_models
-- Returns the current embedding model and the next one, if recorded.
SELECT model, provider, model_name, dimensions, stage, extract(epoch FROM now() - changed_at)::float8 AS seconds
  FROM embedding_models;

-- name: begin_filling
-- Records the next model.
INSERT INTO embedding_models (model, provider, model_name, dimensions, stage)
VALUES (%(model)s, %(provider)s, %(model_name)s, %(dimensions)s, 'filling')
    ON CONFLICT (model) DO NOTHING;

-- name: forget_other_fillings
-- Removes another next model that was abandoned.
DELETE FROM embedding_models WHERE stage = 'filling' AND model <> %(model)s;

-- name: forget_model_in_force
-- Removes the previous current model.
DELETE FROM embedding_models WHERE stage <> 'filling' AND model <> %(model)s;

-- name: set_stage
-- Sets the migration stage of a model.
UPDATE embedding_models SET stage = %(stage)s, changed_at = now() WHERE model = %(model)s AND stage <> %(stage)s;

-- name: take_reembedding_lock
-- Tries to take the lock for re-embedding.
SELECT pg_try_advisory_lock(%(key)s) AS taken;

-- name: release_reembedding_lock
-- Releases the lock at once; closing the connection would release it a moment later.
SELECT pg_advisory_unlock(%(key)s);

-- name: count_to_reembed
-- Counts memories without a vector of the model, memories with a vector of the next model, and passages without one.
SELECT counted.*, passages.passages_to_embed
  FROM (SELECT count(*) FILTER (WHERE coalesce(embedding_model, '') <> ALL (%(done)s::text[])
                                  AND coalesce(next_embedding_model, '') <> ALL (%(done)s::text[])) AS to_embed,
               count(*) FILTER (WHERE next_embedding_model IS NOT NULL) AS to_move,
               count(*) AS memories
          FROM memories) AS counted
 CROSS JOIN (SELECT count(*) AS passages_to_embed
               FROM (SELECT DISTINCT p.agent_id, p.memory_id, p.passage
                       FROM memory_passages p WHERE {missing}) AS each) AS passages;

-- name: some_to_reembed
-- Returns some texts, to time the model.
SELECT content, speaker FROM memories LIMIT %(limit)s;

-- name: memories_to_reembed
-- Returns the next memories of a partition without a vector of this model, in id order.
SELECT agent_id, memory_id, version, content, speaker FROM {partition}
 WHERE (agent_id, memory_id) > (%(after_agent)s::text, %(after_id)s::uuid)
   AND coalesce(embedding_model, '') <> ALL (%(done)s::text[])
   AND coalesce(next_embedding_model, '') <> ALL (%(done)s::text[])
 ORDER BY agent_id, memory_id LIMIT %(limit)s;

-- name: missing_passage
-- Condition: the passage has a vector of another model and none of this one.
(p.embedding_model <> ALL (%(done)s::text[])
    AND NOT EXISTS (SELECT FROM memory_passages made
                     WHERE made.agent_id = p.agent_id AND made.memory_id = p.memory_id AND made.passage = p.passage
                       AND made.embedding_model = ANY (%(done)s::text[])));

-- name: passages_to_reembed
-- Returns the next passages without a vector of this model, in key order.
SELECT p.agent_id, p.memory_id, p.passage, p.start, p."end", m.version, m.speaker,
       substr(m.content, p.start + 1, p."end" - p.start) AS content
  FROM (SELECT DISTINCT p.agent_id, p.memory_id, p.passage, p.start, p."end" FROM {partition} p
         WHERE (p.agent_id, p.memory_id, p.passage)
               > (%(after_agent)s::text, %(after_id)s::uuid, %(after_passage)s::smallint) AND {missing}
         ORDER BY 1, 2, 3 LIMIT %(limit)s) AS p
  JOIN memories m ON m.agent_id = p.agent_id AND m.memory_id = p.memory_id
 ORDER BY 1, 2, 3;

-- name: add_passages
-- Adds vectors of this model for passages of memories that still have this version; skips locked memories.
INSERT INTO memory_passages (agent_id, memory_id, passage, embedding_model, start, "end", embedding)
SELECT p.agent_id, p.memory_id, p.passage, made.model, p.start, p."end", made.vector
  FROM unnest(%(memory_ids)s::uuid[], %(passages)s::smallint[], %(versions)s::integer[],
              %(vectors)s::halfvec[], %(models)s::text[]) AS made (memory_id, passage, version, vector, model)
  JOIN LATERAL (SELECT m.memory_id FROM memories m
                 WHERE m.agent_id = %(agent_id)s AND m.memory_id = made.memory_id AND m.version = made.version
                   FOR SHARE SKIP LOCKED) AS m ON true
  JOIN LATERAL (SELECT p.* FROM memory_passages p
                 WHERE p.agent_id = %(agent_id)s AND p.memory_id = made.memory_id AND p.passage = made.passage
                 LIMIT 1) AS p ON true
    ON CONFLICT DO NOTHING;

-- name: delete_old_passages
-- Deletes passage vectors of other models if this model's exist.
DELETE FROM {partition} p
 WHERE p.embedding_model <> ALL (%(done)s::text[])
   AND EXISTS (SELECT FROM {partition} made
                WHERE made.agent_id = p.agent_id AND made.memory_id = p.memory_id AND made.passage = p.passage
                  AND made.embedding_model = ANY (%(done)s::text[]));

-- name: set_next_embeddings
-- Sets vectors of the next model for memories that still have this version; skips locked ones.
WITH made AS (
    SELECT * FROM unnest(%(memory_ids)s::uuid[], %(versions)s::integer[], %(vectors)s::halfvec[], %(models)s::text[])
                  AS made (memory_id, version, vector, model)),
locked AS (
    SELECT m.memory_id, made.vector, made.model
      FROM made JOIN {partition} m ON m.agent_id = %(agent_id)s AND m.memory_id = made.memory_id
     WHERE m.version = made.version
       FOR NO KEY UPDATE OF m SKIP LOCKED)
UPDATE {partition} m SET next_embedding = locked.vector, next_embedding_model = locked.model
  FROM locked WHERE m.agent_id = %(agent_id)s AND m.memory_id = locked.memory_id;

-- name: next_embeddings
-- Returns the next memories of a partition with a vector in `next_embedding`, in id order.
SELECT agent_id, memory_id FROM {partition}
 WHERE (agent_id, memory_id) > (%(after_agent)s::text, %(after_id)s::uuid)
   AND next_embedding_model IS NOT NULL
 ORDER BY agent_id, memory_id LIMIT %(limit)s;

-- name: move_next_embeddings
-- Moves vectors of the current model to `embedding`; skips locked memories. Returns the moved ones.
WITH locked AS (
    SELECT memory_id FROM {partition}
     WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]) AND next_embedding_model IS NOT NULL
       FOR NO KEY UPDATE SKIP LOCKED)
UPDATE {partition} m
   SET embedding = CASE WHEN m.next_embedding_model = ANY (%(done)s::text[]) AND
                             m.embedding_model IS DISTINCT FROM %(model)s
                        THEN m.next_embedding ELSE m.embedding END,
       embedding_model = CASE WHEN m.next_embedding_model = ANY (%(done)s::text[]) AND
                                   m.embedding_model IS DISTINCT FROM %(model)s
                              THEN m.next_embedding_model ELSE m.embedding_model END,
       next_embedding = NULL, next_embedding_model = NULL
  FROM locked WHERE m.agent_id = %(agent_id)s AND m.memory_id = locked.memory_id
RETURNING m.memory_id;

-- name: build_moving_index
-- As build_ivfflat_index, over vectors in either column: a vector that moves stays indexed.
CREATE INDEX CONCURRENTLY {index} ON {partition}
 USING ivfflat (((CASE WHEN embedding_model = {model} THEN embedding ELSE next_embedding END)::halfvec({dimensions}))
                halfvec_cosine_ops) WITH (lists = {shape})
 WHERE embedding_model = {model} OR next_embedding_model = {model};

-- name: vacuum_partition
-- Frees the space of rewritten rows and updates the planner's statistics.
VACUUM (ANALYZE) {partition};
