"""Adds vectors of the later passages of long memories, and queues the long memories that exist.

Safe while an old version runs. What that stores meanwhile is searched by its first passage until its text
is updated.
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
