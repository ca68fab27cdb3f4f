"""The tables and functions of procrastinate, the library that keeps the background jobs.

What: its schema as of version 3.10.0, a copy of its own file. Why: decision 21; read from the installed
package it would differ between databases of one revision. When the package's schema changes a test says so,
and its changes come by a migration of their own. Safe while an old version runs: that one knows none of it.
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
