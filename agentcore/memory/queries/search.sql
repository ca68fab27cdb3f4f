-- name: lexical_statistics
-- Returns the agent's number of memories and of terms, and the document frequencies of these terms, folded and unfolded.
SELECT total.*, frequency.*, EXISTS (SELECT FROM memory_passages p WHERE p.agent_id = %(agent_id)s) AS has_passages
  FROM (SELECT coalesce(sum(memory_count), 0)::bigint AS memory_count, coalesce(sum(term_count), 0)::bigint AS term_count
          FROM (SELECT memory_count, term_count FROM lexical_totals WHERE agent_id = %(agent_id)s
                UNION ALL
                SELECT memory_count, term_count FROM lexical_deltas WHERE agent_id = %(agent_id)s) AS parts) AS total,
       (SELECT array_agg(term_key) AS term_keys, array_agg(memory_count) AS frequencies
          FROM (SELECT term_key, sum(memory_count)::bigint AS memory_count
                  FROM (SELECT term_key, memory_count FROM lexical_terms
                         WHERE agent_id = %(agent_id)s AND term_key = ANY (%(term_keys)s::bigint[])
                        UNION ALL
                        SELECT delta.term_key, delta.memories
                          FROM lexical_deltas d, unnest(d.term_keys, d.term_memories) AS delta (term_key, memories)
                         WHERE d.agent_id = %(agent_id)s
                           AND delta.term_key = ANY (%(term_keys)s::bigint[])) AS parts
                 GROUP BY term_key) AS counts) AS frequency;

-- name: bound_statistics
-- As lexical_statistics, over the memories of a bound token's users.
SELECT total.*, frequency.*, EXISTS (SELECT FROM memory_passages p WHERE p.agent_id = %(agent_id)s) AS has_passages
  FROM (SELECT count(*) AS memory_count, coalesce(sum(cardinality(m.term_keys)), 0)::bigint AS term_count
          FROM memories m WHERE m.agent_id = %(agent_id)s) AS total,
       (SELECT array_agg(term_key) AS term_keys, array_agg(memory_count) AS frequencies
          FROM bound_frequencies(%(agent_id)s, %(term_keys)s::bigint[])) AS frequency;

-- name: indexes_of_agent
-- Returns the vector indexes of the partition with the agent's rows, and the index keeper's comments, if the agent has
-- more rows than `few`. On Citus the rows are in a shard of a worker, and the coordinator's table has the comments.
WITH partition_of_agent AS MATERIALIZED (
    SELECT m.tableoid::regclass::text AS name FROM {table} m WHERE m.agent_id = %(agent_id)s OFFSET %(few)s LIMIT 1)
SELECT p.relname AS partition, i.relname AS name, obj_description(i.oid, 'pg_class') AS comment
  FROM partition_of_agent AS own
  JOIN pg_class p ON p.oid IN (to_regclass(own.name), '{table}'::regclass) AND p.relkind = 'r'
  JOIN pg_index x ON x.indrelid = p.oid AND x.indisvalid
  JOIN pg_class i ON i.oid = x.indexrelid
 WHERE i.relname LIKE 'ann\_%%';

-- name: selected_up_to
-- Counts the memories that the filter selects by its indexed conditions, up to `limit`; reads an index only.
SELECT count(*) AS selected
  FROM (SELECT FROM memories m
         WHERE m.agent_id = %(agent_id)s
           AND (%(user)s::jsonb IS NULL OR user_matches(m.user_id, %(user)s::jsonb))
           AND (%(session)s::text IS NULL OR m.session_id = %(session)s::text)
           AND (%(task)s::text IS NULL OR m.task_id = %(task)s::text)
           AND (%(after)s::timestamptz IS NULL OR m.timestamp >= %(after)s::timestamptz)
           AND (%(before)s::timestamptz IS NULL OR m.timestamp < %(before)s::timestamptz)
         LIMIT %(limit)s) AS few;

-- name: matches_filter
-- Condition: the memory matches the filter.
memory_matches(m, %(filter)s);

-- name: matches_current
-- The same for the filter {"current": true}, which planning need not simplify first.
(m.expires_at IS NULL OR m.pinned OR m.expires_at > now()) AND m.superseded_by IS NULL;

