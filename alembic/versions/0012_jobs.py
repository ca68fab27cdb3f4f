"""How an agent's transaction reaches the jobs, why jobs failed, and the memories that supersede others.

What: the functions `enqueue_job`, `job_waits` and `forget_jobs`, the table `job_failures`, the view
`background_jobs`, an index over an agent's jobs, and one over superseded memories. Why: the service's role
sees no job, its own agent's neither; pruning must not take the only copy of a fact. Safe while an old version
runs: nothing that it uses changes; stores wait while the index of superseded memories is made.
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
