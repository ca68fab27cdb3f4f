"""Adds a function that returns memories and sessions with a query's rarest terms in one index scan.

What: the function `lexical_hits`. Why: `lexical_arm` and `lexical_sessions` each read the same postings, and
the first favored long memories. Safe while an old version runs: both stay; a later migration drops them.
"""

from agentcore.migration import run_sql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0004_lexical_hits.sql")


def downgrade() -> None:
    run_sql("0004_lexical_hits.down.sql")