-- name: matches_all
-- The same for no filter.
(m.expires_at IS NULL OR m.pinned OR m.expires_at > now());

-- name: vector_retriever_exact
-- Returns the agent's nearest memories by exact comparison.
SELECT m.memory_id, {stored} <=> {vector} AS distance FROM {memories} m
 WHERE m.agent_id = %(agent_id)s AND {held} AND {matches}
 ORDER BY {stored} <=> {vector}, m.memory_id
 LIMIT %(limit)s;

-- name: vector_retriever_indexed
-- Returns the agent's nearest memories through the partition's vector index, if there is one.
SELECT m.memory_id, {stored} <=> {vector} AS distance FROM {memories} m
 WHERE m.agent_id = %(agent_id)s AND {held} AND {matches}
 ORDER BY {stored}::halfvec({dimensions}) <=> {vector}::halfvec({dimensions})
 LIMIT %(limit)s;

-- name: vector_retriever_external
-- Returns the nearest of the memories that a vector store beside PostgreSQL suggests, by exact comparison.
SELECT m.memory_id, {stored} <=> {vector} AS distance FROM {memories} m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(near_ids)s::uuid[]) AND {held} AND {matches}
 ORDER BY {stored} <=> {vector}, m.memory_id
 LIMIT %(limit)s;

-- name: vector_retriever_several
-- Returns the nearest memories to any of several vectors, by their best rank.
SELECT near.memory_id
  FROM unnest(%(vectors)s::halfvec[]) AS asked (vector)
 CROSS JOIN LATERAL (SELECT arm.memory_id, row_number() OVER () AS place FROM ({arm}) AS arm) AS near
 GROUP BY near.memory_id
 ORDER BY min(near.place), near.memory_id
 LIMIT %(several_limit)s;

-- name: lexical_retriever
-- Returns memories that contain the query's rarest terms, with their places, best by BM25 first.
SELECT memory_id, row_number() OVER () AS place
  FROM lexical_hits(%(agent_id)s, %(term_keys)s::bigint[], %(weights)s::real[], %(filter)s, %(lexical_limit)s, %(k1)s, %(b)s);

-- name: lexical_retriever_none
-- No term of the query is looked up.
SELECT NULL::uuid AS memory_id, 0::bigint AS place WHERE false;

-- name: beside_foremost
-- Returns the messages directly before and after each top hit in its session.
SELECT f.memory_id AS found_id, near.memory_id
  FROM foremost
 CROSS JOIN LATERAL (SELECT f.* FROM {memories} f
                      WHERE f.agent_id = %(agent_id)s AND f.memory_id = ANY (ARRAY[foremost.memory_id])
                      ORDER BY f.memory_id OFFSET 0) AS f
 CROSS JOIN LATERAL (
       (SELECT m.memory_id FROM {memories} m
         WHERE m.agent_id = %(agent_id)s AND m.session_id = f.session_id
           AND (m.timestamp, m.memory_id) < (f.timestamp, f.memory_id) AND {matches}
         ORDER BY m.timestamp DESC, m.memory_id DESC LIMIT 1)
        UNION ALL
       (SELECT m.memory_id FROM {memories} m
         WHERE m.agent_id = %(agent_id)s AND m.session_id = f.session_id
           AND (m.timestamp, m.memory_id) > (f.timestamp, f.memory_id) AND {matches}
         ORDER BY m.timestamp, m.memory_id LIMIT 1)
       ) AS near
 WHERE f.session_id IS NOT NULL;

