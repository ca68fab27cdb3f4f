-- Few memories are of another one.
CREATE INDEX memories_by_parent ON memories (agent_id, parent_memory_id) WHERE parent_memory_id IS NOT NULL;
UPDATE memories SET provenance = provenance || '{"form": "fact"}'
 WHERE parent_memory_id IS NOT NULL AND memory_type = 'semantic' AND metadata ? 'extracted';

-- Since when a model is asked about a memory in vain, and how often it failed of this one by itself.
ALTER TABLE llm_queue ADD COLUMN failing_since timestamptz, ADD COLUMN tries smallint NOT NULL DEFAULT 0;
