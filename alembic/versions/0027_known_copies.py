"""Records every copy in an archive, and every Redis that may contain working memory.

What: the tables `archived_copies` and `redis_instances`. Why: an erasure attested copies that a restore or
a killed prune had left in another server's archive, and working memory in another server's Redis. Not safe
while an old version runs: it records neither.
"""

from agentcore.migration import run_sql

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0027_known_copies.sql")


def downgrade() -> None:
    run_sql("0027_known_copies.down.sql")
