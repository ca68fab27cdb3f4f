-- The time a memory speaks of, where its words name one: "yesterday", "in May 2023". From, and up to without it.
ALTER TABLE memories ADD COLUMN event_from timestamptz, ADD COLUMN event_to timestamptz;
