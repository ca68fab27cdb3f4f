"""Adds an index over the event times of memories.

What: `memories_by_event`. Why: a query about last week matches memories stored later about it. Separate from
the columns, so that reads are not blocked: searches continue during the build, stores are blocked until it
ends. Safe while an old version runs.
"""

from agentcore.migration import run_sql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0006_event_index.sql")


def downgrade() -> None:
    run_sql("0006_event_index.down.sql")
