"""Translates errors of PostgreSQL by their SQLSTATE."""

from __future__ import annotations

import psycopg
from psycopg_pool import PoolTimeout

from agentcore.errors import (
    AgentCoreError,
    DiskFull,
    NotFound,
    PoolExhausted,
    ReadOnlyDatabase,
    ServerLimit,
    StatementTimeout,
    TransactionConflict,
    Unreachable,
)

UNAVAILABLE = "PostgreSQL does not answer."
# By prefix of the SQLSTATE; the first match applies.
_FAILURES: tuple[tuple[tuple[str, ...], type[AgentCoreError], str | None], ...] = (
    (("57014",), StatementTimeout, None),
    (("40001", "40P01", "55P03"), TransactionConflict, None),
    (("23503",), NotFound, "A memory that this call refers to was deleted meanwhile."),
    (("25006",), ReadOnlyDatabase, None),
    (("53100",), DiskFull, "PostgreSQL has no room on its disk: free some, or make it larger."),
    (("53400",), ServerLimit, None),
    (("53300",), PoolExhausted, "PostgreSQL accepts no more connections: raise its max_connections."),
    (("08", "53", "57P"), Unreachable, UNAVAILABLE),
)


class translated_errors:
    """Translates driver errors by SQLSTATE, and a lost connection; other errors pass."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        translated = _translated(error)
        if translated is not None:
            raise translated from error


def _translated(error: BaseException | None) -> AgentCoreError | None:
    sqlstate = error.sqlstate if isinstance(error, psycopg.Error) else None
    if sqlstate is None:
        away = isinstance(error, PoolTimeout | psycopg.OperationalError | psycopg.InterfaceError)
        return Unreachable(UNAVAILABLE) if away else None
    matching = (failure(message) for states, failure, message in _FAILURES if sqlstate.startswith(states))
    return next(matching, None)
