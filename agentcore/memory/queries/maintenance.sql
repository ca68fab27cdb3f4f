-- name: agents_with_deltas
-- Returns the agents with unfolded document frequencies, longest pending first.
SELECT agent_id FROM lexical_deltas GROUP BY agent_id ORDER BY min(delta_id) LIMIT %(limit)s;

-- name: lock_lexical_deltas
-- Locks an agent's oldest deltas, to be folded into its document frequencies.
SELECT delta_id FROM lexical_deltas WHERE agent_id = %(agent_id)s
 ORDER BY delta_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED;

-- name: fold_lexical_totals
INSERT INTO lexical_totals AS t (agent_id, memory_count, term_count)
SELECT %(agent_id)s, sum(d.memory_count), sum(d.term_count) FROM lexical_deltas d
 WHERE d.agent_id = %(agent_id)s AND d.delta_id = ANY (%(delta_ids)s::bigint[]) HAVING count(*) > 0
    ON CONFLICT (agent_id) DO UPDATE SET memory_count = t.memory_count + EXCLUDED.memory_count,
                                         term_count = t.term_count + EXCLUDED.term_count;

-- name: fold_lexical_terms
-- In key order, so that two folds cannot deadlock.
INSERT INTO lexical_terms AS t (agent_id, term_key, memory_count)
SELECT %(agent_id)s, delta.term_key, sum(delta.memories)
  FROM lexical_deltas d, unnest(d.term_keys, d.term_memories) AS delta (term_key, memories)
 WHERE d.agent_id = %(agent_id)s AND d.delta_id = ANY (%(delta_ids)s::bigint[])
 GROUP BY delta.term_key
HAVING sum(delta.memories) <> 0
 ORDER BY delta.term_key
    ON CONFLICT (agent_id, term_key) DO UPDATE SET memory_count = t.memory_count + EXCLUDED.memory_count;

-- name: forget_lexical_deltas
DELETE FROM lexical_deltas WHERE agent_id = %(agent_id)s AND delta_id = ANY (%(delta_ids)s::bigint[]);

-- name: forget_empty_terms
-- Deletes the terms of these deltas with count zero, which equals no row.
DELETE FROM lexical_terms
 WHERE agent_id = %(agent_id)s AND memory_count = 0
   AND term_key IN (SELECT unnest(d.term_keys) FROM lexical_deltas d
                     WHERE d.agent_id = %(agent_id)s AND d.delta_id = ANY (%(delta_ids)s::bigint[]));

-- name: forget_empty_totals
-- Deletes the totals of an agent without memories.
DELETE FROM lexical_totals WHERE agent_id = %(agent_id)s AND memory_count = 0 AND term_count = 0;

-- name: memories_without_vector
-- Returns memories without vector, oldest first, except those that this model refused.
SELECT agent_id, memory_id, version, content, speaker FROM memories
 WHERE embedding IS NULL AND embedding_model IS DISTINCT FROM %(refused)s
   AND is_live(expires_at, pinned)
 ORDER BY created_at LIMIT %(limit)s;

-- name: set_embedding
-- Sets the vector of a memory that has none, if its version is unchanged.
UPDATE memories SET embedding = %(embedding)s, embedding_model = %(embedding_model)s
 WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s AND version = %(version)s AND embedding IS NULL;

-- name: expired_memories
-- Returns memories that expired longer than the grace period ago.
SELECT agent_id, memory_id FROM memories
 WHERE expires_at IS NOT NULL AND expires_at < now() - make_interval(secs => %(grace_seconds)s) AND NOT pinned
 ORDER BY agent_id, memory_id LIMIT %(limit)s;

-- name: sweep_idempotency_keys
-- Deletes expired idempotency keys.
DELETE FROM idempotency_keys WHERE expires_at < now();

-- name: sweep_redis_instances
-- Deletes every Redis whose working memory has expired.
DELETE FROM redis_instances WHERE copies_until <= now();

-- name: table_sizes
-- Returns the bytes of the largest tables with their indexes; partitions count to their table.
SELECT coalesce(parent.relname, c.relname) AS name, sum(pg_total_relation_size(c.oid))::bigint AS bytes
  FROM pg_class c
  LEFT JOIN pg_inherits h ON h.inhrelid = c.oid
  LEFT JOIN pg_class parent ON parent.oid = h.inhparent
 WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace
 GROUP BY 1 ORDER BY 2 DESC LIMIT 12;

-- name: distributed_table_sizes
-- Returns the bytes of distributed tables with their indexes, over all shards; NULL while a worker is unavailable.
SELECT table_name::text AS name, CASE WHEN bool_and(shard_size IS NOT NULL) THEN sum(shard_size)::bigint END AS bytes
  FROM citus_shards GROUP BY 1;

