"""PostgreSQL access: pools, named queries, and transactions scoped to one agent. Row security applies to all but the
owner's connections.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import select
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from copy import copy
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Self, TypeVar

import psycopg
from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection, AsyncRawCursor, sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import _WaitTimeout
from psycopg.pq import Format
from psycopg.rows import DictRow, dict_row, tuple_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from agentcore.circuit_breaker import CircuitBreaker
from agentcore.errors import (
    AgentCoreError,
    PoolExhausted,
    ReadOnlyDatabase,
    StartupError,
    TransactionConflict,
    Unreachable,
)
from agentcore.replication import FLOOR_MISSING, LastWriteLsns
from agentcore.sql_errors import UNAVAILABLE, translated_errors

# How long callers wait for a connection after the circuit opens: a server usually restarts in less.
FIRST_ACQUIRE_SECONDS = 1.5
PROBE_ACQUIRE_SECONDS = 0.5
# How long the pool itself retries to connect.
RECONNECT_SECONDS = 2.0
# Limit of a reply while the circuit is open, and of the reply to a cancel request.
PROBE_REPLY_SECONDS, CANCEL_SECONDS = 2.0, 0.5


class ConnectionGate:
    """Acquires connections of one pool, with a timeout that depends on the server's circuit."""

    def __init__(self, circuit: CircuitBreaker, reason: Callable[[], str | None], reply_seconds: float | None) -> None:
        """`reason` returns why the server will not come back, or None. `reply_seconds`: reply timeout of a statement;
        None: no limit.
        """
        self.circuit = circuit
        self._reason = reason
        self._reply_seconds = reply_seconds
        self._in_use = 0
        self._acquiring: set[asyncio.Timeout] = set()

    def reply_limit(self, statements: int) -> float | None:
        """Returns the timeout of the replies to these statements; short while the circuit is open."""
        limit = self._reply_seconds
        if self.circuit.is_open:
            return min(PROBE_REPLY_SECONDS, limit or PROBE_REPLY_SECONDS)
        # statement_timeout applies to each statement of a pipeline, and one wait covers them all.
        return limit and limit * max(1, statements)

    def connected(self) -> None:
        self.circuit.record_success()
        self._reschedule()

    def connect_failed(self, cause: psycopg.Error | OSError) -> None:
        """Opens the circuit, unless connections are in use: the server may have reached its maximum."""
        if not self._in_use:
            self.circuit.record_failure(cause)
        self._reschedule()

    @asynccontextmanager
    async def connection(
        self, pool: AsyncConnectionPool[TimeoutConnection], timeout_seconds: float | None = None
    ) -> AsyncIterator[TimeoutConnection]:
        """Raises Unreachable and PoolExhausted."""
        if self.circuit.open_seconds >= FIRST_ACQUIRE_SECONDS and not self.circuit.allow_request():
            raise Unreachable(self._reason() or UNAVAILABLE)
        async with AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(None) as acquire_timeout:
                    self._acquiring.add(acquire_timeout)
                    try:
                        acquire_timeout.reschedule(self._deadline())
                        acquired = await stack.enter_async_context(pool.connection(timeout_seconds))
                    finally:
                        self._acquiring.discard(acquire_timeout)
            except (TimeoutError, PoolTimeout):
                if self._in_use and not self.circuit.is_open:
                    raise PoolExhausted from None
                raise Unreachable(self._reason() or UNAVAILABLE) from None
            self._in_use += 1
            stack.callback(self._released)
            yield acquired
            self.circuit.record_success()

    def _released(self) -> None:
        self._in_use -= 1
        self._reschedule()

    def _reschedule(self) -> None:
        deadline = self._deadline()
        for acquire_timeout in self._acquiring:
            if not acquire_timeout.expired():
                acquire_timeout.reschedule(deadline)

    def _deadline(self) -> float | None:
        if not self.circuit.is_open:
            return None
        now = asyncio.get_running_loop().time()
        if self._reason() is not None:
            return now
        return now + max(FIRST_ACQUIRE_SECONDS - self.circuit.open_seconds, PROBE_ACQUIRE_SECONDS)


