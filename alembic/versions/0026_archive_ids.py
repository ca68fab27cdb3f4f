"""Tombstones record which archive contains the copy; erasure receipts get their own key.

What: `archived_memories.archive_id` with an index, and the table `receipt_keys`, which only the owner reads.
Why: a server could attest the erasure of copies in another server's archive, and a change of JWT_SECRET_KEY
invalidated every receipt. Safe while an old version runs: its tombstones have no archive id.
"""

from agentcore.migration import run_sql

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0026_archive_ids.sql")


def downgrade() -> None:
    run_sql("0026_archive_ids.down.sql")
