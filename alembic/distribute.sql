-- Distributes the tables of a new database over the nodes of a Citus cluster: `agentcore migrate --distribute`.
--
-- All rows of an agent are in the shards of one node, so a statement about one agent runs on one node.
-- Not distributed, on the coordinator only: the job queue, receipt keys, the instances of Redis, console sessions.

SELECT create_distributed_table('memories', 'agent_id', colocate_with => 'none');

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['memory_passages', 'memory_usage', 'memory_links', 'memory_history', 'memory_subjects',
                                'idempotency_keys', 'completed_tasks', 'agent_settings', 'llm_queue', 'late_episodes',
                                'llm_usage', 'lexical_terms', 'lexical_totals', 'lexical_deltas', 'archived_memories',
                                'archived_copies', 'vector_changes'] LOOP
        PERFORM create_distributed_table(name, 'agent_id', colocate_with => 'memories');
    END LOOP;
END
$$;
SELECT create_reference_table('embedding_models');

-- Always empty: enqueue_job writes to it for its effect on the commit.
CREATE TABLE two_phase_commits (row_id integer);
SELECT citus_add_local_table_to_metadata('two_phase_commits');
