"""Filters by several users, and row security for tokens that are bound to users.

What: `user_id` of a filter may be a list; the role `agentcore_bound` with policies that hide other users'
rows; `lexical_hits` has parameters k1 and b. Why: a user's memories and the shared ones in one query; no
statement can omit the binding. Not safe while an old version runs: it calls `lexical_hits` as it was.
"""

from agentcore.migration import run_sql

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0025_users.sql")


def downgrade() -> None:
    run_sql("0025_users.down.sql")
