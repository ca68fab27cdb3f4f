"""Adds a second vector per memory, and the model in force.

What: the columns `next_embedding` and `next_embedding_model`, the table `embedding_models`. Why: all memories
can be embedded again with another model while searches use the old vectors. Safe while an old version runs:
it neither reads nor writes them; stop it before running `agentcore reembed`.
"""

from agentcore.migration import run_sql

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0016_reembedding.sql")


def downgrade() -> None:
    run_sql("0016_reembedding.down.sql")
