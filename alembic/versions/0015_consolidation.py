"""Adds consolidation: an agent's settings, and its progress.

What: `agent_settings.consolidation`, `agent_settings.consolidated_to`. Why: it is off unless an agent enables
it, and resumes where it ended. Safe while an old version runs: it does not change the columns.
"""

from agentcore.migration import run_sql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0015_consolidation.sql")


def downgrade() -> None:
    run_sql("0015_consolidation.down.sql")
