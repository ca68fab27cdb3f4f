"""Adds aliases: two names for one thing, from the agent's memories or its callers.

What: the table `memory_aliases`. Why: a query with one name matches memories with the other. Safe while an
old version runs: it neither reads nor writes the table, and its deletions cascade to the rows.
"""

from agentcore.migration import run_sql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0005_aliases.sql")


def downgrade() -> None:
    run_sql("0005_aliases.down.sql")
