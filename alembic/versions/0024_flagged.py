"""Flags memories that match a pattern of injected instructions, and stores responses with their reasoning.

What: the columns `memories.flagged` and `memories.response`, an index of flagged memories, and the filter
`unflagged`. Why: `memory.get_context` omits flagged memories. Safe while an old version runs: it stores
memories that are not flagged.
"""

from agentcore.migration import run_sql

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0024_flagged.sql")


def downgrade() -> None:
    run_sql("0024_flagged.down.sql")
