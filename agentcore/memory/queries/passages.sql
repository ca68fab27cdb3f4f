-- name: enqueue_passages
-- Enqueues long memories for passage embedding, in id order.
INSERT INTO llm_queue (agent_id, memory_id, work)
SELECT %(agent_id)s, pending.memory_id, 'passages' FROM unnest(%(memory_ids)s::uuid[]) AS pending (memory_id)
 ORDER BY 2
    ON CONFLICT DO NOTHING;

-- name: delete_passages
-- Deletes the passages of a memory whose text changed.
DELETE FROM memory_passages WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s;

-- name: pending_passages
-- Returns the longest pending memories with the numbers of their embedded passages.
SELECT m.memory_id, m.version, m.content, m.speaker,
       ARRAY(SELECT p.passage FROM memory_passages p
              WHERE p.agent_id = %(agent_id)s AND p.memory_id = m.memory_id
                AND p.embedding_model = ANY (%(done)s::text[])) AS embedded
  FROM llm_queue q
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = q.memory_id
 WHERE q.agent_id = %(agent_id)s AND q.work = 'passages'
 ORDER BY q.queued_at, q.memory_id LIMIT %(limit)s;

-- name: insert_passages
-- Inserts passages of memories that still have this version; locks those against changes until the commit.
WITH made AS (
    SELECT * FROM unnest(%(memory_ids)s::uuid[], %(versions)s::integer[], %(passages)s::smallint[], %(starts)s::integer[],
                         %(ends)s::integer[], %(models)s::text[], %(vectors)s::halfvec[])
                  AS made (memory_id, version, passage, start, "end", embedding_model, embedding)),
held AS (
    SELECT m.memory_id, m.version FROM memories m
     WHERE m.agent_id = %(agent_id)s
       AND (m.memory_id, m.version) IN (SELECT made.memory_id, made.version FROM made)
     ORDER BY m.memory_id FOR SHARE)
INSERT INTO memory_passages (agent_id, memory_id, passage, embedding_model, start, "end", embedding)
SELECT %(agent_id)s, made.memory_id, made.passage, made.embedding_model, made.start, made."end", made.embedding
  FROM made JOIN held ON held.memory_id = made.memory_id
    ON CONFLICT DO NOTHING;

-- name: passage_retriever_exact
-- Returns the memories with the nearest passages, by exact comparison.
SELECT p.memory_id, min(p.embedding <=> {vector}) AS distance
  FROM memory_passages p
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = p.memory_id
 WHERE p.agent_id = %(agent_id)s AND p.embedding_model = %(model)s AND {then} AND memory_matches(m, %(filter)s)
 GROUP BY p.memory_id
 ORDER BY 2, 1
 LIMIT %(limit)s;

-- name: passage_retriever_indexed
-- Returns the memories with the nearest passages through the partition's vector index; fetches more passages than
-- memories, since several may belong to one.
SELECT near.memory_id, min(near.distance) AS distance
  FROM (SELECT p.memory_id, p.embedding <=> {vector} AS distance
          FROM memory_passages p
          JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = p.memory_id
         WHERE p.agent_id = %(agent_id)s AND p.embedding_model = %(model)s AND {then} AND memory_matches(m, %(filter)s)
         ORDER BY p.embedding::halfvec({dimensions}) <=> {vector}::halfvec({dimensions})
         LIMIT 4 * %(limit)s) AS near
 GROUP BY near.memory_id
 ORDER BY 2, 1
 LIMIT %(limit)s;

-- name: vector_retriever_with_passages
-- Returns the nearest memories by their own vector or by a passage.
SELECT near.memory_id, min(near.distance) AS distance
  FROM (({own}) UNION ALL ({passages})) AS near
 GROUP BY near.memory_id
 ORDER BY 2, 1
 LIMIT %(limit)s;

-- name: best_passage
-- Returns a memory's passage nearest to the query, if it is nearer than the memory's own vector.
SELECT nearest_passage.*
  FROM (SELECT p.start, p."end", p.embedding, {passage_distance} AS distance
          FROM memory_passages p
         WHERE p.agent_id = %(agent_id)s AND p.memory_id = m.memory_id AND p.embedding_model = %(model)s
         ORDER BY 4 LIMIT 1) AS nearest_passage
 WHERE nearest_passage.distance < CASE WHEN {held} THEN {distance} ELSE 'Infinity' END;

-- name: no_passage
-- No passage, if the agent has none or the query has no vector.
SELECT NULL::integer AS start, NULL::integer AS "end", NULL::halfvec AS embedding, NULL::float8 AS distance WHERE false;
