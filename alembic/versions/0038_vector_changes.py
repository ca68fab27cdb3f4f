"""The outbox of external vector stores; its function and policies come with functions.sql."""

from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE IF NOT EXISTS vector_changes (
            agent_id  text    NOT NULL,
            change_id bigint  NOT NULL GENERATED ALWAYS AS IDENTITY,
            memory_id uuid    NOT NULL,
            filling   boolean NOT NULL DEFAULT false,
            PRIMARY KEY (agent_id, change_id)
        );
        CREATE INDEX IF NOT EXISTS vector_changes_by_age ON vector_changes (filling, change_id);
        """
    )
