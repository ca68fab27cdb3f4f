ALTER TABLE memories DROP COLUMN event_from, DROP COLUMN event_to;
