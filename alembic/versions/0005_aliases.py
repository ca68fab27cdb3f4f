"""What the agent's memories, and its callers, call by two names.

What: the table `memory_aliases`. Why: a question asked in one form finds what was said in the other. Safe
while an old version runs: that one neither reads nor writes it, and what it deletes takes its rows along.
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
