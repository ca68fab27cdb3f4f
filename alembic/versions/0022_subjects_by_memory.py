"""Replaces an index, so that lookups of subjects use the primary key without statistics of the agent.

What: the index of `memory_subjects` by memory starts with the memory instead of the agent. Why: for an agent
without statistics, the planner rates any index that starts with the agent like the primary key, and chose the
smaller one: each lookup read all subjects of the agent. Safe while an old version runs; the build blocks
stores and changes of memories: below a second for a million subjects.
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
