-- A vector of the next model, in addition to that of the current one; only during re-embedding.
ALTER TABLE memories ADD COLUMN next_embedding halfvec;
ALTER TABLE memories ADD COLUMN next_embedding_model text;
ALTER TABLE memories ALTER COLUMN next_embedding SET STORAGE MAIN;

-- The model whose vectors are searched, once it differs from the settings. Stage `filling`: its vectors are being
-- computed while another model is current. Stage `moving`: it is current, and its vectors are being moved to
-- `embedding`.
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
