"""Each entry of the history has the time it was written at.

What: the default of `memory_history.changed_at` is the clock, no longer the start of the transaction. Why:
what a transaction wrote after it had waited for another stood before that one's change, though behind it in
order. Safe while an old version runs.
"""

from agentcore.migration import run_sql

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0023_history_clock.sql")


def downgrade() -> None:
    run_sql("0023_history_clock.down.sql")
