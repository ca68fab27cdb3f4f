-- name: get_memories
-- Returns whole records with usage and links, in the order of the ids, up to max_bytes but at least one.
WITH sized AS (
    SELECT each.*, sum(each.bytes) OVER (ORDER BY each.place ROWS UNBOUNDED PRECEDING) AS running
      FROM (SELECT m.memory_id, wanted.place,
                   2000 + octet_length(m.content) + octet_length(m.summary) + octet_length(m.metadata::text)
                   + octet_length(m.provenance::text) + coalesce(octet_length(m.actions::text), 0)
                   + coalesce(octet_length(m.outcome::text), 0) + coalesce(octet_length(m.action_outcomes::text), 0)
                   + coalesce(octet_length(m.response), 0) + octet_length(m.facts::text) + octet_length(m.entities::text) + octet_length(m.keywords::text)
                   + octet_length(m.tags::text)
                   + CASE WHEN %(vectors)s AND m.provenance ? 'own_vector_of'
                          THEN 24 * coalesce(vector_dims(m.embedding), 0) ELSE 0 END
                   + 150 * (SELECT count(*) FROM memory_links l
                             WHERE l.agent_id = %(agent_id)s AND l.source_id = m.memory_id)
                   + 50 * (SELECT count(*) FROM memory_links l
                            WHERE l.agent_id = %(agent_id)s AND l.target_id = m.memory_id) AS bytes
              FROM unnest(%(memory_ids)s::uuid[]) WITH ORDINALITY AS wanted (memory_id, place)
              JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = wanted.memory_id
             WHERE is_live(m.expires_at, m.pinned)) AS each)
SELECT m.memory_id, m.memory_type, m.content, m.summary, m.timestamp, m.interaction_id, m.task_id, m.session_id,
       m.user_id, m.namespace, m.speaker, m.external_id, m.actions, m.outcome, m.action_outcomes, m.entities, m.facts,
       m.keywords, m.tags, m.metadata, m.relevance_score, m.pinned, m.expires_at, m.event_from, m.event_to,
       m.valid_from, m.valid_to, m.superseded_by, m.parent_memory_id, m.provenance, m.embedding_model, m.content_hash,
       m.version, m.created_at, m.updated_at, m.flagged, m.response, coalesce(u.access_count, 0) AS access_count, u.last_accessed,
       ARRAY(SELECT l.target_id FROM memory_links l
              WHERE l.agent_id = %(agent_id)s AND l.source_id = m.memory_id AND l.relation <> 'probably_changes'
              UNION SELECT l.source_id FROM memory_links l
              WHERE l.agent_id = %(agent_id)s AND l.target_id = m.memory_id
                AND l.relation <> 'probably_changes') AS related_memory_ids,
       (SELECT jsonb_agg(jsonb_build_object('target_id', l.target_id, 'relation', l.relation, 'weight', l.weight)
                         ORDER BY l.target_id, l.relation)
          FROM memory_links l
         WHERE l.agent_id = %(agent_id)s AND l.source_id = m.memory_id AND l.relation <> 'probably_changes') AS links
  FROM sized
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = sized.memory_id
  LEFT JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = m.memory_id
 WHERE sized.running <= %(max_bytes)s OR sized.running = sized.bytes
 ORDER BY sized.place;

-- name: search_hits
-- Looks up search hits by id, without order. Hits beyond max_bytes have no content; the first always has. A generic plan
-- is made for the average agent, and as a join it would read all memories of a large one. OFFSET 0 keeps each lookup a
-- subquery. With ANY instead of `=`, ORDER BY makes the planner choose the primary key, the only index in this order.
WITH sized AS (
    SELECT each.*, sum(each.bytes) OVER (ORDER BY each.place ROWS UNBOUNDED PRECEDING) AS running
      FROM (SELECT m.memory_id, wanted.place,
                   1000 + octet_length(m.content) + octet_length(m.summary) + octet_length(m.metadata::text)
                   + octet_length(m.entities::text) + octet_length(m.keywords::text) + octet_length(m.tags::text)
                   + coalesce(octet_length((m.provenance -> 'sources')::text), 0) AS bytes
              FROM unnest(%(memory_ids)s::uuid[]) WITH ORDINALITY AS wanted (memory_id, place)
             CROSS JOIN LATERAL (SELECT m.* FROM memories m
                                  WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (ARRAY[wanted.memory_id])
                                    AND is_live(m.expires_at, m.pinned) ORDER BY m.memory_id OFFSET 0) AS m) AS each)
