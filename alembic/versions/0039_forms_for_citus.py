"""Filters that accept any row type, and one policy for each role: the forms that Citus needs.

A function of a table's row type could not exist on the workers of a cluster, and restrictive policies became permissive
there. functions.sql creates the new ones in the same transaction. Safe while the old version runs.

SHA-256 of functions.sql: 6c61f70f7d8fc9b370d7404ea34a3f56b6e1dc6c6c58ccb15e3bdd9127e217b9
"""

from alembic import op

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("DROP FUNCTION IF EXISTS memory_matches(memories, jsonb)")
    op.execute("DROP FUNCTION IF EXISTS archived_matches(archived_memories, jsonb)")
