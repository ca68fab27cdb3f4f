-- A vector of the model that comes next, beside that of the one in force: only while memories are embedded anew.
ALTER TABLE memories ADD COLUMN next_embedding halfvec;
ALTER TABLE memories ADD COLUMN next_embedding_model text;
ALTER TABLE memories ALTER COLUMN next_embedding SET STORAGE MAIN;

-- Which model's vectors are searched, once that is no longer simply the one of the settings. `filling`: its vectors
-- are being made beside those in force. `moving`: it is in force, and they are being moved into their place.
CREATE TABLE embedding_models (
    model      text        NOT NULL PRIMARY KEY,
    provider   text        NOT NULL,
    model_name text,
    dimensions integer     NOT NULL CHECK (dimensions BETWEEN 1 AND 16000),
    stage      text        NOT NULL CHECK (stage IN ('filling', 'moving', 'settled')),
    changed_at timestamptz NOT NULL DEFAULT now()
);
CREATE UNIQUE INDEX embedding_models_in_force ON embedding_models ((true)) WHERE stage <> 'filling';
CREATE UNIQUE INDEX embedding_models_to_come ON embedding_models ((true)) WHERE stage = 'filling';