-- name: temporal_retriever
-- Returns memories about or from one of these time spans, nearest to the query first. Per span, the latest rows are
-- read, and of the matching ones the latest are compared.
SELECT inside.memory_id
  FROM unnest(%(window_starts)s::timestamptz[], %(window_ends)s::timestamptz[]) AS span (starts_at, ends_at)
 CROSS JOIN LATERAL (
       (SELECT m.memory_id, m.timestamp, CASE WHEN {held} THEN {distance} END AS distance
          FROM (SELECT m AS memory FROM memories m
                 WHERE m.agent_id = %(agent_id)s
                   AND m.timestamp >= span.starts_at AND m.timestamp < span.ends_at
                 ORDER BY m.timestamp DESC LIMIT %(read_rows)s) AS said
         CROSS JOIN LATERAL (SELECT (said.memory).memory_id, (said.memory).timestamp, (said.memory).embedding, (said.memory).embedding_model,
                                    (said.memory).next_embedding, (said.memory).next_embedding_model) AS m
         WHERE memory_matches(said.memory, %(filter)s) LIMIT %(window_rows)s)
        UNION ALL
       (SELECT m.memory_id, m.timestamp, CASE WHEN {held} THEN {distance} END AS distance
          FROM (SELECT m AS memory FROM memories m
                 WHERE m.agent_id = %(agent_id)s
                   AND m.event_to > span.starts_at AND m.event_from < span.ends_at
                 ORDER BY m.event_to DESC LIMIT %(read_rows)s) AS told
         CROSS JOIN LATERAL (SELECT (told.memory).memory_id, (told.memory).timestamp, (told.memory).embedding, (told.memory).embedding_model,
                                    (told.memory).next_embedding, (told.memory).next_embedding_model) AS m
         WHERE memory_matches(told.memory, %(filter)s) LIMIT %(window_rows)s)
       ) AS inside
 GROUP BY inside.memory_id
 ORDER BY min(inside.distance) NULLS LAST, max(inside.timestamp) DESC
 LIMIT %(temporal_limit)s;

-- name: temporal_retriever_none
-- No time span in the query.
SELECT NULL::uuid AS memory_id WHERE false;

-- name: vector_retriever_none
-- No query vector.
SELECT NULL::uuid AS memory_id WHERE false;

-- name: distance_to_one
-- Distance to the query vector.
({stored} <=> %(vector)s::halfvec);

-- name: distance_to_nearest
-- Distance to the nearest of the query vectors.
(SELECT min({stored} <=> asked.vector) FROM unnest(%(vectors)s::halfvec[]) AS asked (vector));

-- name: held_ever
-- No condition on validity.
true;

-- name: held_then
-- Condition: the memory is current, or was valid in one of these time spans.
(m.superseded_by IS NULL
    OR EXISTS (SELECT FROM unnest(%(held_starts)s::timestamptz[], %(held_ends)s::timestamptz[]) AS span (starts_at, ends_at)
                WHERE coalesce(m.valid_from, m.timestamp) < span.ends_at
                  AND (m.valid_to IS NULL OR m.valid_to > span.starts_at)));

-- name: no_distance
-- Without a query vector.
(NULL::double precision);

-- name: compare_memories
-- Returns whether memories match a search's filter and validity, and their similarity to its query.
SELECT m.memory_id, memory_matches(m, %(filter)s) AS matches, m.superseded_by,
       (m.expires_at IS NULL OR m.pinned OR m.expires_at > now()) AS is_live, {then} AS was_valid,
       1 - CASE WHEN {held} THEN {distance} END AS similarity
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s);

