"""Adds vectors of the later passages of long memories, and queues the long memories that exist.

Safe while an old version runs; what that stores meanwhile is searched by its first passage until it is updated.
"""

from agentcore.migration import run_sql

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0030_passages.sql")


def downgrade() -> None:
    run_sql("0030_passages.down.sql")
