"""Adds the subjects about which each current memory states something.

What: the table `memory_subjects`, digests only. Why: a memory finds the one that it supersedes by key,
without a search. Existing memories have none, and are not superseded until they are changed. Safe while an
old version runs: it neither reads nor writes the table, and its deletions cascade to the rows.
"""

from agentcore.migration import run_sql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0014_subjects.sql")


def downgrade() -> None:
    run_sql("0014_subjects.down.sql")
