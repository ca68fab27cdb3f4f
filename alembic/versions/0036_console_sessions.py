"""Sessions of the console.

A table, since several processes and machines answer the requests of one browser.
"""

from alembic import op

revision = "0036"
down_revision = "0035"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE IF NOT EXISTS console_sessions (
            digest     bytea       PRIMARY KEY,
            is_link    boolean     NOT NULL,
            sealed     bytea       NOT NULL,
            expires_at timestamptz NOT NULL
        )
        """
    )
    op.execute("REVOKE ALL ON console_sessions FROM PUBLIC")
