-- Comparison of timestamps is leakproof, so row security allows scans of this index. The end comes first: most queries
-- are about recent times, and fewer ranges end after such a time than begin before it.
CREATE INDEX IF NOT EXISTS memories_by_event ON memories (agent_id, event_to, event_from) WHERE event_to IS NOT NULL;
