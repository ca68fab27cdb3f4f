"""What waits to be read for facts is found in the order in which it is read.

What: an index of `llm_queue` by agent, tries and time. Why: a batch of eight was found by reading and sorting
all that waits, twice; of 300,000 memories that took longer than a statement may. Safe while an old version
runs: it may use the index, too. Building it holds up what is written to the queue, by all agents, for as long
as it takes: below a second for a million rows that wait.
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
