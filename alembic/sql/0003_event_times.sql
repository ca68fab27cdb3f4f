-- The time a memory speaks of, where its words name one: "yesterday", "in May 2023". From, and up to without it.
ALTER TABLE memories ADD COLUMN event_from timestamptz, ADD COLUMN event_to timestamptz;

-- Comparing times is leakproof, so row security leaves this index to the service. The end comes first: most questions
-- are about what is not long ago, and fewer spans end after such a time than begin before it.
CREATE INDEX memories_by_event ON memories (agent_id, event_to, event_from) WHERE event_to IS NOT NULL;
