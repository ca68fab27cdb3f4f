"""Bound tokens keep their role when they change summaries of several users: of_bound_users accepts the setting `*`.

A change of the role made Citus open a second connection, which deadlocked with the first. Safe while old versions run.

SHA-256 of functions.sql: 69909110b5900828111f7b3e17eb897ff0e813d92adaac9fd7efce74d8697f2f
"""

revision = "0040"
down_revision = "0039"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Nothing but functions.sql, which runs after the newest revision."""
