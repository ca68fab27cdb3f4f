"""Whether the parts fit, at the start; and whether they answer, whenever somebody asks."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from agentcore.database import PING_TIMEOUT_SECONDS, Connection, Database, pgvector_is_too_old, query
from agentcore.errors import AgentCoreError, ConfigurationError, StartupError
from agentcore.memory.archival import ONE_ARCHIVE, Archive, stored_id
from agentcore.memory.embeddings import Embedder, EmbedderLayer, EmbeddingKind, Vectors
from agentcore.memory.llm_limits import LimitedReranker, LimitedRewriter
from agentcore.memory.parts import MemoryParts

logger = logging.getLogger(__name__)
State = dict[str, Any]
MOST_COUNTED = 10_000


async def check_server(database: Database) -> None:
    """Raise StartupError for a server on which searches would fail later."""
    version = (await database.ping())["pgvector"]
    if pgvector_is_too_old(version):
        raise StartupError(
            f"pgvector 0.7 or newer is needed, this database has {version}: install it on the server, "
            "then run in this database: ALTER EXTENSION vector UPDATE;"
        )


async def check_dimensions(
    database: Database, embedder: Embedder | None, wanted: int, *, in_force: bool = False
) -> None:
    """Raise ConfigurationError for a model whose vectors do not fit those that are stored.

    Beside a model that the database says is in force others' may stand, until they are made anew.
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


async def other_archives(connection: Connection, archive: Archive) -> dict[str, int]:
    """Returns the other archives that contain copies, with their number, counted up to 10,000."""
    values = {"archive_id": await stored_id(archive), "most": MOST_COUNTED}
    rows = await (await connection.execute(query("other_archives"), values)).fetchall()
    return {str(row["archive_id"]): row["copies"] for row in rows}


class WatchedEmbedder(EmbedderLayer):
    """An embedder that remembers how its last request ended."""

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self.problem: str | None = None

    async def close(self) -> None:
        """As of the one inside."""
        await self._inner.close()

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        """As of the one inside; `problem` is what the last request failed of, None if it did not."""
        try:
            vectors = await self._inner.embed(texts, kind)
        except AgentCoreError as failure:
            self.problem = failure.message
            raise
        self.problem = None
        return vectors


async def states(
    database: Database, parts: MemoryParts, embedder: WatchedEmbedder | None
) -> dict[str, State]:
    """Each part: whether it answers, what it is, and what is wrong. Required where no more is said."""
    postgresql, reading, archive, redis = await asyncio.gather(
        _database_state(database),
        _database_state(database, read=True) if database.reads_elsewhere else _nothing(),
        archive_state(database, parts.archive),
        parts.working.answers(),
    )
    return {
        "postgresql": postgresql,
        **({"postgresql_read": reading} if reading else {}),
        "redis": {"ok": redis, "required": False},
        "archive": archive,
        "embedder": _embedder_state(embedder),
        **{
            name: _model_state(model)
            for name, model in (("reranker", parts.reranker), ("query_rewriter", parts.rewriter))
            if model is not None
        },
    }


async def _nothing() -> State:
    return {}


async def _database_state(database: Database, *, read: bool = False) -> State:
    try:
        state = await database.ping(read=read)
    except AgentCoreError as failure:
        return {"ok": False, "problem": failure.message}
    return {"ok": True, "version": state["postgresql"], "pgvector": state["pgvector"]}


async def archive_state(database: Database, archive: Archive | None) -> State:
    """Whether the archive answers and contains all copies that the tombstones refer to."""
    if archive is None:
        return {"ok": True, "kind": "none"}
    others: dict[str, int] = {}
    try:
        await archive.check()
    except AgentCoreError as failure:
        return {"ok": False, "required": False, "kind": archive.name, "problem": failure.message}
    with suppress(AgentCoreError, TimeoutError):
        async with asyncio.timeout(PING_TIMEOUT_SECONDS), database.owner_transaction() as connection:
            others = await other_archives(connection, archive)
    if not others:
        return {"ok": True, "kind": archive.name}
    told = ", ".join(f"{count} in {each}" for each, count in others.items())
    problem = f"Copies are in archives that this server does not use ({told}). {ONE_ARCHIVE}"
    state = {"ok": False, "required": False, "kind": archive.name}
    return {**state, "problem": problem, "other_archives": others}


def _embedder_state(embedder: WatchedEmbedder | None) -> State:
    """Without it words alone are searched, so it is not required. Nothing is embedded just to ask."""
    if embedder is None:
        return {"ok": True, "model": "none"}
    return _model_state(embedder)


def _model_state(model: WatchedEmbedder | LimitedReranker | LimitedRewriter) -> State:
    if model.problem is None:
        return {"ok": True, "model": model.model}
    return {"ok": False, "required": False, "model": model.model, "problem": model.problem}
