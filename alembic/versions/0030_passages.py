"""Adds vectors of the later passages of long memories, and enqueues the existing long memories.

Stop processes of the old version first: memories that they store get no passages, and memories that they
update keep the passages of the old text.
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
