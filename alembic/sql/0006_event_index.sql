-- Comparing times is leakproof, so row security leaves this index to the service. The end comes first: most questions
-- are about what is not long ago, and fewer spans end after such a time than begin before it.
CREATE INDEX IF NOT EXISTS memories_by_event ON memories (agent_id, event_to, event_from) WHERE event_to IS NOT NULL;
