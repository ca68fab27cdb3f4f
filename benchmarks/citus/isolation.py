"""Row security of every distributed table on a cluster: each role, setting and operation, through the coordinator,
through a worker, and on the shards of a worker.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import psycopg
from psycopg import sql

from benchmarks.citus.cluster import Cluster

AGENTS, USERS = ("agent-a", "agent-b"), ("user-1", "user-2")
IDS = {(agent, user): uuid.uuid5(uuid.NAMESPACE_URL, f"{agent}/{user}") for agent in AGENTS for user in USERS}
# Values that the checks of the tables demand, by column, else by type. "x": the user, so that keys differ.
VALUES: dict[str, Any] = {"memory_type": "episodic", "work": "facts", "passage": 1, "start": 1, "end": 2}
TYPES: dict[str, Any] = {
    "text": "x",
    "uuid": "x",
    "bytea": b"x",
    "jsonb": "{}",
    "ARRAY": "{}",
    "date": "2026-01-01",
    "timestamp with time zone": "2026-01-01",
    "boolean": False,
}
# Tables in which a bound token sees the rows of its own users alone.
OF_USERS = {
    *("memories", "memory_passages", "memory_usage", "memory_links"),
    *("memory_history", "memory_subjects", "archived_memories", "archived_copies"),
}
COLUMNS = """
SELECT column_name, data_type FROM information_schema.columns
 WHERE table_schema = 'public' AND table_name = %s AND is_generated = 'NEVER' AND is_identity = 'NO'
   AND (column_name IN ('user_id', 'updated_at') OR is_nullable = 'NO' AND column_default IS NULL)"""
TABLES = """
SELECT table_name::text FROM citus_tables WHERE citus_table_type = 'distributed'
 ORDER BY table_name <> 'memories'::regclass, 1"""
SHARDS = """
SELECT table_name::text, shard_name FROM citus_shards
 WHERE nodeport = %s AND citus_table_type = 'distributed'
   AND shardid = get_shard_id_for_distribution_column(table_name, %s::text)"""
ROLES = {
    "agent": ("agentcore_service", {"agentcore.agent_id": AGENTS[0]}),
    "user-bound token": (
        "agentcore_bound",
        {"agentcore.agent_id": AGENTS[0], "agentcore.users": json.dumps(USERS[:1])},
    ),
    "unset agent": ("agentcore_service", {}),
    "unset agent, bound": ("agentcore_bound", {}),
}


def _row(connection: psycopg.Connection[Any], table: str, agent: str, user: str) -> dict[str, Any]:
    def value(column: str, kind: str) -> Any:
        if column in ("agent_id", "user_id"):
            return {"agent_id": agent, "user_id": user}[column]
        found = VALUES.get(column, TYPES.get(kind, USERS.index(user)))
        return (IDS[agent, user] if kind == "uuid" else user) if found == "x" else found

    return {column: value(column, kind) for column, kind in connection.execute(COLUMNS, [table])}


def _insert(table: str, row: dict[str, Any]) -> tuple[sql.Composed, list[Any]]:
    columns = sql.SQL(", ").join(map(sql.Identifier, row))
    places = sql.SQL(", ").join([sql.Placeholder()] * len(row))
    return sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(table), columns, places), [*row.values()]


def _statements(table: str, row: dict[str, Any]) -> Iterator[tuple[str, sql.Composed, list[Any]]]:
    """Each operation on all rows that are visible, and on those of the other agent."""
    keys = ["agent_id", "memory_id" if "memory_id" in row else "source_id"][
        : 1 + bool({*row} & {"memory_id", "source_id"})
    ]
    shape = {"table": sql.Identifier(table), "keys": sql.SQL(", ").join(map(sql.Identifier, keys))}
    shape["column"] = sql.Identifier(next(name for name in reversed(row) if name != "agent_id"))
    for where in ("true", "agent_id = 'agent-b'"):
        shape["where"] = sql.SQL(where)
        yield "SELECT", sql.SQL("SELECT {keys} FROM {table} WHERE {where}").format(**shape), []
        for text in ("UPDATE {table} SET {column} = {column}", "DELETE FROM {table}"):
            yield text[:6], sql.SQL(text + " WHERE {where} RETURNING {keys}").format(**shape), []
    yield "INSERT", *_insert(table, row)


Settings = dict[str, str]
Rows = dict[str, dict[str, Any]]


class Matrix:
    """Counts operations by their outcome, and collects those that reached a row of another agent or user."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.violations: list[str] = []

    def run(self, url: str, place: str, role: str, settings: Settings, tables: dict[str, str], other: Any) -> None:
        """`tables`: name to use, by table. `other`: the rows of the other agent, by table."""
        with psycopg.connect(url) as connection:
            for table, name in tables.items():
                for operation, statement, values in _statements(name, other[table]):
                    self._try(connection, f"{place}, {role}: {operation} {name}", table, settings, (statement, values))

    def _try(self, connection: Any, what: str, table: str, settings: Settings, statement: tuple[Any, Any]) -> None:
        try:
            if what.startswith("coordinator"):
                connection.execute("SELECT set_for_transaction(%s::json)", [json.dumps(settings)])
            else:
                connection.execute("SET LOCAL citus.enable_manual_changes_to_shards = on")
                for setting in settings.items():
                    connection.execute("SELECT set_config(%s, %s, true)", setting)
            cursor = connection.execute(*statement)
            rows = [tuple(map(str, row)) for row in cursor.fetchall()] if cursor.description else [("agent-b",)]
        except psycopg.errors.InsufficientPrivilege:
            self.counts["refused by row security"] += 1
            rows = []
        except psycopg.Error as error:
            self.counts[f"{error.sqlstate} {str(error).splitlines()[0][:60]}"] += 1
            rows = []
        finally:
            connection.rollback()
        bound, allowed = "bound" in what, {"agent-a"} if settings else set()
        foreign = [
            row
            for row in rows
            if row[0] not in allowed or (bound and table in OF_USERS and row[1] != str(IDS["agent-a", "user-1"]))
        ]
        self.counts["operations"] += 1
        self.counts["own rows reached"] += len(rows) - len(foreign)
        self.violations += [what] if foreign else []


def check(running: Cluster) -> dict[str, Any]:
    """Fills every table for two agents of two users each; returns how many operations were tried, with their results,
    and each that reached a foreign row."""
    matrix = Matrix()
    with psycopg.connect(running.superuser_url, autocommit=True) as connection:
        tables = [name for (name,) in connection.execute(TABLES)]
        for table in tables:
            for agent, user in IDS:
                statement, values = _insert(table, _row(connection, table, agent, user))
                connection.execute(statement + sql.SQL(" ON CONFLICT DO NOTHING"), values)
        other = {table: _row(connection, table, "agent-b", "user-2") for table in tables}
        own = dict(zip(tables, tables, strict=True))
        for role, (login, settings) in ROLES.items():
            for node in running.nodes:
                place = "coordinator" if node is running.coordinator else "worker"
                matrix.run(node.url(login), place, role, settings, own, other)
                for agent in AGENTS if node is not running.coordinator else ():
                    shards: dict[str, str] = dict(connection.execute(SHARDS, [node.port, agent]).fetchall())
                    matrix.run(node.url(login), "shards", role, settings, shards, other)
    return {"tables": len(tables), **matrix.counts, "violations": matrix.violations}
