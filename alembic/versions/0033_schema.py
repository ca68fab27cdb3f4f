"""The schema as a whole; earlier revisions were never released.

A migration after this one changes `schema.sql`, too, and changes nothing where that has been done.
"""

from agentcore.migration import schema
from agentcore.migration_runner import run_schema

revision = "0033"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_schema(schema())
