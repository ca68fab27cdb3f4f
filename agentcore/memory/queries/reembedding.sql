-- name: embedding_models
-- The model in force and the one to come, where the settings alone no longer say it.
SELECT model, provider, model_name, dimensions, stage, extract(epoch FROM now() - changed_at)::float8 AS seconds
  FROM embedding_models;

-- name: begin_filling
-- This model is the one to come; what another left beside the memories is written over.
INSERT INTO embedding_models (model, provider, model_name, dimensions, stage)
VALUES (%(model)s, %(provider)s, %(model_name)s, %(dimensions)s, 'filling')
    ON CONFLICT (model) DO NOTHING;

-- name: keep_stored_model
-- The model of the stored vectors is in force, whatever the settings name.
INSERT INTO embedding_models (model, provider, dimensions, stage)
VALUES (%(model)s, %(provider)s, %(dimensions)s, 'settled')
    ON CONFLICT DO NOTHING;

-- name: forget_other_fillings
-- Another model was to come, and does not.
DELETE FROM embedding_models WHERE stage = 'filling' AND model <> %(model)s;

-- name: forget_model_in_force
-- The model in force is no longer.
DELETE FROM embedding_models WHERE stage <> 'filling' AND model <> %(model)s;

-- name: set_stage
-- How far this model has come.
UPDATE embedding_models SET stage = %(stage)s, changed_at = now() WHERE model = %(model)s AND stage <> %(stage)s;

-- name: take_reembedding_lock
-- One process at a time embeds anew.
SELECT pg_try_advisory_lock(%(key)s) AS taken;

-- name: release_reembedding_lock
-- A closed connection would release it too, but a moment later.
SELECT pg_advisory_unlock(%(key)s);

-- name: count_to_reembed
-- How many memories have no vector of this model yet, and how many have it beside their own; how many passages have none.
SELECT count(*) FILTER (WHERE coalesce(embedding_model, '') <> ALL (%(done)s::text[])
                          AND coalesce(next_embedding_model, '') <> ALL (%(done)s::text[])) AS to_embed,
       (SELECT count(DISTINCT (p.agent_id, p.memory_id, p.passage))
          FROM memory_passages p WHERE {missing}) AS passages_to_embed,
       count(*) FILTER (WHERE next_embedding_model IS NOT NULL) AS to_move,
       count(*) AS memories
  FROM memories;

-- name: some_to_reembed
-- A few texts, to time the model by.
SELECT content, speaker FROM memories LIMIT %(limit)s;

-- name: memories_to_reembed
-- The next memories of one partition that have no vector of this model, in the order of their ids.
SELECT agent_id, memory_id, version, content, speaker FROM {partition}
 WHERE (agent_id, memory_id) > (%(after_agent)s::text, %(after_id)s::uuid)
   AND coalesce(embedding_model, '') <> ALL (%(done)s::text[])
   AND coalesce(next_embedding_model, '') <> ALL (%(done)s::text[])
 ORDER BY agent_id, memory_id LIMIT %(limit)s;

-- name: missing_passage
-- Whether a passage has a vector of another model, and none of this.
(p.embedding_model <> ALL (%(done)s::text[])
    AND NOT EXISTS (SELECT FROM memory_passages made
                     WHERE made.agent_id = p.agent_id AND made.memory_id = p.memory_id AND made.passage = p.passage
                       AND made.embedding_model = ANY (%(done)s::text[])));

-- name: passages_to_reembed
-- The next passages that have no vector of this model, in the order of their keys.
SELECT p.agent_id, p.memory_id, p.passage, p.start, p."end", m.version, m.speaker,
       substr(m.content, p.start + 1, p."end" - p.start) AS content
  FROM (SELECT DISTINCT p.agent_id, p.memory_id, p.passage, p.start, p."end" FROM {partition} p
         WHERE (p.agent_id, p.memory_id, p.passage)
               > (%(after_agent)s::text, %(after_id)s::uuid, %(after_passage)s::smallint) AND {missing}
         ORDER BY 1, 2, 3 LIMIT %(limit)s) AS p
  JOIN memories m ON m.agent_id = p.agent_id AND m.memory_id = p.memory_id
 ORDER BY 1, 2, 3;

