-- Drops the first schema with all data. Role and extension are kept, since other databases and schemas may use them.
DROP FUNCTION lexical_arm(text, bigint[], real[], jsonb, integer);
DROP TABLE memory_usage, memory_links, memory_history, idempotency_keys, archived_memories, completed_tasks,
           lexical_terms, lexical_totals, lexical_deltas;
DROP FUNCTION memory_matches(memories, jsonb);
DROP TABLE memories;
DROP FUNCTION json_texts(jsonb);
