"""An index over the times that memories speak of.

What: `memories_by_event`. Why: a question about last week finds what was said of it later. Apart from the
columns, so that reading does not wait: searches go on while the index is made, stores wait until the table is
read. Safe while an old version runs.
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
