"""The initial schema: memories and all tables that belong to them.

What: `memories` in 32 hash partitions, usage, links, history, idempotency keys, archive tombstones, document
frequencies, the filter and lexical functions, row security. Why: DESIGN section 5. Safe while an old version
runs: there is none. The index keeper builds the vector indexes, on real rows, never a migration.
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
