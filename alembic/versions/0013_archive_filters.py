"""Adds the filterable columns of an archived memory to its tombstone.

What: columns and an index of `archived_memories`, the function `archived_matches`. Why: archived memories are
listed and restored by filter without reading their copies. Safe while an old version runs: it leaves the
columns null; memories that it archives are found by id, layer and time of archiving.
"""

from agentcore.migration import run_sql

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0013_archive_filters.sql")


def downgrade() -> None:
    run_sql("0013_archive_filters.down.sql")
