"""What language models are used for: an account by agent and day, and the memories that wait for them.

What: the tables `llm_usage` and `llm_queue`, and the agents' wishes in `agent_settings.models`. Why: a budget
holds across processes and restarts, and each memory is given to a model once. Safe while an old version runs:
that one neither reads nor writes them, and what it deletes takes its rows along.
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
