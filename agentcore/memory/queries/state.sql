-- name: server_state
-- What the server is, and whether it accepts changes. Counting 20,000 rows under `little_memory` writes and
-- removes a temporary file of half a megabyte: it fails on a full disk.
SELECT current_setting('server_version') AS version,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
       pg_is_in_recovery() OR current_setting('transaction_read_only')::boolean AS read_only,
       (SELECT count(*) FROM generate_series(1, 20000)) AS written;

-- name: little_memory
-- For the rest of the transaction: more than this goes to a temporary file.
SELECT set_config('work_mem', '64kB', true);

-- name: stored_embedding_models
-- Which models' vectors are stored, and of which length: from the first rows and a sample of the others.
SELECT embedding_model, vector_dims(embedding) AS dimensions
  FROM ((SELECT embedding_model, embedding FROM memories WHERE embedding IS NOT NULL LIMIT 200)
        UNION ALL
        (SELECT embedding_model, embedding FROM memories TABLESAMPLE SYSTEM (0.1)
          WHERE embedding IS NOT NULL LIMIT 1000)) AS seen
 GROUP BY 1, 2;

-- name: service_session
-- How a service's connection works: under the role that row security binds, each plan made for its values.
SELECT set_config('role', %(role)s, false), set_config('plan_cache_mode', 'force_custom_plan', false),
       set_config('statement_timeout', %(timeout_ms)s, false), set_config('TimeZone', 'UTC', false);

-- name: owner_session
-- How an owner's connection works, whatever the role's or the database's own settings are.
SELECT set_config('TimeZone', 'UTC', false);

-- name: begin_as_agent
-- The first statement of an agent's transaction. A pooler between us and the server may have handed this
-- transaction a connection whose session was never set: so it relies on nothing but itself.
SELECT set_config('role', %(role)s, true), set_config('agentcore.agent_id', %(agent_id)s, true),
       set_config('agentcore.users', %(users)s, true), set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true),
       set_config('TimeZone', 'UTC', true);

-- name: take_role
-- The following statements of the transaction run under this role.
SELECT set_config('role', %(role)s, true);

-- name: waiting_work
-- How much waits for background work, all agents together; what a model refused does not wait for it.
SELECT (SELECT count(*) FROM memories
         WHERE embedding IS NULL AND embedding_model IS DISTINCT FROM %(refused)s
           AND (expires_at IS NULL OR pinned OR expires_at > now())) AS embeddings,
       (SELECT count(*) FROM lexical_deltas) AS lexical_deltas;
