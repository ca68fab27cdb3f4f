"""Adds the tables and functions of procrastinate, the library of background jobs.

What: its schema as of version 3.10.0, a copy of its own file. Why: decision 21; read from the installed
package it would differ between databases of one revision. A test fails if the package's schema changes; its
changes need a migration. Safe while an old version runs: it does not use them.
"""

from agentcore.migration import run_sql

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0011_procrastinate.sql")


def downgrade() -> None:
    run_sql("0011_procrastinate.down.sql")
