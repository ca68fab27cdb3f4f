-- name: claim_idempotency_keys
-- Claims the keys that are free or expired; keys that are not returned are taken.
INSERT INTO idempotency_keys (agent_id, idempotency_key, request_digest, memory_id, created_at, expires_at)
SELECT %(agent_id)s, claim.key, claim.digest, claim.memory_id, now(), now() + make_interval(secs => %(ttl_seconds)s)
  FROM unnest(%(keys)s::text[], %(digests)s::bytea[], %(memory_ids)s::uuid[]) AS claim (key, digest, memory_id)
 ORDER BY claim.key
    ON CONFLICT (agent_id, idempotency_key) DO UPDATE
       SET request_digest = EXCLUDED.request_digest, memory_id = EXCLUDED.memory_id,
           created_at = EXCLUDED.created_at, expires_at = EXCLUDED.expires_at
     WHERE idempotency_keys.expires_at <= EXCLUDED.created_at
RETURNING idempotency_key;

-- name: find_idempotency_keys
-- Returns the request digest and memory of unexpired idempotency keys.
SELECT idempotency_key, request_digest, memory_id
  FROM idempotency_keys
 WHERE agent_id = %(agent_id)s AND idempotency_key = ANY (%(keys)s::text[]) AND expires_at > now();

-- name: point_idempotency_key
-- Points a claimed key to an existing memory.
UPDATE idempotency_keys SET memory_id = %(memory_id)s
 WHERE agent_id = %(agent_id)s AND idempotency_key = %(key)s;

-- name: find_same_texts
-- Returns current memories with one of these content hashes, for deduplication.
SELECT m.memory_id, m.content_hash, m.task_id, m.session_id, m.user_id, m.namespace, m.speaker, m.memory_type,
       m.timestamp, m.tags, m.metadata, m.pinned, m.external_id, m.interaction_id, m.parent_memory_id,
       m.relevance_score, m.ttl_seconds,
       (SELECT coalesce(jsonb_agg(jsonb_build_object('target_id', l.target_id, 'relation', l.relation,
                                                     'weight', l.weight)), '[]') FROM memory_links l
         WHERE l.agent_id = %(agent_id)s AND l.source_id = m.memory_id AND l.relation <> 'probably_changes') AS links
  FROM memories m
 WHERE m.agent_id = %(agent_id)s AND m.content_hash = ANY (%(hashes)s::bytea[])
   AND m.superseded_by IS NULL AND is_live(m.expires_at, m.pinned);

-- name: insert_memory
-- Inserts a memory.
INSERT INTO memories (agent_id, memory_id, memory_type, content, summary, embedding, embedding_model, timestamp,
                      interaction_id, task_id, session_id, user_id, namespace, speaker, external_id, actions,
                      outcome, action_outcomes, entities, entity_keys, facts, keywords, tags, metadata, relevance_score, pinned, ttl_seconds,
                      expires_at, valid_from, valid_to, superseded_by, event_from, event_to, parent_memory_id, provenance, content_hash, term_keys,
                      token_count, flagged, response)
SELECT %(agent_id)s, %(memory_id)s, %(memory_type)s, %(content)s, %(summary)s, %(embedding)s, %(embedding_model)s,
        %(timestamp)s, %(interaction_id)s, %(task_id)s, %(session_id)s, %(user_id)s, %(namespace)s, %(speaker)s,
        %(external_id)s, %(actions)s, %(outcome)s, %(action_outcomes)s, %(entities)s, %(entity_keys)s, %(facts)s, %(keywords)s, %(tags)s, %(metadata)s,
        %(relevance_score)s, %(pinned)s, life.seconds, now() + make_interval(secs => life.seconds),
        %(valid_from)s, %(valid_to)s, %(superseded_by)s, %(event_from)s, %(event_to)s, %(parent_memory_id)s, %(provenance)s, %(content_hash)s,
        %(term_keys)s, %(token_count)s, %(flagged)s, %(response)s
  -- TTL: the memory's own, else the agent's for the layer, else the service's; 0 means no expiry.
  FROM (SELECT nullif(coalesce(%(ttl_seconds)s::bigint,
                               (SELECT (s.layers -> %(memory_type)s::text ->> 'ttl_seconds')::bigint
                                  FROM agent_settings s WHERE s.agent_id = %(agent_id)s),
                               %(default_ttl_seconds)s::bigint), 0) AS seconds) AS life
