"""How an agent's layers forget, as a row. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from psycopg.types.json import Jsonb

from agentcore.database import Connection, query
from agentcore.memory.layer_params import OwnRules


class RuleRows:
    """The rules of one agent inside one transaction."""

    def __init__(self, connection: Connection, agent_id: str) -> None:
        self._connection = connection
        self._agent_id = agent_id

    async def hold(self) -> OwnRules:
        """The agent's own rules, which nobody else changes before the end."""
        cursor = await self._connection.execute(query("hold_agent_rules"), {"agent_id": self._agent_id})
        return cast(OwnRules, (await cursor.fetchall())[0]["layers"])

    async def set(self, rules: Mapping[str, Mapping[str, int]]) -> None:
        """These from now on."""
        values = {"agent_id": self._agent_id, "layers": Jsonb(rules)}
        await self._connection.execute(query("set_agent_rules"), values)
