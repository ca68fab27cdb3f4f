"""Checks that the parts are compatible at startup, and that they respond on request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import UUID

from agentcore.cancellation import run_with_timeout
from agentcore.circuit_breaker import CircuitBreaker
from agentcore.database import Connection, Database, Row, pgvector_is_too_old, query
from agentcore.errors import AgentCoreError, ConfigurationError, StartupError, Unreachable
from agentcore.memory.archival import ARCHIVE_IS_OFF, ONE_ARCHIVE, Archive, stored_id
from agentcore.memory.embeddings import Embedder, EmbedderLayer, EmbeddingKind, Vectors
from agentcore.memory.llm_limits import LimitedReranker, LimitedRewriter
from agentcore.memory.parts import MemoryParts

logger = logging.getLogger(__name__)
State = dict[str, Any]
# Longer than one request with its retries.
MODEL_REST_SECONDS = 30.0
# Timeout of one part's check; cache time of the response of /readyz.
CHECK_SECONDS, REUSED_SECONDS = 3.0, 1.0
MOST_COUNTED = 10_000


async def check_server(database: Database) -> None:
    """Raises StartupError for a server on which searches would fail."""
    version = (await database.ping())["pgvector"]
    if pgvector_is_too_old(version):
        raise StartupError(
            f"pgvector 0.8 or newer is needed, this database has {version}: install it on the server, "
            "then run in this database: ALTER EXTENSION vector UPDATE;"
        )


async def check_dimensions(
    database: Database, embedder: Embedder | None, wanted: int, *, in_force: bool = False
) -> None:
    """Raises ConfigurationError if the model's dimensions differ from the stored vectors'.

    `in_force`: the database records this model, and vectors of others may exist.
    """
    if embedder is not None and embedder.dimensions != wanted:
        raise ConfigurationError(
            [
                f"EMBEDDING_DIMENSIONS={wanted}, but {embedder.model} makes vectors of "
                f"{embedder.dimensions}: set EMBEDDING_DIMENSIONS={embedder.dimensions}."
            ]
        )
    if in_force:
        return
    async with database.owner_transaction() as connection:
        rows = await (await connection.execute(query("stored_embedding_models"))).fetchall()
    problems = [
        f"The database holds vectors of {row['embedding_model']}, {row['dimensions']} dimensions each, and "
        f"EMBEDDING_DIMENSIONS is {wanted}: set EMBEDDING_MODEL and EMBEDDING_DIMENSIONS back, "
        "or use another database."
        for row in rows
        if row["dimensions"] != wanted
    ]
    if problems:
        raise ConfigurationError(problems)
    for row in rows:
        if embedder is not None and row["embedding_model"] != embedder.model:
            logger.warning(
                "some memories have vectors of %s, not of %s: they are found by words alone",
                row["embedding_model"],
                embedder.model,
            )


async def other_archives(connection: Connection, archive: Archive | None) -> dict[str, int]:
    """Returns the other archives that contain copies, with their number, up to 10,000."""
    own_id = None if archive is None else await stored_id(archive)

    async def found(name: str, **values: Any) -> list[Row]:
        return list(await (await connection.execute(query(name), values)).fetchall())

    counts: dict[str, int] = {}
    last = UUID(int=0)
    while rows := await found("next_archive", after=last, archive_id=own_id):
        last = rows[0]["archive_id"]
        [row] = await found("count_copies", archive_id=last, most=MOST_COUNTED)
        counts[str(last)] = row["copies"]
    return counts


class WatchedEmbedder(EmbedderLayer):
    """Adds the last problem and a circuit breaker to an embedder."""

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self.problem: str | None = None
        self.circuit = CircuitBreaker(
            "embedder", "searches use words alone, memories are embedded later", MODEL_REST_SECONDS
        )

    async def close(self) -> None:
        await self._inner.close()

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        """Raises Unreachable at once while the circuit is open."""
        if not self.circuit.allow_request():
            raise Unreachable(self.problem)
        try:
            vectors = await self._inner.embed(texts, kind)
        except AgentCoreError as failure:
            self.problem = failure.message
            if isinstance(failure, Unreachable):
                self.circuit.record_failure(failure.message)
            elif "status" in failure.data:
                self.circuit.record_success()  # the provider replied
            raise
        self.problem = None
        self.circuit.record_success()
        return vectors


class SharedCheck:
    """One check at a time, shared by concurrent callers; its result is cached for REUSED_SECONDS."""

    def __init__(
        self, check: Callable[[], Awaitable[dict[str, State]]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._check = check
        self._clock = clock
        self._running: asyncio.Task[dict[str, State]] | None = None
        self._checked_at = 0.0

    async def answer(self) -> dict[str, State]:
        stale = self._clock() - self._checked_at >= REUSED_SECONDS
        if self._running is None or (self._running.done() and stale):
            self._running = asyncio.create_task(self._run())
        # A caller that disconnects must not cancel the others' check.
        return await asyncio.shield(self._running)

    async def _run(self) -> dict[str, State]:
        try:
            return await self._check()
        finally:
            self._checked_at = self._clock()


async def states(
    database: Database, parts: MemoryParts, embedder: WatchedEmbedder | None, circuits: Sequence[CircuitBreaker]
) -> dict[str, State]:
    """Returns for each part `ok`, `required` (default true) and details."""
    archive = parts.archive
    checks: dict[str, Awaitable[State]] = {
        "postgresql": _checked(database.ping()),
        "redis": _checked(parts.working.check(), required=False),
        "archive": archive_state(database, archive),
    }
    external = parts.vectors.external
    if external is not None:
        checks["vector_store"] = _checked(external.ping(), required=False, kind=external.name)
    if database.has_replica:
        checks["postgresql_read"] = _checked(database.ping(read=True), required=False)
    found = dict(zip(checks, await asyncio.gather(*checks.values()), strict=True))
    if database.has_replica:
        _report_lag(found["postgresql"].pop("lsn", None), found["postgresql_read"])
    # Models are not called: the result of the last request is reported.
    found["embedder"] = {"ok": True, "model": "none"} if embedder is None else _model_state(embedder)
    for name, model in (("reranker", parts.reranker), ("query_rewriter", parts.rewriter)):
        if model is not None:
            found[name] = _model_state(model)
    for circuit in circuits:
        if circuit.is_open and circuit.dependency in found:
            found[circuit.dependency]["circuit"] = "open"
    return found


def _report_lag(primary_lsn: int | None, replica: State) -> None:
    replay_lsn = replica.pop("lsn", None)
    if replay_lsn == 0:
        replica |= {"ok": False, "problem": "It is not a replica of DATABASE_URL: reads use the primary."}
    elif primary_lsn is not None and replay_lsn is not None:
        replica["lag_bytes"] = max(0, primary_lsn - replay_lsn)


async def _checked(check: Awaitable[State | None], **about: Any) -> State:
    try:
        found = await run_with_timeout(CHECK_SECONDS, check)
        return {"ok": True, **about, **(found or {})}
    except TimeoutError:
        problem = f"It did not answer within {CHECK_SECONDS:g} s."
    except AgentCoreError as failure:
        problem = failure.message
    return {"ok": False, **about, "problem": problem}


async def archive_state(database: Database, archive: Archive | None) -> State:
    """Returns whether the archive responds and contains all copies that tombstones reference."""
    state: State = {"ok": True, "kind": "none"}
    if archive is not None:
        state = await _checked(archive.check(), required=False, kind=archive.name)
    if not state["ok"]:
        return state
    state["required"] = False
    try:
        others = await run_with_timeout(CHECK_SECONDS, _other_archives(database, archive))
    except (AgentCoreError, TimeoutError) as failure:
        problem = f"Where the copies are could not be read from the database: {failure or 'no answer'}."
        return {**state, "ok": False, "problem": problem}
    if not others:
        return state
    told = ", ".join(f"{count} in {each}" for each, count in others.items())
    fix = ONE_ARCHIVE if archive is not None else ARCHIVE_IS_OFF
    problem = f"Copies are in archives that this server does not use ({told}). {fix}"
    return {**state, "ok": False, "problem": problem, "other_archives": others}


async def _other_archives(database: Database, archive: Archive | None) -> dict[str, int]:
    async with database.owner_transaction() as connection:
        return await other_archives(connection, archive)


def _model_state(model: WatchedEmbedder | LimitedReranker | LimitedRewriter) -> State:
    if model.problem is None:
        return {"ok": True, "model": model.model}
    return {"ok": False, "required": False, "model": model.model, "problem": model.problem}
