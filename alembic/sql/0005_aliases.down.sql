DROP TABLE memory_aliases;
