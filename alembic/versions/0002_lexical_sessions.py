"""Adds a function that returns the sessions with a query's rarest terms.

What: the function `lexical_sessions`, next to `lexical_arm`. Why: a session's match raises the score of each
of its memories. Safe while an old version runs: the functions that it uses do not change.
"""

from agentcore.migration import run_sql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0002_lexical_sessions.sql")


def downgrade() -> None:
    run_sql("0002_lexical_sessions.down.sql")
