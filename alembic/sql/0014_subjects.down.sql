DROP TABLE memory_subjects;
