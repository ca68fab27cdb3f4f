"""Adds the version that each change in the history created.

What: `memory_history.version`. Why: a memory can be reverted to its state at a version. Earlier changes have
no version, and no memory can be reverted beyond them. Safe while an old version runs: it leaves the column
null.
"""

from agentcore.migration import run_sql

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0009_history_versions.sql")


def downgrade() -> None:
    run_sql("0009_history_versions.down.sql")
