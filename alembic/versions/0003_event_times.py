"""Adds the time of the event that a memory mentions.

What: `memories.event_from` and `event_to`, null if the text names no time. Why: a query about last week
matches memories stored later about it. Existing memories keep nulls until their content is updated. Safe
while an old version runs: it names its columns and leaves these null; no row is rewritten.
"""

from agentcore.migration import run_sql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0003_event_times.sql")


def downgrade() -> None:
    run_sql("0003_event_times.down.sql")
