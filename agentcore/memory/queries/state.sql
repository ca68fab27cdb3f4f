-- name: server_state
-- What the server is, and what time it thinks it is.
SELECT current_setting('server_version') AS postgresql,
       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
       clock_timestamp() AS now;

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
       set_config('statement_timeout', %(timeout_ms)s, false);
