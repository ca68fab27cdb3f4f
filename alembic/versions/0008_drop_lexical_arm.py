"""Drops the functions that `lexical_hits` superseded.

What: `lexical_arm` and `lexical_sessions` are dropped. Why: unused since 0004. Safe while a version since
0004 runs; an older one finds no words until it is stopped.
"""

from agentcore.migration import run_sql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0008_drop_lexical_arm.sql")


def downgrade() -> None:
    run_sql("0008_drop_lexical_arm.down.sql")
