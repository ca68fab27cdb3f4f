DROP INDEX memories_by_event;
ALTER TABLE memories DROP COLUMN event_from, DROP COLUMN event_to;
