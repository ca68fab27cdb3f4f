"""Bound tokens keep their role when they change summaries of several users: of_bound_users accepts the setting `*`.

A change of the role made Citus open a second connection, which deadlocked with the first. Safe while old versions run.

SHA-256 of functions.sql: 0f20624dd93a30efa5c0f39ccef16236d692b8fcc3e32c2209615d4d3b75347f
"""

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing but functions.sql, which runs after the newest revision."""
