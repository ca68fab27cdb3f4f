"""The first schema: memories and everything that belongs to them.

What: `memories` in 32 hash partitions, usage, links, history, idempotency keys, archive tombstones, document
frequencies, the filter and lexical functions, row security. Why: DESIGN section 5. Safe while an old version
runs: there is none. The vector index is the index keeper's: made on real rows, never here.
"""

from agentcore.migration import run_sql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0001_memories.sql")


def downgrade() -> None:
    run_sql("0001_memories.down.sql")
