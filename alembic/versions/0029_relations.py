"""Adds a fifth kind of work to `llm_queue`: memories to compare with earlier ones.

Safe while an old version runs: it neither writes nor reads the new kind.
"""

from agentcore.migration import run_sql

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0029_relations.sql")


def downgrade() -> None:
    run_sql("0029_relations.down.sql")
