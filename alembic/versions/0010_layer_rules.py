"""Adds the rules of each agent's layers: default TTLs, extension by use, capacities.

What: `memories.ttl_seconds`, `memory_usage.uses_in_life`, `agent_settings`. Why: use extends a memory's
expiry, and agents have their own limits. Existing memories keep their expiry and are not extended. Safe while
an old version runs: it does not change the columns.
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
