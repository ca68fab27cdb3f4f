"""Each change in the history says which version it made.

What: `memory_history.version`. Why: a memory can be brought back to how it stood at a version. Changes
made before have none, and nothing is brought back beyond them. Safe while an old version runs: it leaves
the column empty.
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
