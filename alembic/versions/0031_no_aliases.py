"""Drops the table `memory_aliases` and the function `other_forms`: aliases no longer exist.

Stop processes of the old version first: without the table their stores and searches fail. A downgrade creates
the table again without rows.
"""

from agentcore.migration import run_sql

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0031_no_aliases.sql")


def downgrade() -> None:
    run_sql("0031_no_aliases.down.sql")
