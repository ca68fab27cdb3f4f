-- name: append_history
-- Appends changes in this order, with the versions they created. `changed_at` is the column's default, the clock time,
-- which is after all lock waits of the transaction.
INSERT INTO memory_history (agent_id, memory_id, operation, version, token_id, trace_id, before, after)
SELECT %(agent_id)s, change.memory_id, change.operation, change.version, change.token_id, change.trace_id,
       change.before, change.after
  FROM ROWS FROM (unnest(%(memory_ids)s::uuid[], %(operations)s::text[], %(versions)s::integer[], %(token_ids)s::text[],
                         %(trace_ids)s::text[]),
                  jsonb_array_elements(%(befores)s), jsonb_array_elements(%(afters)s)) WITH ORDINALITY
       AS change (memory_id, operation, version, token_id, trace_id, before, after, place)
 ORDER BY change.place
RETURNING change_id;

-- name: list_history
-- Returns a page of a memory's changes, newest first, numbered from its first, up to max_bytes but at least one.
-- `found`: how many there are, up to the limit. change_id is not returned: it counts the changes of all agents.
SELECT sized.* FROM (
       SELECT page.*, count(*) OVER () AS found, row_number() OVER newest AS place,
              sum(coalesce(octet_length(page.before::text), 0) + coalesce(octet_length(page.after::text), 0) + 1000)
                  OVER (newest ROWS UNBOUNDED PRECEDING) AS running
         FROM (SELECT numbered.* FROM (
                      SELECT row_number() OVER (ORDER BY h.change_id) AS number, h.operation, h.version, h.changed_at,
                             h.token_id, h.trace_id, h.before, h.after
                        FROM memory_history h
                       WHERE h.agent_id = %(agent_id)s AND h.memory_id = %(memory_id)s) AS numbered
                WHERE %(before_number)s::bigint IS NULL OR numbered.number < %(before_number)s::bigint
                ORDER BY numbered.number DESC LIMIT %(limit)s) AS page
       WINDOW newest AS (ORDER BY page.number DESC)) AS sized
 WHERE sized.running <= %(max_bytes)s OR sized.place = 1
 ORDER BY sized.number DESC;

-- name: changes_since
-- Returns the changes after a version, newest first.
SELECT h.version, h.before, h.after
  FROM memory_history h
 WHERE h.agent_id = %(agent_id)s AND h.memory_id = %(memory_id)s
   AND h.version > %(version)s
 ORDER BY h.change_id DESC;

-- name: ties_of
-- Returns the links between a memory and these others, in both directions.
SELECT l.source_id, l.target_id, l.relation, l.weight
  FROM memory_links l
 WHERE l.agent_id = %(agent_id)s
   AND ((l.source_id = %(memory_id)s AND l.target_id = ANY (%(others)s::uuid[]))
        OR (l.target_id = %(memory_id)s AND l.source_id = ANY (%(others)s::uuid[])))
 ORDER BY l.source_id, l.target_id, l.relation;

-- name: delete_tie
-- Deletes one link.
DELETE FROM memory_links
 WHERE agent_id = %(agent_id)s AND source_id = %(source_id)s AND target_id = %(target_id)s
   AND relation = %(relation)s;
