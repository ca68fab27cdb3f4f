"""Rows that follow how their agent's sessions are summarised: each statement is told the service's rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from psycopg.types.json import Jsonb

from agentcore.database import Connection, query, shaped_query
from agentcore.memory.rows.owned_rows import NamedOrComposed, OwnedRows, Row
from agentcore.summary_rules import SummaryRules, rules_in_force


class RuledRows(OwnedRows):
    """Rows of one agent inside one transaction. `service` holds where the agent has no rules of its own."""

    def __init__(self, connection: Connection, agent_id: str, service: SummaryRules | None) -> None:
        super().__init__(connection, agent_id)
        self._service = service

    async def wishes(self) -> Mapping[str, Any]:
        """What the agent itself wishes of models."""
        rows = await self._rows("model_wishes")
        return rows[0]["models"] if rows else {}

    async def summary_rules(self) -> SummaryRules | None:
        """How the agent's sessions are summarised; None: not in stretches."""
        return rules_in_force((await self.wishes()).get("summaries"), self._service)

    async def _ruled(self, name: str, /, **values: Any) -> list[Row]:
        statement, rules = self._with_rules(name)
        return await self._rows(statement, **rules, **values)

    def _with_rules(self, name: str, **shape: Any) -> tuple[NamedOrComposed, dict[str, Any]]:
        rules = None if self._service is None else Jsonb(self._service.model_dump(mode="json"))
        return shaped_query(name, rules=query("summary_rules"), **shape), {"service_rules": rules}
