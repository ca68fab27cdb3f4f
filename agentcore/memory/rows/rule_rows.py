"""How an agent's layers forget, as a row. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from psycopg.types.json import Jsonb

from agentcore.memory.params.layers import OwnRules
from agentcore.memory.rows.owned_rows import OwnedRows


class RuleRows(OwnedRows):
    """The rules of one agent inside one transaction."""

    async def hold(self) -> OwnRules:
        """The agent's own rules, which nobody else changes before the end."""
        return cast(OwnRules, (await self._rows("hold_agent_rules"))[0]["layers"])

    async def set(self, rules: Mapping[str, Mapping[str, int]]) -> None:
        """These from now on."""
        await self._run("set_agent_rules", layers=Jsonb(rules))

