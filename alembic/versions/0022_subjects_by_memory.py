"""What one agent states is found by key, whatever the planner knows of the agent.

What: the index of `memory_subjects` by memory has the memory in front instead of the agent. Why: of an agent
that stands in no statistics yet, any index with the agent in front looks as good as the primary key, and the
smaller of the two was taken: each key asked for read all that the agent stated. Safe while an old version
runs; until the index is made nobody stores or changes a memory: below a second for a million subjects.
"""

from agentcore.migration import run_sql

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0022_subjects_by_memory.sql")


def downgrade() -> None:
    run_sql("0022_subjects_by_memory.down.sql")
