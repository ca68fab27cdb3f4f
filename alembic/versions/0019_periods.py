"""Summaries that follow their sources, and those of periods: what waits for them.

What: two more kinds of work in `llm_queue`, and which of what waits has waited before. Why: a summary whose
source changed is made anew, and what a deletion left without its summary is due at once. Safe while an old
version runs: it writes neither, and leaves what it does not know to the new one.
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