-- name: candidates
-- Returns the candidates of all retrievers with what ranking needs: vector hits, lexical hits, memories linked to the
-- top hits of both (strongest links and best hits first), their neighbors in the session, and memories of the time
-- spans. Each retriever applies the filter. Memories are looked up as in `search_hits` (read.sql).
WITH nearest AS MATERIALIZED ({nearest}),
     lexical AS MATERIALIZED ({lexical}),
     foremost AS MATERIALIZED (
         SELECT best.memory_id, min(best.place) AS place
           FROM (SELECT memory_id, place FROM lexical WHERE place <= %(foremost)s
                  UNION ALL
                 (SELECT memory_id, row_number() OVER () FROM nearest LIMIT %(foremost)s)) AS best
          GROUP BY best.memory_id
     ),
     linked AS MATERIALIZED (
         SELECT m.memory_id
           FROM memory_links l
           JOIN {memories} m ON m.agent_id = %(agent_id)s AND m.memory_id =
                CASE WHEN l.source_id = ANY (ARRAY(SELECT memory_id FROM foremost)) THEN l.target_id
                     ELSE l.source_id END
          WHERE l.agent_id = %(agent_id)s
            AND (l.source_id = ANY (ARRAY(SELECT memory_id FROM foremost))
                 OR l.target_id = ANY (ARRAY(SELECT memory_id FROM foremost)))
            AND {matches}
          ORDER BY l.weight DESC,
                (SELECT min(f.place) FROM foremost f WHERE f.memory_id IN (l.source_id, l.target_id))
          LIMIT %(link_limit)s
     ),
     beside AS MATERIALIZED ({beside}),
     timely AS MATERIALIZED ({timely}),
     found AS MATERIALIZED (
         SELECT each.memory_id, bool_or(each.retriever = 1) AS is_near, bool_or(each.retriever = 2) AS is_lexical,
                bool_or(each.retriever = 3) AS is_linked, bool_or(each.retriever = 4) AS is_timely,
                array_remove(array_agg(each.found_id), NULL) AS beside_ids
           FROM (SELECT memory_id, 1 AS retriever, NULL::uuid AS found_id FROM nearest
                  UNION ALL SELECT memory_id, 2, NULL FROM lexical
                  UNION ALL SELECT memory_id, 3, NULL FROM linked
                  UNION ALL SELECT memory_id, 4, NULL FROM timely
                  UNION ALL SELECT memory_id, 5, found_id FROM beside) AS each
          GROUP BY each.memory_id
     ),
     ties AS MATERIALIZED (
         SELECT l.source_id, array_agg(l.target_id) AS target_ids, array_agg(l.weight) AS weights,
                array_agg(l.relation) AS relations
           FROM memory_links l
          WHERE l.agent_id = %(agent_id)s AND l.source_id = ANY (ARRAY(SELECT memory_id FROM found))
            AND l.target_id IN (SELECT memory_id FROM found)
          GROUP BY l.source_id
     )
SELECT m.memory_id, m.timestamp, m.relevance_score::double precision AS relevance_score,
       CASE WHEN cardinality(m.term_keys) <= %(most_terms)s THEN m.term_keys -- a long memory has tens of thousands
            ELSE m.term_keys[:%(most_terms)s] || ARRAY(
                 SELECT beyond.term_key FROM unnest(m.term_keys[%(most_terms)s + 1:]) AS beyond (term_key)
                  WHERE beyond.term_key = ANY (%(query_keys)s::bigint[]) LIMIT %(most_terms)s / 4) END AS term_keys,
       m.content_hash, m.speaker, m.user_id, m.namespace, m.session_id,
       1 - coalesce(best.distance, CASE WHEN {held} THEN {distance} END) AS similarity,
       best.start AS passage_start, best."end" AS passage_end,
       m.token_count < 400 AND position('?' IN right(m.content, 80)) > 0 AS asks,
       left(m.content, 6) = 'User: ' AS is_exchange, coalesce(m.kind = 'consolidation', false) AS is_summary,
       m.event_from, m.event_to,
       CASE WHEN m.superseded_by IS NOT NULL THEN coalesce(m.valid_from, m.timestamp) END AS held_from,
       coalesce(m.valid_to, '9998-12-31Z') AS held_to,
       coalesce(u.access_count, 0) AS access_count, u.last_accessed,
       -- The top lexical hits, too: an index can miss the nearest memory.
       CASE WHEN m.memory_id = ANY (ARRAY(SELECT memory_id FROM nearest LIMIT %(compared)s)) OR
                 NOT found.is_near AND {held} AND
                 m.memory_id = ANY (ARRAY(SELECT memory_id FROM lexical WHERE place <= %(compared)s))
            THEN coalesce(best.embedding, {stored}) END AS vector,
       found.is_near, found.is_lexical, found.is_linked, found.is_timely,
       ties.target_ids, ties.weights, ties.relations, found.beside_ids
  FROM found
 CROSS JOIN LATERAL (SELECT m.* FROM {memories} m
                      WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (ARRAY[found.memory_id]) AND {then}
                      ORDER BY m.memory_id OFFSET 0) AS m
  LEFT JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = m.memory_id
  LEFT JOIN ties ON ties.source_id = m.memory_id
  LEFT JOIN LATERAL ({best}) AS best ON true;
