"""An index for searches of one user's memories.

Without it such a search read all memories of the agent.
"""

from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "CREATE INDEX IF NOT EXISTS memories_by_user ON memories (agent_id, user_id, timestamp DESC) "
        "WHERE user_id IS NOT NULL"
    )
