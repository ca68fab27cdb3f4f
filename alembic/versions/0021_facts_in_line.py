"""Adds an index of the fact extraction queue in processing order.

What: an index of `llm_queue` by agent, tries and time. Why: a batch of eight read and sorted the whole queue,
twice; with 300,000 memories it exceeded the statement timeout. Safe while an old version runs: it can use the
index, too. The build blocks writes to the queue, by all agents: below a second for a million rows.
"""

from agentcore.migration import run_sql

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0021_facts_in_line.sql")


def downgrade() -> None:
    run_sql("0021_facts_in_line.down.sql")