SELECT sized.memory_id, m.memory_type, m.content, m.summary, m.timestamp, m.relevance_score, m.speaker, m.task_id,
       m.session_id, m.user_id, m.namespace, m.external_id, m.parent_memory_id, m.entities, m.keywords, m.tags, m.metadata, m.flagged,
       CASE WHEN m.kind IN ('consolidation', 'session', 'period') THEN m.provenance -> 'sources' END AS sources,
       m.superseded_by, CASE WHEN m.superseded_by IS NOT NULL THEN coalesce(m.valid_from, m.timestamp) END AS valid_from,
       CASE WHEN m.superseded_by IS NOT NULL THEN m.valid_to END AS valid_to
  FROM sized
  LEFT JOIN LATERAL (SELECT m.* FROM memories m
                      WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (ARRAY[sized.memory_id])
                      ORDER BY m.memory_id OFFSET 0) AS m
         ON sized.running <= %(max_bytes)s OR sized.running = sized.bytes;

-- name: get_contents
-- Returns content from an offset and the speaker of each memory, for a reranker.
SELECT m.memory_id, substr(m.content, wanted.start + 1, %(max_chars)s) AS content, m.speaker
  FROM unnest(%(memory_ids)s::uuid[], %(starts)s::integer[]) AS wanted (memory_id, start)
  JOIN memories m ON m.agent_id = %(agent_id)s AND m.memory_id = wanted.memory_id
 WHERE is_live(m.expires_at, m.pinned);

-- name: list_by_timestamp
-- Returns a page by timestamp. `direction` and `beyond`: DESC and <, or ASC and >.
SELECT m.memory_id, m.timestamp AS place
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND memory_matches(m, %(filter)s)
   AND (%(place)s::timestamptz IS NULL
        OR (m.timestamp, m.memory_id) {beyond} (%(place)s::timestamptz, %(after_id)s::uuid))
 ORDER BY m.timestamp {direction}, m.memory_id {direction}
 LIMIT %(limit)s;

-- name: list_by_importance
-- Returns a page by importance.
SELECT m.memory_id, m.relevance_score::double precision AS place
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND memory_matches(m, %(filter)s)
   AND (%(place)s::double precision IS NULL
        OR (m.relevance_score, m.memory_id) {beyond} (%(place)s::double precision::real, %(after_id)s::uuid))
 ORDER BY m.relevance_score {direction}, m.memory_id {direction}
 LIMIT %(limit)s;

-- name: list_by_access_count
-- Returns a page by access count.
SELECT m.memory_id, coalesce(u.access_count, 0) AS place
  FROM memories m
  LEFT JOIN memory_usage u ON u.agent_id = %(agent_id)s AND u.memory_id = m.memory_id
 WHERE m.agent_id = %(agent_id)s AND memory_matches(m, %(filter)s)
   AND (%(place)s::integer IS NULL
        OR (coalesce(u.access_count, 0), m.memory_id) {beyond} (%(place)s::integer, %(after_id)s::uuid))
 ORDER BY coalesce(u.access_count, 0) {direction}, m.memory_id {direction}
 LIMIT %(limit)s;

-- name: count_memories
-- Counts matching memories.
SELECT count(*) AS count FROM memories m
 WHERE m.agent_id = %(agent_id)s AND memory_matches(m, %(filter)s);

-- name: count_values
-- Counts the values of `fields` among the newest `newest` matching memories, the most frequent `limit` of each field.
-- Without values, returns one row with the number of memories.
WITH newest AS MATERIALIZED (
    SELECT m.memory_type, m.user_id, m.session_id, m.task_id, m.namespace, m.speaker, m.tags, m.timestamp
      FROM memories m
     WHERE m.agent_id = %(agent_id)s AND memory_matches(m, %(filter)s)
     ORDER BY m.timestamp DESC
     LIMIT %(newest)s),
