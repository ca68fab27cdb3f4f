"""What the rows of every kind have in common: each statement is told the agent. Inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from psycopg import sql

from agentcore.database import Connection, query

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
        """Send it; what is wrong with it shows at the transaction's next answer."""
        await self._connection.execute(_composed(statement), {"agent_id": self._agent_id, **values})


def _composed(statement: NamedOrComposed) -> sql.SQL | sql.Composed:
    return query(statement) if isinstance(statement, str) else statement
