"""The schema as a whole; earlier revisions were never released.

Later migrations also change `schema.sql`, so they must do nothing in a database made of it (`IF NOT EXISTS`). None
executes functions.sql: it runs once, in the transaction of the newest revision.
"""

from agentcore.migration import schema
from agentcore.migration_runner import run_schema

revision = "0033"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_schema(schema())
