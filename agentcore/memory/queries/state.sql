-- name: server_state
-- Returns the server's versions and whether it is read-only. Counting 20,000 rows with `little_memory` writes a
-- temporary file of half a megabyte, which fails on a full disk.
SELECT current_setting('server_version') AS version,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
       pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only,
       (SELECT count(*) FROM generate_series(1, 20000)) AS written;

-- name: flushed_lsn
-- Returns the primary's flush LSN in bytes.
SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint AS lsn;

-- name: wal_lsn
-- Returns the flush LSN of a primary or the replay LSN of a replica, in bytes, and its cluster.
SELECT (CASE WHEN pg_is_in_recovery() THEN coalesce(pg_last_wal_replay_lsn(), '0/0') ELSE pg_current_wal_flush_lsn() END
        - '0/0')::bigint AS lsn,
       c.system_identifier::text AS cluster
  FROM pg_control_system() c;

-- name: little_memory
-- Limits memory for the rest of the transaction: larger results are written to a temporary file.
SELECT set_config('work_mem', '64kB', true);

-- name: stored_embedding_models
-- Returns the models and dimensions of stored vectors, from the first rows and a sample of the others.
SELECT embedding_model, vector_dims(embedding) AS dimensions
  FROM ((SELECT embedding_model, embedding FROM memories WHERE embedding IS NOT NULL LIMIT 200)
        UNION ALL
        (SELECT embedding_model, embedding FROM memories TABLESAMPLE SYSTEM (0.1)
          WHERE embedding IS NOT NULL LIMIT 1000)) AS seen
 GROUP BY 1, 2;

-- name: service_session
-- Configures a service connection: the role that row security restricts, and a custom plan for each execution.
SELECT set_config('role', %(role)s, false), set_config('plan_cache_mode', 'force_custom_plan', false),
       set_config('statement_timeout', %(timeout_ms)s, false), set_config('TimeZone', 'UTC', false);

-- name: owner_session
-- Configures an owner connection, independent of settings of role and database.
SELECT set_config('TimeZone', 'UTC', false);

-- name: set_for_transaction
-- Sets settings of the transaction, on all nodes. As its first statement, it sets everything: a connection pooler may have assigned a
-- connection whose session was never configured.
SELECT set_for_transaction(%(settings)s::json);

-- name: waiting_work
-- Counts pending background work of all agents, without memories that a model refused.
SELECT (SELECT count(*) FROM memories
         WHERE embedding IS NULL AND embedding_model IS DISTINCT FROM %(refused)s
           AND is_live(expires_at, pinned)) AS embeddings,
       (SELECT count(*) FROM lexical_deltas) AS lexical_deltas;
