DROP INDEX IF EXISTS memories_by_event;