-- name: partition_sizes
-- Returns the partitions, or the distributed tables, with estimated rows and vector indexes.
SELECT c.relname AS partition, greatest(c.reltuples, 0)::bigint AS rows, s.n_live_tup AS live_rows,
       h.inhrelid IS NULL AS is_distributed,
       coalesce(jsonb_agg(jsonb_build_object('name', i.relname, 'valid', x.indisvalid,
                                             'comment', obj_description(i.oid, 'pg_class'),
                                             'bytes', pg_relation_size(i.oid)))
                FILTER (WHERE i.relname LIKE 'ann\_%%'), '[]') AS indexes
  FROM pg_class c
  LEFT JOIN pg_inherits h ON h.inhrelid = c.oid
  LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
  LEFT JOIN pg_index x ON x.indrelid = c.oid
  LEFT JOIN pg_class i ON i.oid = x.indexrelid
 WHERE h.inhparent IN ('memories'::regclass, 'memory_passages'::regclass)
    OR c.relkind = 'r' AND c.oid IN ('memories'::regclass, 'memory_passages'::regclass)
 GROUP BY c.relname, c.reltuples, s.n_live_tup, h.inhrelid
 ORDER BY c.relname;

-- name: shard_sizes
-- Returns for each distributed table with vectors the estimated rows of its largest shard, and the bytes of its vector
-- indexes, over all shards. No row for a table if a shard did not answer.
WITH shards AS (
    SELECT name, each.success, CASE WHEN each.success THEN each.result::jsonb END AS sizes
      FROM unnest(ARRAY['memories', 'memory_passages']) AS name
     CROSS JOIN LATERAL run_command_on_shards(name::regclass, $$
           SELECT json_build_object('rows', greatest(c.reltuples, pg_stat_get_live_tuples(c.oid)), 'indexes', (
                      SELECT coalesce(json_object_agg(i.relname, pg_relation_size(i.oid)), '{}')
                        FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
                       WHERE x.indrelid = c.oid AND starts_with(i.relname, 'ann_')))
             FROM pg_class c WHERE c.oid = '%%s'::regclass$$) AS each),
indexes AS (
    SELECT name, regexp_replace(key, '_\d+$', '') AS index, sum(value::bigint) AS bytes
      FROM shards CROSS JOIN LATERAL jsonb_each_text(sizes -> 'indexes')
     GROUP BY 1, 2)
SELECT name AS partition, max((sizes ->> 'rows')::real)::bigint AS rows,
       (SELECT coalesce(jsonb_object_agg(i.index, i.bytes), '{}') FROM indexes i WHERE i.name = s.name) AS index_bytes
  FROM shards s
 GROUP BY name
HAVING bool_and(success);

-- name: take_index_lock
-- Tries to take the lock for vector indexes: an invalid index may be under construction by another process.
SELECT pg_try_advisory_lock(%(key)s) AS taken;

-- name: index_building_session
-- Sets the memory of index builds (in kB), without parallel workers: a core is left for searches. Citus builds on one shard
-- of a worker at a time, with that worker's own settings.
SELECT set_config('maintenance_work_mem', %(memory)s, false),
       set_config('max_parallel_maintenance_workers', '0', false),
       set_config('citus.max_adaptive_executor_pool_size', '1', false);

-- name: build_ivfflat_index
-- Creates an ivfflat index over a partition's vectors of one model; its lists are trained on the existing rows.
CREATE INDEX CONCURRENTLY {index} ON {partition}
 USING ivfflat ((embedding::halfvec({dimensions})) halfvec_cosine_ops) WITH (lists = {shape})
 WHERE embedding_model = {model};

-- name: build_hnsw_index
-- Creates an HNSW index over a partition's vectors of one model.
CREATE INDEX CONCURRENTLY {index} ON {partition}
 USING hnsw ((embedding::halfvec({dimensions})) halfvec_cosine_ops)
  WITH (m = {shape}, ef_construction = {construction})
 WHERE embedding_model = {model};

-- name: describe_vector_index
-- Stores build parameters and measurements in an index's comment.
COMMENT ON INDEX {index} IS {description};

-- name: drop_vector_index
-- Drops a vector index without blocking.
DROP INDEX CONCURRENTLY IF EXISTS {index};

-- name: sample_vectors
-- Samples vectors of a partition with their agents, preferably agents that are searched through the index.
SELECT sampled.agent_id, sampled.embedding::real[] AS vector
  FROM (SELECT m.agent_id, m.embedding FROM {partition} m TABLESAMPLE SYSTEM (%(percent)s)
         WHERE m.embedding_model = %(model)s AND m.embedding IS NOT NULL) AS sampled
  LEFT JOIN lexical_totals t ON t.agent_id = sampled.agent_id
 ORDER BY coalesce(t.memory_count, 0) > %(exact_search_limit)s DESC, random()
 LIMIT %(limit)s;

-- name: measuring_timeout
-- Sets the timeout of the next search in milliseconds.
SELECT set_config('statement_timeout', %(timeout_ms)s, true);