RETURNING memory_id;

-- name: insert_links
-- Inserts links; a duplicate (same relation) gets the new weight.
INSERT INTO memory_links (agent_id, source_id, target_id, relation, weight)
SELECT %(agent_id)s, tie.source_id, tie.target_id, tie.relation, tie.weight
  FROM unnest(%(source_ids)s::uuid[], %(target_ids)s::uuid[], %(relations)s::text[], %(weights)s::real[])
       AS tie (source_id, target_id, relation, weight)
    ON CONFLICT (agent_id, source_id, target_id, relation) DO UPDATE SET weight = EXCLUDED.weight;

-- name: delete_links
-- Deletes the links between a memory and these others in both directions, locked in the order that the other end uses.
WITH held AS (
    SELECT source_id, target_id, relation FROM memory_links
     WHERE agent_id = %(agent_id)s
       AND ((source_id = %(memory_id)s AND target_id = ANY (%(others)s::uuid[]))
            OR (target_id = %(memory_id)s AND source_id = ANY (%(others)s::uuid[])))
     ORDER BY source_id, target_id, relation
       FOR UPDATE)
DELETE FROM memory_links l
 USING held
 WHERE l.agent_id = %(agent_id)s AND l.source_id = held.source_id AND l.target_id = held.target_id
   AND l.relation = held.relation;

-- name: existing_ids
-- Locks and returns existing memories; they cannot be deleted until the commit.
SELECT memory_id FROM memories
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[])
   AND is_live(expires_at, pinned)
 ORDER BY memory_id
   FOR KEY SHARE;

-- name: append_lexical_delta
-- Appends a transaction's change of the agent's document frequencies.
INSERT INTO lexical_deltas (agent_id, memory_count, term_count, term_keys, term_memories)
VALUES (%(agent_id)s, %(memory_count)s, %(term_count)s, %(term_keys)s, %(term_memories)s);

-- name: lock_memory
-- Locks a memory against changes and deletion until the commit; links to it can still be inserted.
SELECT * FROM memories
 WHERE agent_id = %(agent_id)s AND memory_id = %(memory_id)s
   AND is_live(expires_at, pinned)
   FOR NO KEY UPDATE;

-- name: update_memory
-- Updates the changeable columns of a memory and increments its version.
UPDATE memories m
   SET content = %(content)s, summary = %(summary)s, embedding = %(embedding)s,
       embedding_model = %(embedding_model)s,
       -- A vector of the next model belongs to the old text.
       next_embedding = CASE WHEN m.content = %(content)s THEN m.next_embedding END,
       next_embedding_model = CASE WHEN m.content = %(content)s THEN m.next_embedding_model END,
       entities = %(entities)s, entity_keys = %(entity_keys)s, facts = %(facts)s, keywords = %(keywords)s,
       tags = %(tags)s, metadata = %(metadata)s, relevance_score = %(relevance_score)s, pinned = %(pinned)s,
       ttl_seconds = CASE WHEN %(never_expires)s::boolean THEN NULL
                          ELSE coalesce(%(ttl_seconds)s::bigint, m.ttl_seconds) END,
       expires_at = CASE WHEN %(never_expires)s::boolean THEN NULL
                         ELSE coalesce(%(expires_at)s::timestamptz, moment.expires_at, m.expires_at) END,
       event_from = %(event_from)s, event_to = %(event_to)s,
       content_hash = %(content_hash)s, term_keys = %(term_keys)s, token_count = %(token_count)s,
       flagged = %(flagged)s,
       version = m.version + 1, updated_at = moment.updated_at
  FROM (SELECT now() AS updated_at, now() + make_interval(secs => %(ttl_seconds)s::bigint) AS expires_at) AS moment
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = %(memory_id)s
RETURNING m.version, m.ttl_seconds, m.expires_at;

-- name: count_accesses
-- Counts accesses of existing memories, locked in id order so that neither two flushes nor a flush and a deletion
-- deadlock.
WITH held AS (
    SELECT memory_id FROM memories
     WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[])
     ORDER BY memory_id
       FOR KEY SHARE)
