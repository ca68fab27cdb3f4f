DROP TABLE embedding_models;
ALTER TABLE memories DROP COLUMN next_embedding, DROP COLUMN next_embedding_model;
