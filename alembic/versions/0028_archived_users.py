"""Tombstones record the users whose memories an archived memory was made of.

What: a nullable column `users`, which the policy of bound tokens reads. Why: a token bound to `null` listed
archived summaries of all users. Safe while an old version runs: what it archives without a user is hidden
from bound tokens.
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
