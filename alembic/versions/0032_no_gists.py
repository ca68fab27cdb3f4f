"""Drops the digests by which near-duplicates were found; copies are memories with the same words.

Stop processes of the old version first: they write digests.
"""

from agentcore.migration import run_sql

revision = "0032"
down_revision = "0031"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0032_no_gists.sql")


def downgrade() -> None:
    run_sql("0032_no_gists.down.sql")
