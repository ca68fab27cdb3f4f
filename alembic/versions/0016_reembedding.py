"""A second vector beside each memory's, and which model is in force.

What: the columns `next_embedding` and `next_embedding_model`, the table `embedding_models`. Why: all memories
can be embedded anew by another model while those who search go on with the old vectors. Safe while an old
version runs: it writes and reads neither; it must be gone before `agentcore reembed` is used.
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
