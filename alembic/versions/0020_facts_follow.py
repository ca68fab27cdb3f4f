"""Facts that a model read follow their memory; a model that fails is waited for from its first failure on.

What: an index of memories by the one they are of, the form `fact` in the provenance of what a model read, and
in `llm_queue` since when a memory is asked about in vain, and how often by itself. Why: a deletion, a
supersession and a correction look for what was read from a memory. Safe while an old version runs, but for
the time it takes: the index of all memories and the rows of facts are written in one transaction; until it
ends nobody stores, changes or deletes a memory. Of a million memories that is some seconds: migrate when few
write. Facts that an old version stores meanwhile have another form, and stay when their memory goes.
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
