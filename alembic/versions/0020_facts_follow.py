"""Facts that a model read follow their memory; a model that fails is waited for from its first failure on.

What: an index of memories by the one they are of, the form `fact` in the provenance of what a model read, and
in `llm_queue` since when a memory is asked about in vain, and how often by itself. Why: a deletion, a
supersession and a correction look for what was read from a memory. Safe while an old version runs: facts that
it stores meanwhile have another form, and stay when their memory goes.
"""

from agentcore.migration import run_sql

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0020_facts_follow.sql")


def downgrade() -> None:
    run_sql("0020_facts_follow.down.sql")
