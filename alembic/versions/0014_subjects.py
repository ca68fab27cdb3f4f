"""Of what each current memory states something.

What: the table `memory_subjects`, digests alone. Why: a memory finds the one whose place it takes by key,
without a search. Memories from before have none, and nothing takes their place until they are changed. Safe
while an old version runs: that one neither reads nor writes it, and what it deletes takes its rows along.
"""

from agentcore.migration import run_sql

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0014_subjects.sql")


def downgrade() -> None:
    run_sql("0014_subjects.down.sql")
