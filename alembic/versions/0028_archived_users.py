"""Tombstones record the users of the memories that an archived memory was derived from.

What: a nullable column `users`, which the policy of bound tokens reads. Why: a token bound to `null` listed
archived summaries of all users. Safe while an old version runs: memories that it archives without a user are
hidden from bound tokens.
"""

from agentcore.migration import run_sql

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0028_archived_users.sql")


def downgrade() -> None:
    run_sql("0028_archived_users.down.sql")
