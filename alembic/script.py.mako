"""${message}

What: ... Why: ... Safe while the old version still runs: ...
"""

from agentcore.migration import run_sql

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("${up_revision}.sql")


def downgrade() -> None:
    run_sql("${up_revision}.down.sql")
