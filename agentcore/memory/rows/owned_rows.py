"""Base classes of rows: statements get the agent, and its summary rules. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from psycopg import sql
from psycopg.types.json import Jsonb

from agentcore.database import Connection, query, shaped_query
from agentcore.summary_rules import SummaryRules, rules_in_force

Row = Mapping[str, Any]
NamedOrComposed = str | sql.SQL | sql.Composed


class OwnedRows:
    """Rows of one agent inside one transaction. A statement is named as in `queries`, or composed of one."""

    def __init__(self, connection: Connection, agent_id: str) -> None:
        self._connection = connection
        self._agent_id = agent_id

    async def _rows(self, statement: NamedOrComposed, /, **values: Any) -> list[Row]:
        cursor = await self._connection.execute(_composed(statement), {"agent_id": self._agent_id, **values})
        return cast(list[Row], await cursor.fetchall())

    async def _run(self, statement: NamedOrComposed, /, **values: Any) -> None:
        """Executes without reading the result; errors surface at the transaction's next result."""
        await self._connection.execute(_composed(statement), {"agent_id": self._agent_id, **values})


def _composed(statement: NamedOrComposed) -> sql.SQL | sql.Composed:
    return query(statement) if isinstance(statement, str) else statement


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
