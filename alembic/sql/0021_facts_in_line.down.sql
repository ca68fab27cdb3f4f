DROP INDEX llm_queue_in_line;