class TimeoutConnection(AsyncConnection[DictRow]):
    """A connection that is closed when the server does not reply in time."""

    gate: ConnectionGate | None = None
    # Replay LSN of this connection's server, in bytes, when last read. A pool may use several replicas.
    replay_lsn = 0

    @classmethod
    async def connect(  # type: ignore[override]  # the pool passes its kwargs by name
        cls, conninfo: str = "", *, gate: ConnectionGate | None = None, **named: Any
    ) -> Self:
        """Connects, and reports the result to `gate`. Raises psycopg.Error."""
        try:
            made = await super().connect(conninfo, **named)
        except (psycopg.Error, OSError) as cause:
            if gate is not None:
                gate.connect_failed(cause)
            raise
        made.gate = gate
        if gate is not None:
            gate.connected()
        return made

    async def wait(
        self,
        gen: Any,
        interval: float = 0.1,
        timeout: float | None = None,  # noqa: ASYNC109 - the driver's
    ) -> Any:
        """On timeout cancels the statement and closes the connection; opens the circuit only if that fails, too."""
        if timeout is not None or self.gate is None:
            return await super().wait(gen, interval, timeout)
        statements = 1 if self._pipeline is None else len(self._pipeline.result_queue)
        try:
            return await super().wait(gen, interval, self.gate.reply_limit(statements))
        except _WaitTimeout:
            try:
                await self._try_cancel()
            finally:
                self.pgconn.finish()
            raise

    async def cancel_safe(self, *, timeout: float = CANCEL_SECONDS) -> None:  # noqa: ASYNC109
        try:
            await super().cancel_safe(timeout=min(timeout, CANCEL_SECONDS))
        except psycopg.Error as cause:
            self.pgconn.finish()
            if self.gate is not None:
                self.gate.circuit.record_failure(f"no reply to a cancel request: {cause}")
            raise


class ReplicaBehind(Exception):
    """The replica has not replayed the caller's last write yet."""


Row = Mapping[str, Any]
RowT = TypeVar("RowT")
Statement = tuple[sql.SQL | sql.Composed, Mapping[str, Any]]
Connection = AsyncConnection[DictRow]
# Users that a token is bound to (None in it: memories without a user); None: not bound.
Users = Collection[str | None] | None
Pool = AsyncConnectionPool[TimeoutConnection]
SERVICE_ROLE = "agentcore_service"
# Role of callers whose token is bound to users; their setting for statements that need the rows of all users.
BOUND_ROLE = "agentcore_bound"
ALL_USERS = "*"
OPEN_TIMEOUT_SECONDS = 15.0
# Limits of an attempt to connect if another host or the primary can be used instead, and of a replica's reply.
ALTERNATIVE_CONNECT_SECONDS, REPLICA_REPLY_SECONDS = 3, 2.0
PING_TIMEOUT_SECONDS = 2.0
PROBE_AFTER_SECONDS = 1.0
# Added to the statement timeout.
ANSWER_GRACE_SECONDS = 1.0
# The oldest version with iterative index scans.
OLDEST_PGVECTOR = (0, 8)
PLANNING = {"plan_cache_mode": "force_custom_plan", "jit": "off", "TimeZone": "UTC"}
# Settings for reads of few rows by key: one generic plan per connection, since planning takes longer than execution.
# Disabled scans and joins keep the plan on indexes, also if it was made while the tables were empty.
KEY_LOOKUP = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
}
# The maximum number of keys of such a read: a generic plan compares each row with every key.
MAX_LOOKUP_KEYS = 64
# Gives these reads prepared statements of their own: PostgreSQL makes a plan again when the role changes, and bound
# tokens have another role.
_BY_KEY = sql.SQL(" -- by key")
# Detects a connection that a middlebox dropped silently, within a minute, and keeps idle ones open.
_KEEPALIVE: dict[str, Any] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
# The pool logs each attempt to connect; without logging configured, Python would print it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())
logger = logging.getLogger(__name__)
_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


