"""Sets the time of a history entry to the time of its write.

What: the default of `memory_history.changed_at` is the clock, no longer the start of the transaction. Why: an
entry of a transaction that was blocked by another had an earlier time than that one's, though a later number.
Safe while an old version runs.
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