-- name: add_passages
-- Vectors of this model beside the others, for passages of memories that still have this version.
INSERT INTO memory_passages (agent_id, memory_id, passage, embedding_model, start, "end", embedding)
SELECT p.agent_id, p.memory_id, p.passage, made.model, p.start, p."end", made.vector
  FROM unnest(%(agent_ids)s::text[], %(memory_ids)s::uuid[], %(passages)s::smallint[], %(versions)s::integer[],
              %(vectors)s::halfvec[], %(models)s::text[]) AS made (agent_id, memory_id, passage, version, vector, model)
  JOIN LATERAL (SELECT m.agent_id, m.memory_id FROM memories m
                 WHERE m.agent_id = made.agent_id AND m.memory_id = made.memory_id AND m.version = made.version
                   FOR SHARE SKIP LOCKED) AS m ON true
  JOIN LATERAL (SELECT p.* FROM memory_passages p
                 WHERE p.agent_id = made.agent_id AND p.memory_id = made.memory_id AND p.passage = made.passage
                 LIMIT 1) AS p ON true
    ON CONFLICT DO NOTHING;

-- name: delete_old_passages
-- Removes vectors of other models where this model's are all there.
DELETE FROM {partition} p
 WHERE p.embedding_model <> ALL (%(done)s::text[])
   AND EXISTS (SELECT FROM {partition} made
                WHERE made.agent_id = p.agent_id AND made.memory_id = p.memory_id AND made.passage = p.passage
                  AND made.embedding_model = ANY (%(done)s::text[]));

-- name: set_next_embeddings
-- Vectors beside those in force, for memories that still say the same. Whoever works on one is not waited for.
WITH made AS (
    SELECT * FROM unnest(%(agent_ids)s::text[], %(memory_ids)s::uuid[], %(versions)s::integer[],
                         %(vectors)s::halfvec[], %(models)s::text[])
                  AS made (agent_id, memory_id, version, vector, model)),
held AS (
    SELECT m.agent_id, m.memory_id, made.vector, made.model
      FROM made JOIN {partition} m ON m.agent_id = made.agent_id AND m.memory_id = made.memory_id
     WHERE m.version = made.version
       FOR NO KEY UPDATE OF m SKIP LOCKED)
UPDATE {partition} m SET next_embedding = held.vector, next_embedding_model = held.model
  FROM held WHERE m.agent_id = held.agent_id AND m.memory_id = held.memory_id;

-- name: move_next_embeddings
-- Vectors of the model in force into their place; says how many, and where to go on.
WITH held AS (
    SELECT agent_id, memory_id FROM {partition}
     WHERE (agent_id, memory_id) > (%(after_agent)s::text, %(after_id)s::uuid)
       AND next_embedding_model IS NOT NULL
     ORDER BY agent_id, memory_id LIMIT %(limit)s
       FOR NO KEY UPDATE SKIP LOCKED),
moved AS (
    UPDATE {partition} m
       SET embedding = CASE WHEN m.next_embedding_model = ANY (%(done)s::text[]) AND
                                 m.embedding_model IS DISTINCT FROM %(model)s
                            THEN m.next_embedding ELSE m.embedding END,
           embedding_model = CASE WHEN m.next_embedding_model = ANY (%(done)s::text[]) AND
                                       m.embedding_model IS DISTINCT FROM %(model)s
                                  THEN m.next_embedding_model ELSE m.embedding_model END,
           next_embedding = NULL, next_embedding_model = NULL
      FROM held WHERE m.agent_id = held.agent_id AND m.memory_id = held.memory_id
    RETURNING m.agent_id, m.memory_id)
SELECT agent_id, memory_id FROM moved ORDER BY agent_id, memory_id;

-- name: build_moving_ivfflat_index
-- As build_ivfflat_index, over vectors that stand in either place: one that moves stays in it.
CREATE INDEX CONCURRENTLY {index} ON {partition}
 USING ivfflat (((CASE WHEN embedding_model = {model} THEN embedding ELSE next_embedding END)::halfvec({dimensions}))
                halfvec_cosine_ops) WITH (lists = {shape})
 WHERE embedding_model = {model} OR next_embedding_model = {model};

-- name: build_moving_hnsw_index
-- The same as an HNSW graph.
CREATE INDEX CONCURRENTLY {index} ON {partition}
 USING hnsw (((CASE WHEN embedding_model = {model} THEN embedding ELSE next_embedding END)::halfvec({dimensions}))
             halfvec_cosine_ops) WITH (m = {shape}, ef_construction = {construction})
 WHERE embedding_model = {model} OR next_embedding_model = {model};

-- name: vacuum_partition
-- Room of rows that were written again is given free, and the planner told what is there.
VACUUM (ANALYZE) {partition};
