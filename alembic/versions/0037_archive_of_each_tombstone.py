"""Each tombstone records its archive; only development versions wrote none.

Fails if such a tombstone is left: `agentcore archive verify --adopt` of an earlier version records the archive.
"""

from alembic import op

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE archived_memories ALTER COLUMN archive_id SET NOT NULL")
    op.execute("DROP INDEX IF EXISTS archived_memories_of_unknown_archive")
