-- Takes the first schema away, with all its data. The role and the extension stay: others may use them.
DROP FUNCTION lexical_arm(text, bigint[], real[], jsonb, integer);
DROP TABLE memory_usage, memory_links, memory_history, idempotency_keys, archived_memories, completed_tasks,
           lexical_terms, lexical_totals, lexical_deltas;
DROP FUNCTION memory_matches(memories, jsonb);
DROP TABLE memories;
DROP FUNCTION json_texts(jsonb);
