"""Bound tokens keep their role when they change summaries of several users: of_bound_users accepts the setting `*`.

A change of the role made Citus open a second connection, which waited for the first. Safe while the old version runs.

SHA-256 of functions.sql: db8978332280dbfbd1fb9a6d367e046c9fc4ec2dc59a0b25bd8035e60676bbd3
"""

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing but functions.sql, which runs after the newest revision."""
