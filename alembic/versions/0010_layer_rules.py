"""How each agent's layers forget: default times to live, extension by use, capacities of its own.

What: `memories.ttl_seconds`, `memory_usage.uses_in_life`, `agent_settings`. Why: a memory that is used gets
its time again, and limits are each agent's. Memories stored before keep their expiry and are not extended.
Safe while an old version runs: it leaves the columns as they are.
"""

from agentcore.migration import run_sql

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    run_sql("0010_layer_rules.sql")


def downgrade() -> None:
    run_sql("0010_layer_rules.down.sql")
