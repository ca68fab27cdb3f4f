-- Partial, since few memories have a parent.
CREATE INDEX memories_by_parent ON memories (agent_id, parent_memory_id) WHERE parent_memory_id IS NOT NULL;
UPDATE memories SET provenance = provenance || '{"form": "fact"}'
 WHERE parent_memory_id IS NOT NULL AND memory_type = 'semantic' AND metadata ? 'extracted';

-- Time of the first failed model request, and number of failed requests with this memory alone.
ALTER TABLE llm_queue ADD COLUMN failing_since timestamptz, ADD COLUMN tries smallint NOT NULL DEFAULT 0;