def load_queries(directory: Path) -> Mapping[str, str]:
    """Returns the statements of the `.sql` files by `-- name:`. Raises ValueError for a duplicate name."""
    queries: dict[str, str] = {}
    for path in sorted(directory.glob("*.sql")):
        pieces = _NAME.split(path.read_text(encoding="utf-8"))[1:]
        for name, text in zip(pieces[::2], pieces[1::2], strict=True):
            if name in queries:
                raise ValueError(f"{path.name}: a second query is named {name}")
            queries[name] = text.strip().rstrip(";")
    return queries


QUERIES = load_queries(Path(__file__).parent / "memory" / "queries")


@cache
def query(name: str) -> sql.SQL:
    return sql.SQL(QUERIES[name])


def shaped_query(name: str, **shape: sql.Composable) -> sql.Composed:
    """Returns the named statement with `{placeholders}` filled by identifiers and literals, never values."""
    return query(name).format(**shape)


_PARAMETER = re.compile(r"%\((\w+)\)s|%%")


@lru_cache(maxsize=1_024)
def with_numbered_parameters(statement: str) -> tuple[bytes, Sequence[str]]:
    """Returns the statement with `$1` for `%(name)s` and so on, and the names in this order."""
    numbers: dict[str, int] = {}

    def number(found: re.Match[str]) -> str:
        name = found[1]
        return "%" if name is None else f"${numbers.setdefault(name, len(numbers) + 1)}"

    return _PARAMETER.sub(number, statement).encode(), list(numbers)


