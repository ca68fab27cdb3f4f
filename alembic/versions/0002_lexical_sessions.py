"""Which sessions hold a query's rarest terms.

What: the function `lexical_sessions`, beside `lexical_arm`. Why: what a whole session says counts for each of
its memories. Safe while an old version runs: nothing that it uses changes.
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
