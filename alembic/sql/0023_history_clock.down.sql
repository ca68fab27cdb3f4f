ALTER TABLE memory_history ALTER COLUMN changed_at SET DEFAULT now();
