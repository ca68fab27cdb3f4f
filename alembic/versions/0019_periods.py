"""Adds pending work for stale summaries and for summaries of periods.

What: two more kinds of work in `llm_queue`, and a flag for memories enqueued again. Why: a summary whose
source changed is rewritten, and memories whose summary was deleted are due at once. Safe while an old version
runs: it writes neither, and leaves unknown kinds to the new version.
"""

from agentcore.migration import run_sql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0019_periods.sql")


def downgrade() -> None:
    run_sql("0019_periods.down.sql")
