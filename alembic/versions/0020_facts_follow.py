"""Adds an index of extracted facts by memory, and the retry state of memories whose request failed.

What: an index of memories by parent memory, the form `fact` in the provenance of extracted facts, and in
`llm_queue` the time of the first failure and the number of failures of a memory alone. Why: deletion,
supersession and correction look up the facts of a memory. Safe while an old version runs, except for locks:
the index and the rows of facts are written in one transaction, which blocks all stores, changes and
deletions. For a million memories that takes some seconds: migrate at low load. Facts that an old version
stores meanwhile have another form, and are kept when their memory is deleted.
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
