"""What a memory says, whichever its words.

What: `memories.gist_hash`, equal for near-duplicates. Why: of these a search gives the newest alone and knows
them without reading texts. Memories stored before keep nulls until their content is updated: of them equal
texts alone are known. Safe while an old version runs: it names its columns and leaves this null; no row is
rewritten.
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
