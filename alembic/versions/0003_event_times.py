"""The time that what a memory tells of took place.

What: `memories.event_from` and `event_to`, null where the words name no time. Why: a question about last week
finds what was said of it later. Memories stored before keep nulls until their content is updated. Safe while
an old version runs: it names its columns and leaves these null; no row is rewritten.
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
