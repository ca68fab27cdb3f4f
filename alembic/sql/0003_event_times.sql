-- The time range that a memory mentions ("yesterday", "in May 2023"); the end is exclusive.
ALTER TABLE memories ADD COLUMN event_from timestamptz, ADD COLUMN event_to timestamptz;
