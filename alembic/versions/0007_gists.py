"""Adds a digest of a memory's meaning, independent of its wording.

What: `memories.gist_hash`, equal for near-duplicates. Why: a search returns only the newest of them, and
finds them without reading texts. Existing memories keep nulls until their content is updated: until then only
equal texts are deduplicated. Safe while an old version runs: it names its columns and leaves this null; no
row is rewritten.
"""

from agentcore.migration import run_sql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0007_gists.sql")


def downgrade() -> None:
    run_sql("0007_gists.down.sql")