class Database:
    """The connection pools of one process."""

    def __init__(
        self,
        database_url: str,
        *,
        read_url: str | None = None,
        service_url: str | None = None,
        pool_size: int = 10,
        timeout_seconds: float = 10.0,
        gone_reason: Callable[[], str | None] = lambda: None,
        last_writes: LastWriteLsns | None = None,
    ) -> None:
        """`last_writes`: LSNs that replicas at `read_url` must have replayed."""
        self.url = database_url
        # Reads of the replica that the primary answered instead, by reason.
        self.fallbacks: Counter[str] = Counter()
        self._last_writes = (last_writes or LastWriteLsns(None)) if read_url is not None else None
        self.users: Users = None
        self._timeout_seconds = timeout_seconds
        self._gone_reason = gone_reason
        self._opening = False
        self._circuit = CircuitBreaker("postgresql", "calls that need it fail at once", PROBE_AFTER_SECONDS)
        self._read_circuit = CircuitBreaker("postgresql_read", "reads go to the primary")
        self._gates: dict[str, ConnectionGate] = {}
        self.write = self._pool(service_url or database_url, "write", pool_size)
        self.read = self.write if read_url is None else self._pool(read_url, "read", pool_size)
        self.owner = self._pool(database_url, "owner", 2)

    def _pool(self, url: str, name: str, size: int) -> Pool:
        configure = self._configure_owner if name == "owner" else self._configure_service
        circuit = self._read_circuit if name == "read" else self._circuit
        reply_seconds = None if name == "owner" else self._timeout_seconds + ANSWER_GRACE_SECONDS
        if name == "read" and reply_seconds is not None:
            reply_seconds = min(reply_seconds, REPLICA_REPLY_SECONDS)
        gate = self._gates[name] = ConnectionGate(circuit, self._gone_reason, reply_seconds)
        return AsyncConnectionPool(
            url,
            connection_class=TimeoutConnection,
            kwargs={
                "row_factory": dict_row,
                "prepare_threshold": 0,
                "autocommit": True,
                "gate": gate,
                "connect_timeout": self._connect_seconds(url, replica=name == "read"),
                **_KEEPALIVE,
            },
            min_size=min(2, size),
            max_size=size,
            timeout=self._timeout_seconds,
            max_idle=600.0,
            reconnect_timeout=RECONNECT_SECONDS,
            reconnect_failed=self._retry_while_opening,
            configure=configure,
            check=_check_if_readable,
            open=False,
            name=name,
        )

    def _connect_seconds(self, url: str, *, replica: bool = False) -> int:
        limit = math.ceil(self._timeout_seconds)
        has_alternative = replica or "," in str(conninfo_to_dict(url).get("host", ""))
        return min(ALTERNATIVE_CONNECT_SECONDS, limit) if has_alternative else limit

    async def _configure_service(self, connection: Connection) -> None:
        await register_vector_async(connection)
        timeout_ms = str(int(self._timeout_seconds * 1_000))
        await connection.execute(query("service_session"), {"role": SERVICE_ROLE, "timeout_ms": timeout_ms})

    async def _configure_owner(self, connection: Connection) -> None:
        await register_vector_async(connection)
        await connection.execute(query("owner_session"))

    async def open(self) -> None:
        """Raises StartupError if the server does not respond within 15 s. An unreachable replica is no error."""
        self._opening = True
        try:
            await asyncio.gather(
                *(pool.open(wait=True, timeout=OPEN_TIMEOUT_SECONDS) for pool in (self.write, self.owner))
            )
            if self._last_writes is not None:
                [row] = await self.owner_rows(query("wal_lsn"))
                self._last_writes.cluster = row["cluster"]
                await self.read.open()
        except PoolTimeout as cause:
            await self.close()
            raise StartupError(
                "PostgreSQL did not answer within 15 s: check DATABASE_URL and DATABASE_SERVICE_URL, and that "
                "`agentcore migrate` has run."
            ) from cause
        finally:
            self._opening = False

    async def _retry_while_opening(self, pool: Pool) -> None:
        if self._opening:
            await pool.check()

    async def close(self) -> None:
        """Closes every pool; connections in use have 5 s to end."""
        await asyncio.gather(*(pool.close(timeout=5.0) for pool in self._pools()))

    def _pools(self) -> list[Pool]:
        return list({id(pool): pool for pool in (self.write, self.read, self.owner)}.values())

    def bound_to(self, users: Users) -> Database:
        """Returns a database with the same pools whose transactions see only these users' rows."""
        bound = copy(self)
        bound.users = users
        return bound

    def _begin_statement(self, agent_id: str, settings: Mapping[str, str] | None = None) -> Statement:
        role = SERVICE_ROLE if self.users is None else BOUND_ROLE
        return settings_of(agent_id, role, users_setting(self.users), settings)

    def statistics(self) -> dict[str, dict[str, int]]:
        """Returns each pool's counters, by psycopg_pool's names (times in ms)."""
        return {pool.name: pool.get_stats() for pool in self._pools()}

    def _connection(
        self, pool: Pool, timeout_seconds: float | None = None
    ) -> AbstractAsyncContextManager[TimeoutConnection]:
        return self._gates[pool.name].connection(pool, timeout_seconds)

    @asynccontextmanager
    async def transaction(self, agent_id: str, *, record_lsn: bool = True) -> AsyncIterator[Connection]:
        """Opens a transaction that sees only this agent's rows, in pipeline mode.

        `record_lsn`: later reads of the agent see its changes on replicas, too. Raises the errors of
        `translated_errors`, none after the commit.
        """
        begin = self._begin_statement(agent_id)
        committed, reading, lsn = False, None, None
        last_writes = self._last_writes if record_lsn else None
        try:
            with translated_errors():
                async with self._connection(self.write) as connection, connection.pipeline():
                    async with connection.transaction():
                        await connection.execute(*begin)
                        yield connection
                    committed = True
                    if last_writes is not None:
                        reading = await connection.execute(query("flushed_lsn"))
                if reading is not None:
                    lsn = int((await reading.fetchall())[0]["lsn"])
        except (AgentCoreError, psycopg.Error) as cause:
            if not committed:
                raise
            logger.warning("after a commit the connection failed: %s", cause, extra={"agent_id": agent_id})
        finally:
            # Also after a cancellation.
            if committed and last_writes is not None:
                await last_writes.record(agent_id, lsn)

    async def fetch(
        self, agent_id: str, statements: Sequence[Statement], *, primary: bool = False, by_key: bool = False
    ) -> list[list[Row]]:
        """Returns each statement's rows, in one transaction and round trip.

        `primary`: for rows on which a write or a copy is based, as a replica may lag. `by_key`: they read by at most
        MAX_LOOKUP_KEYS keys; uses one generic plan per connection, except for bound tokens. Raises the errors of
        `translated_errors`, and psycopg.Error for a statement that is wrong.
        """
        by_key = by_key and self.users is None
        begin = self._begin_statement(agent_id, KEY_LOOKUP if by_key else None)
        if by_key:
            statements = [(statement + _BY_KEY, values) for statement, values in statements]
        return await self._fetch(agent_id, [begin, *statements], dict_row, Format.TEXT, primary=primary)

    async def fetch_as(
        self, agent_id: str, statement: Statement, make: Callable[[Sequence[Any]], RowT], settings: Mapping[str, str]
    ) -> list[RowT]:
        """Returns a statement's rows, each converted by `make`; `settings` apply to its transaction.

        The binary format returns a `real` as its nearest double. Raises the errors of `fetch`.
        """
        statements = [self._begin_statement(agent_id, settings), statement]
        [rows] = await self._fetch(agent_id, statements, tuple_row, Format.BINARY)
        return [make(row) for row in rows]

    async def _fetch(
        self,
        agent_id: str,
        statements: Sequence[Statement],
        row_factory: Any,
        row_format: Format,
        *,
        primary: bool = False,
    ) -> list[list[Any]]:
        if self._last_writes is None or primary:
            return await self._fetch_from(self.write, statements, row_factory, row_format)
        required_lsn = await self._last_writes.required_lsn(agent_id)
        reason = "unknown"
        if required_lsn == FLOOR_MISSING:
            await self._last_writes.set_floor(self._flushed_lsn)
        elif required_lsn is not None:
            try:
                return await self._fetch_from(self.read, statements, row_factory, row_format, required_lsn)
            except Unreachable:
                reason = "unreachable"
            except ReplicaBehind:
                reason = "behind"
            except TransactionConflict:
                # The replica needed to replay what the query still read.
                reason = "conflict"
        self.fallbacks[reason] += 1
        return await self._fetch_from(self.write, statements, row_factory, row_format)

    async def _flushed_lsn(self) -> int:
        with translated_errors():
            async with self._connection(self.write) as connection:
                [row] = await (await connection.execute(query("flushed_lsn"))).fetchall()
        return int(row["lsn"])

    async def _fetch_from(
        self, pool: Pool, statements: Sequence[Statement], row_factory: Any, row_format: Format, required_lsn: int = 0
    ) -> list[list[Any]]:
        """Returns the rows of each statement but the first, which begins the transaction.

        Raises ReplicaBehind if the server's replay LSN is below `required_lsn`.
        """
        cursors: list[AsyncRawCursor[Any]] = []
        with translated_errors():
            async with self._connection(pool) as connection:
                if connection.replay_lsn < required_lsn:
                    connection.replay_lsn = await self._replay_lsn(connection)
                    if connection.replay_lsn < required_lsn:
                        raise ReplicaBehind
                # A pipeline is one transaction up to its sync (PostgreSQL documentation, 54.2.4).
                async with connection.pipeline():
                    for statement, values in statements:
                        text, names = with_numbered_parameters(statement.as_string())
                        cursor = AsyncRawCursor(connection, row_factory=row_factory)
                        cursor.format = row_format
                        await cursor.execute(text, [values[name] for name in names])
                        cursors.append(cursor)
        return [await cursor.fetchall() for cursor in cursors[1:]]

    async def _replay_lsn(self, connection: Connection) -> int:
        """Returns the server's LSN in bytes; 0 if it belongs to another cluster."""
        [row] = await (await connection.execute(query("wal_lsn"))).fetchall()
        is_replica = self._last_writes is not None and row["cluster"] == self._last_writes.cluster
        return int(row["lsn"]) if is_replica else 0

    @asynccontextmanager
    async def owner_transaction(self) -> AsyncIterator[Connection]:
        """Opens a transaction over all agents: only for maintenance. Raises the errors of `translated_errors`."""
        with translated_errors():
            async with self._connection(self.owner) as connection, connection.transaction():
                yield connection

    async def owner_rows(self, statement: sql.SQL | sql.Composed, **values: Any) -> list[Row]:
        """Executes one statement in an owner transaction; returns its rows, if any. Raises the errors of `fetch`."""
        async with self.owner_transaction() as connection:
            cursor = await connection.execute(statement, values)
            return [*await cursor.fetchall()] if cursor.description else []

    @asynccontextmanager
    async def owner_autocommit(self) -> AsyncIterator[Connection]:
        """For statements that cannot run in a transaction. Raises the errors of `translated_errors`."""
        with translated_errors():
            connection = await TimeoutConnection.connect(
                self.url,
                autocommit=True,
                row_factory=dict_row,
                connect_timeout=self._connect_seconds(self.url),
                **_KEEPALIVE,
            )
            try:
                await connection.execute(query("owner_session"))
                yield connection
            finally:
                await connection.close()

    @property
    def circuits(self) -> list[CircuitBreaker]:
        return [self._circuit, self._read_circuit] if self.has_replica else [self._circuit]

    @property
    def has_replica(self) -> bool:
        return self._last_writes is not None

    async def ping(self, *, read: bool = False) -> dict[str, Any]:
        """Returns the versions of the server and of pgvector, and with replicas `lsn` in bytes.

        Raises DependencyUnavailable.
        """
        pool = self.read if read else self.write
        with translated_errors():
            async with self._connection(pool, PING_TIMEOUT_SECONDS) as connection, connection.transaction():
                await connection.execute(query("little_memory"))  # so that a temporary file detects a full disk
                cursor = await connection.execute(query("server_state"))
                state = await cursor.fetchone() or {}
                lsn = await self._replay_lsn(connection) if self.has_replica else None
        if state["read_only"] and not read:
            raise ReadOnlyDatabase
        versions = {"version": state["version"], "pgvector": state["pgvector"]}
        return versions if lsn is None else {**versions, "lsn": lsn}


