"""A queue of changed vectors, for vector stores beside PostgreSQL."""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


# As in schema.sql, so that the function is the same.
SCHEMA = """\
CREATE TABLE IF NOT EXISTS vector_changes (
    agent_id  text    NOT NULL,
    change_id bigint  NOT NULL GENERATED ALWAYS AS IDENTITY,
    memory_id uuid    NOT NULL,
    filling   boolean NOT NULL DEFAULT false,  -- of all memories, for a store that is new or rebuilt
    PRIMARY KEY (agent_id, change_id)
);
CREATE INDEX IF NOT EXISTS vector_changes_by_age ON vector_changes (filling, change_id);

CREATE OR REPLACE FUNCTION record_vector_change() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    AS $$
BEGIN
    IF TG_OP = 'INSERT' AND NEW.embedding IS NULL AND NEW.next_embedding IS NULL THEN
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND (OLD.embedding, OLD.embedding_model, OLD.next_embedding, OLD.next_embedding_model,
                             OLD.user_id, OLD.session_id, OLD.memory_type, OLD.timestamp) IS NOT DISTINCT FROM
                            (NEW.embedding, NEW.embedding_model, NEW.next_embedding, NEW.next_embedding_model,
                             NEW.user_id, NEW.session_id, NEW.memory_type, NEW.timestamp) THEN
        RETURN NULL;
    END IF;
    INSERT INTO vector_changes (agent_id, memory_id)
    VALUES (coalesce(NEW.agent_id, OLD.agent_id), coalesce(NEW.memory_id, OLD.memory_id));
    RETURN NULL;
END
$$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION record_vector_change SET search_path = %I, pg_temp', current_schema());
    REVOKE ALL ON FUNCTION record_vector_change FROM PUBLIC;
    ALTER TABLE vector_changes ENABLE ROW LEVEL SECURITY;
    IF NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = 'vector_changes'::regclass) THEN
        CREATE POLICY own_agent ON vector_changes TO agentcore_service, agentcore_bound
            USING (agent_id = current_setting('agentcore.agent_id', true))
            WITH CHECK (agent_id = current_setting('agentcore.agent_id', true));
    END IF;
    GRANT SELECT, INSERT, UPDATE, DELETE ON vector_changes TO agentcore_service, agentcore_bound;
END
$$;
"""


def upgrade() -> None:
    op.execute(SCHEMA)


def downgrade() -> None:
    op.execute(
        """
        DROP TRIGGER IF EXISTS vector_changed ON memories;
        DROP FUNCTION record_vector_change;
        DROP TABLE vector_changes;
        """
    )
