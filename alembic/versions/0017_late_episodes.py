"""Adds late episodes: promoted, restored or current again, with ids that consolidation has passed.

What: the table `late_episodes`. Why: consolidation proceeds in the order of ids and would miss them. Safe
while an old version runs: it neither writes nor reads it.
"""

from agentcore.migration import run_sql

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0017_late_episodes.sql")


def downgrade() -> None:
    run_sql("0017_late_episodes.down.sql")