async def _check_if_readable(connection: Connection) -> None:
    """Checks only a connection whose socket is readable, as after the server closed it: a check costs a round trip."""
    watch = select.poll()
    watch.register(connection.fileno(), select.POLLIN)
    if watch.poll(0):
        await AsyncConnectionPool.check_connection(connection)


def users_setting(users: Users) -> str:
    """Returns the value of agentcore.users: a JSON list, or empty."""
    return "" if users is None else json.dumps([*users])


def settings_of(agent_id: str, role: str, users: str = "", more: Mapping[str, str] | None = None) -> Statement:
    """Returns the first statement of an agent's transaction; `users`: see users_setting."""
    return set_for_transaction(
        {**PLANNING, **(more or {}), "role": role, "agentcore.agent_id": agent_id, "agentcore.users": users}
    )


def set_for_transaction(settings: Mapping[str, str]) -> Statement:
    return query("set_for_transaction"), {"settings": json.dumps(settings)}


def array_literal(numbers: Iterable[float]) -> str:
    """Returns a PostgreSQL array; psycopg's array adapter blocks the event loop for 100 ms at 100,000 numbers."""
    return f"{{{','.join(map(str, numbers))}}}"


def pgvector_is_too_old(version: str | None) -> bool:
    """Returns whether this version of pgvector lacks iterative index scans (None: not installed)."""
    return tuple(int(part) for part in (version or "0").split(".") if part.isdigit()) < OLDEST_PGVECTOR
