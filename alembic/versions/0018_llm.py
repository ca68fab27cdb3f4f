"""Adds the usage of language models per agent and day, and the queue of memories for them.

What: the tables `llm_usage` and `llm_queue`, and the agents' settings in `agent_settings.models`. Why: a
budget applies across processes and restarts, and a model processes each memory once. Safe while an old
version runs: it neither reads nor writes them, and its deletions cascade to the rows.
"""

from agentcore.migration import run_sql

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0018_llm.sql")


def downgrade() -> None:
    run_sql("0018_llm.down.sql")