counted AS (
    SELECT held.field, held.value, count(*) AS count, max(n.timestamp) AS newest
      FROM newest n
     CROSS JOIN LATERAL (
           SELECT 'memory_type' AS field, n.memory_type AS value WHERE 'memory_type' = ANY (%(fields)s)
           UNION ALL SELECT 'user_id', n.user_id WHERE 'user_id' = ANY (%(fields)s)
           UNION ALL SELECT 'session_id', n.session_id WHERE 'session_id' = ANY (%(fields)s)
           UNION ALL SELECT 'task_id', n.task_id WHERE 'task_id' = ANY (%(fields)s)
           UNION ALL SELECT 'namespace', n.namespace WHERE 'namespace' = ANY (%(fields)s)
           UNION ALL SELECT 'speaker', n.speaker WHERE 'speaker' = ANY (%(fields)s)
           UNION ALL SELECT 'day', to_char(n.timestamp AT TIME ZONE 'UTC', 'YYYY-MM-DD') WHERE 'day' = ANY (%(fields)s)
           UNION ALL SELECT 'tags', tag FROM unnest(n.tags) AS tag WHERE 'tags' = ANY (%(fields)s)) AS held
     WHERE held.value IS NOT NULL
     GROUP BY held.field, held.value),
ranked AS (
    SELECT *, row_number() OVER (PARTITION BY field ORDER BY count DESC, newest DESC, value) AS place FROM counted)
SELECT r.field, r.value, r.count, r.newest, total.memories
  FROM (SELECT count(*) AS memories FROM newest) AS total
  LEFT JOIN ranked r ON r.place <= %(limit)s
 ORDER BY r.field, r.place;

-- name: newest_vectors
-- Returns a page by timestamp with the vectors of the model searched.
SELECT m.memory_id, m.timestamp, m.memory_type, m.user_id, m.session_id,
       CASE WHEN {held} AND vector_dims({stored}) = {dimensions} THEN {stored} END AS vector
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND memory_matches(m, %(filter)s)
   AND (%(place)s::timestamptz IS NULL
        OR (m.timestamp, m.memory_id) < (%(place)s::timestamptz, %(after_id)s::uuid))
 ORDER BY m.timestamp DESC, m.memory_id DESC
 LIMIT %(limit)s;

-- name: count_flagged
-- Counts matching memories that are flagged.
SELECT count(*) AS count FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.flagged AND memory_matches(m, %(filter)s);

-- name: layer_statistics
-- Returns size and time range per layer.
SELECT m.memory_type, count(*) AS count, min(m.timestamp) AS oldest, max(m.timestamp) AS newest,
       count(*) FILTER (WHERE m.pinned) AS pinned,
       count(*) FILTER (WHERE m.embedding IS NULL AND (m.embedding_model IS NULL
                                 OR NOT starts_with(m.embedding_model, 'refused:'))) AS waiting_for_embedding
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND memory_matches(m, '{}')
 GROUP BY m.memory_type;

-- name: agent_statistics
-- Counts the agent's links, archived memories and accesses.
SELECT (SELECT count(*) FROM memory_links WHERE agent_id = %(agent_id)s) AS links,
       (SELECT count(*) FROM archived_memories WHERE agent_id = %(agent_id)s) AS archived,
       (SELECT coalesce(sum(access_count), 0)::bigint FROM memory_usage WHERE agent_id = %(agent_id)s) AS accesses;

-- name: working_rows
-- Returns a task's working memory since its completion, if any, newest first, and whether each row matches the filter.
-- Empty if no row is newer than the TTL. `columns`: the columns of `m` that the caller needs.
SELECT {columns}, memory_matches(m, %(filter)s) AS matches
  FROM memories m
  LEFT JOIN completed_tasks c ON c.agent_id = %(agent_id)s AND c.task_id = %(task_id)s
 WHERE m.agent_id = %(agent_id)s AND m.task_id = %(task_id)s AND m.superseded_by IS NULL
   AND is_live(m.expires_at, m.pinned)
   AND m.created_at > coalesce(c.completed_at, '-infinity')
   AND (SELECT true FROM memories newest -- in this order the index is read, and the first row decides as a rule
         WHERE newest.agent_id = %(agent_id)s AND newest.task_id = %(task_id)s
           AND newest.created_at > now() - make_interval(secs => %(ttl_seconds)s)
         ORDER BY newest.timestamp DESC LIMIT 1)
 ORDER BY m.timestamp DESC, m.memory_id DESC
 LIMIT %(limit)s;
