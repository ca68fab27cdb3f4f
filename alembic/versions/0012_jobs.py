"""Adds access to jobs from an agent's transaction, the causes of failed jobs, and an index of superseded
memories.

What: the functions `enqueue_job`, `job_waits` and `forget_jobs`, the table `job_failures`, the view
`background_jobs`, an index over an agent's jobs, and one over superseded memories. Why: the service's role
cannot read jobs, not even its own agent's; pruning must not delete the only copy of a fact. Safe while an old
version runs: no object that it uses changes; stores are blocked while the index of superseded memories is
built.
"""

from agentcore.migration import run_sql

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0012_jobs.sql")


def downgrade() -> None:
    run_sql("0012_jobs.down.sql")
