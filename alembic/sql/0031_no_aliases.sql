DROP FUNCTION other_forms;
DROP TABLE memory_aliases;