INSERT INTO memory_usage (agent_id, memory_id, access_count, uses_in_life, last_accessed)
SELECT %(agent_id)s, access.memory_id, access.times, access.times, access.last_accessed
  FROM unnest(%(memory_ids)s::uuid[], %(counts)s::integer[], %(moments)s::timestamptz[])
       AS access (memory_id, times, last_accessed)
 WHERE access.memory_id IN (SELECT memory_id FROM held)
 ORDER BY access.memory_id
    ON CONFLICT (agent_id, memory_id) DO UPDATE
       SET access_count = memory_usage.access_count + EXCLUDED.access_count,
           uses_in_life = memory_usage.uses_in_life + EXCLUDED.uses_in_life,
           last_accessed = greatest(memory_usage.last_accessed, EXCLUDED.last_accessed);

-- name: delete_memories
-- Deletes memories with their extracted facts and their cluster, session and period summaries; returns what the lexical
-- index and caches must remove. Expired ones are left to the sweep.
WITH RECURSIVE going AS ({going}),
held AS (
    SELECT m.memory_id FROM memories m
     WHERE m.agent_id = %(agent_id)s AND m.memory_id IN (SELECT memory_id FROM going)
       AND is_live(m.expires_at, m.pinned)
     ORDER BY m.memory_id FOR UPDATE)
DELETE FROM memories m
 USING held
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = held.memory_id
RETURNING m.memory_id, m.memory_type, m.task_id, m.term_keys, m.superseded_by, m.valid_to;

-- name: delete_expired_memories
-- Deletes memories that are still expired, with their extracted facts, except facts that are pinned, reworded by a
-- caller, or have their own expiry: a later one by use, or any (or none) set by a caller. All are locked.
WITH expired AS (
    SELECT m.memory_id FROM memories m
     WHERE m.agent_id = %(agent_id)s AND m.memory_id = ANY (%(memory_ids)s::uuid[])
       AND m.expires_at <= now() AND NOT m.pinned),
going AS (
    SELECT memory_id FROM expired
     UNION
    SELECT f.memory_id FROM expired
      JOIN memories f ON f.agent_id = %(agent_id)s AND f.parent_memory_id = expired.memory_id
                     AND f.kind = 'fact' AND NOT f.pinned
                     AND (f.expires_at IS NULL OR f.expires_at <= now())
     WHERE NOT EXISTS (SELECT FROM memory_history h WHERE h.agent_id = %(agent_id)s AND h.memory_id = f.memory_id
                          AND (h.before ? 'content' OR h.before ? 'expires_at' AND NOT h.after ? 'with'
                                                       AND f.expires_at IS NULL)))
DELETE FROM memories m
 USING going
 WHERE m.agent_id = %(agent_id)s AND m.memory_id = going.memory_id
RETURNING m.memory_id, m.memory_type, m.task_id, m.term_keys;

-- name: matching_ids
-- Returns up to `limit` matching memories.
SELECT m.memory_id FROM memories m
 WHERE m.agent_id = %(agent_id)s AND memory_matches(m, %(filter)s)
 ORDER BY m.memory_id LIMIT %(limit)s;

-- name: forget_histories
-- Deletes the histories of deleted memories, which contain their text.
DELETE FROM memory_history
 WHERE agent_id = %(agent_id)s AND memory_id = ANY (%(memory_ids)s::uuid[]);

-- name: complete_task
-- Records that a task is completed: its working memory from before this time has ended.
INSERT INTO completed_tasks (agent_id, task_id, completed_at)
VALUES (%(agent_id)s, %(task_id)s, clock_timestamp())
    ON CONFLICT (agent_id, task_id) DO UPDATE SET completed_at = EXCLUDED.completed_at;

-- name: expire_working_rows
-- Expires the working rows of a completed task; returns their history entries.
WITH ending AS (
    SELECT memory_id, expires_at FROM memories
     WHERE agent_id = %(agent_id)s AND task_id = %(task_id)s AND memory_type = 'working' AND NOT pinned
       AND (expires_at IS NULL OR expires_at > now())
     ORDER BY memory_id FOR NO KEY UPDATE),
ended AS (
    UPDATE memories m SET expires_at = now(), updated_at = now(), version = m.version + 1
      FROM ending
     WHERE m.agent_id = %(agent_id)s AND m.memory_id = ending.memory_id
    RETURNING m.memory_id, m.version, ending.expires_at AS before, m.expires_at AS after)
SELECT memory_id, version, jsonb_build_object('expires_at', before) AS before,
       jsonb_build_object('expires_at', after) AS after
  FROM ended
 ORDER BY memory_id;
