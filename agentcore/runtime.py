"""The composition root: settings become running parts, opened in order and closed in reverse."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import SecretStr
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from agentcore import migration
from agentcore.auth import JwksKeys, KeySource, SharedSecret, TokenRules, TokenVerifier
from agentcore.config import Settings
from agentcore.database import Database, query
from agentcore.embedded import EmbeddedParts, EmbeddedUrls, Home, attach, default_home
from agentcore.errors import AgentCoreError, ConfigurationError, DependencyUnavailable, StartupError
from agentcore.maintenance.rounds import Maintenance
from agentcore.memory.api import Caller
from agentcore.memory.archival import ARCHIVES, Archive
from agentcore.memory.embeddings import (
    DEFAULT_MODEL_NAMES,
    EMBEDDERS,
    BatchingEmbedder,
    CachingEmbedder,
    Embedder,
    EmbedderOptions,
)
from agentcore.memory.manager import MemoryManager
from agentcore.memory.parts import AccessQueue, MemoryParts, MemoryPolicy
from agentcore.memory.storage import MemoryStorage
from agentcore.memory.tokens import TokenCounter
from agentcore.memory.vector_store import VECTOR_STORES, SearchLimits
from agentcore.memory.working import WorkingMemory
from agentcore.registry import resolve
from agentcore.telemetry import Metrics

logger = logging.getLogger(__name__)
Log = Callable[[str], None]


@dataclass(frozen=True)
class Runtime:
    """The running service without its HTTP edge."""

    settings: Settings
    home: Home
    database: Database
    redis: Redis | None
    parts: MemoryParts
    verifier: TokenVerifier
    metrics: Metrics
    maintenance: Maintenance

    def manager_for(self, caller: Caller) -> MemoryManager:
        """The memory of the caller's agent."""
        return MemoryManager(self.parts, caller)

    async def readiness(self) -> dict[str, dict[str, Any]]:
        """Each part: whether it answers, what it is, and what is wrong."""
        database, archive = await asyncio.gather(self._database_state(), self._archive_state())
        redis = {"ok": await self.parts.working.answers(), "required": False}
        embedder = self.parts.embedder
        return {
            "postgresql": database,
            "redis": redis,
            "archive": archive,
            "embedder": {"ok": True, "model": "none" if embedder is None else embedder.model},
        }

    async def _database_state(self) -> dict[str, Any]:
        try:
            state = await self.database.ping()
        except AgentCoreError as failure:
            return {"ok": False, "problem": failure.message}
        return {"ok": True, "version": state["postgresql"], "pgvector": state["pgvector"]}

    async def _archive_state(self) -> dict[str, Any]:
        archive = self.parts.archive
        if archive is None:
            return {"ok": True, "kind": "none"}
        try:
            await archive.check()
        except AgentCoreError as failure:
            return {"ok": False, "required": False, "kind": archive.name, "problem": failure.message}
        return {"ok": True, "kind": archive.name}


def home_of(settings: Settings) -> Home:
    """The home the settings name, or the platform's default."""
    return Home(settings.agentcore_home or default_home())


def cache_of(settings: Settings) -> Path:
    """Where what can be made again is kept."""
    return settings.agentcore_cache or platformdirs.user_cache_path("agentcore")


def urls_of(settings: Settings) -> tuple[str, str | None]:
    """The URLs of the running parts: the settings', else those of the server that runs on the home.

    Raises StartupError when neither says where they are.
    """
    given = settings.database_url is not None and settings.redis_url is not None
    found = EmbeddedUrls() if given else attach(home_of(settings))
    database_url = _revealed(settings.database_url) or found.database_url
    if database_url is None:
        raise StartupError("No DATABASE_URL is set and no embedded PostgreSQL runs here.")
    return database_url, _revealed(settings.redis_url) or found.redis_url


@asynccontextmanager
async def open_runtime(
    settings: Settings, *, log: Log = logger.info, migrate: bool = False, attach_only: bool = False
) -> AsyncIterator[Runtime]:
    """Everything running, until the block ends.

    Embedded parts are started where no URL is set, or found where `attach_only` says they run already. An
    embedded database is migrated by itself, another only with `migrate`. Raises ConfigurationError and
    StartupError.
    """
    async with AsyncExitStack() as stack:
        home = home_of(settings)
        database_url, redis_url = await _urls(settings, home, stack, log, attach_only)
        embedded = settings.database_url is None and not attach_only
        await asyncio.to_thread(
            migration.upgrade if migrate or embedded else migration.check_revision, database_url
        )
        metrics = Metrics()
        database = Database(
            database_url,
            read_url=_revealed(settings.database_read_url),
            pool_size=settings.database_pool_size,
            timeout_seconds=settings.database_timeout_seconds,
        )
        await database.open()
        stack.push_async_callback(database.close)
        redis = _redis(redis_url, settings)
        if redis is not None:
            stack.push_async_callback(redis.aclose)
        embedder = await _embedder(settings, redis, metrics, stack)
        await _check_dimensions(database, embedder, settings)
        parts = _parts(settings, home, database, redis, embedder, metrics)
        await asyncio.to_thread(parts.count_tokens, "the first count loads the tables")
        maintenance = Maintenance(database, parts, settings.maintenance_interval_seconds)
        runtime = Runtime(
            settings, home, database, redis, parts, _verifier(settings, home), metrics, maintenance
        )
        _watch(runtime)
        stack.push_async_callback(_count_last_accesses, parts)
        await _run_in_background(stack, maintenance, settings)
        yield runtime


async def _urls(
    settings: Settings, home: Home, stack: AsyncExitStack, log: Log, attach_only: bool
) -> tuple[str, str | None]:
    if attach_only:
        return urls_of(settings)
    parts = EmbeddedParts(
        home, postgres=settings.database_url is None, redis=settings.redis_url is None, log=log
    )
    await stack.enter_async_context(parts)
    supervision = asyncio.create_task(parts.supervise())
    stack.push_async_callback(_cancelled, supervision)
    database_url = _revealed(settings.database_url) or parts.urls.database_url or ""
    return database_url, _revealed(settings.redis_url) or parts.urls.redis_url


async def _cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def _count_last_accesses(parts: MemoryParts) -> None:
    try:
        await parts.accesses.flush(parts.storage)
    except DependencyUnavailable:
        logger.warning("the last accesses were not counted: PostgreSQL does not answer")


async def _run_in_background(stack: AsyncExitStack, maintenance: Maintenance, settings: Settings) -> None:
    duties = [maintenance.flush_accesses()]
    if settings.maintenance_in_server:
        duties.append(maintenance.lead())
    tasks = [asyncio.create_task(duty) for duty in duties]

    async def end() -> None:
        """A duty may be long (an index): it is broken off after the grace time, and done again later."""
        maintenance.stop()
        _, late = await asyncio.wait(tasks, timeout=settings.shutdown_grace_seconds)
        for task in late:
            await _cancelled(task)

    stack.push_async_callback(end)


def _redis(url: str | None, settings: Settings) -> Redis | None:
    if url is None:
        return None
    # One quick second try mends a connection that went stale; waiting longer is worse than doing without.
    return Redis.from_url(
        url,
        retry=Retry(NoBackoff(), 1),
        socket_timeout=settings.redis_timeout_seconds,
        socket_connect_timeout=settings.redis_timeout_seconds,
    )


async def _embedder(
    settings: Settings, redis: Redis | None, metrics: Metrics, stack: AsyncExitStack
) -> Embedder | None:
    if settings.embedding_model == "none":
        return None
    keys = {"openai": settings.openai_api_key, "cohere": settings.cohere_api_key}
    options = EmbedderOptions(
        model_name=settings.embedding_model_name or DEFAULT_MODEL_NAMES.get(settings.embedding_model, ""),
        dimensions=settings.embedding_dimensions,
        cache_directory=cache_of(settings),
        api_key=_revealed(keys.get(settings.embedding_model)),
        base_url=settings.openai_base_url if settings.embedding_model == "openai" else None,
        timeout_seconds=settings.embedding_timeout_seconds,
        max_attempts=settings.embedding_max_attempts,
        batch_size=settings.embedding_batch_size,
        threads=settings.embedding_threads,
        model_directory=None,
    )
    provider = resolve(settings.embedding_model, EMBEDDERS, kind="EMBEDDING_MODEL")(options)
    embedder = CachingEmbedder(
        BatchingEmbedder(provider),
        redis=redis,
        max_entries=settings.embedding_cache_entries,
        observer=metrics,
    )
    await embedder.open()
    stack.push_async_callback(embedder.close)
    return embedder


async def _check_dimensions(database: Database, embedder: Embedder | None, settings: Settings) -> None:
    """A model whose vectors do not fit what it stored before is found out now, not at the first query."""
    wanted = settings.embedding_dimensions
    if embedder is not None and embedder.dimensions != wanted:
        raise ConfigurationError(
            [
                f"EMBEDDING_DIMENSIONS={wanted}, but {embedder.model} makes vectors of "
                f"{embedder.dimensions}: set EMBEDDING_DIMENSIONS={embedder.dimensions}."
            ]
        )
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


def _parts(
    settings: Settings,
    home: Home,
    database: Database,
    redis: Redis | None,
    embedder: Embedder | None,
    metrics: Metrics,
) -> MemoryParts:
    limits = SearchLimits(exact_search_limit=settings.exact_search_limit)
    vectors = resolve(settings.vector_store, VECTOR_STORES, kind="VECTOR_STORE")
    return MemoryParts(
        storage=MemoryStorage(database),
        vectors=vectors(database, settings.embedding_dimensions, limits),
        working=WorkingMemory(
            redis, ttl_seconds=settings.memory_working_ttl, budget_tokens=settings.memory_working_tokens
        ),
        archive=_archive(settings, home),
        embedder=embedder,
        count_tokens=TokenCounter(cache_of(settings), settings.token_encoding).count,
        accesses=AccessQueue(),
        policy=MemoryPolicy(
            capacities={"episodic": settings.memory_episodic_capacity},
            pruning_strategy=settings.memory_pruning_strategy,
            idempotency_ttl_seconds=settings.idempotency_ttl,
            embedding_dimensions=settings.embedding_dimensions,
            limits=limits,
        ),
        metrics=metrics,
    )


def _archive(settings: Settings, home: Home) -> Archive | None:
    if not settings.memory_archival_enabled:
        return None
    archive: Archive
    if settings.memory_archival_s3_bucket:
        archive = resolve("s3", ARCHIVES, kind="archive")(
            settings.memory_archival_s3_bucket, settings.aws_endpoint_url_s3
        )
    else:
        archive = resolve("directory", ARCHIVES, kind="archive")(home.archive)
    return archive


def _verifier(settings: Settings, home: Home) -> TokenVerifier:
    keys: KeySource
    if settings.jwt_jwks_url is not None:
        keys = JwksKeys(settings.jwt_jwks_url, settings.jwt_algorithm)
    else:
        keys = SharedSecret(signing_secret(settings, home))
    return TokenVerifier(TokenRules(settings.jwt_algorithm, settings.jwt_issuer, settings.jwt_audience), keys)


def signing_secret(settings: Settings, home: Home) -> str:
    """The HS256 secret: the setting, else the home's own, made once. Raises ConfigurationError."""
    if settings.jwt_secret_key is not None:
        return settings.jwt_secret_key.get_secret_value()
    if settings.database_url is not None:
        raise ConfigurationError(
            [
                "JWT_SECRET_KEY is not set, and a service on an external database makes none by "
                "itself: make one with `openssl rand -hex 32`, or set JWT_JWKS_URL."
            ]
        )
    return home.secret("jwt")


def _watch(runtime: Runtime) -> None:
    """Figures that are read when the metrics are."""
    metrics, parts = runtime.metrics, runtime.parts
    metrics.watch(
        "pool",
        "Connection pools, by counter.",
        "counter",
        lambda: {
            f"{pool}_{name}": float(value)
            for pool, counters in runtime.database.statistics().items()
            for name, value in counters.items()
        },
    )
    metrics.watch(
        "queue_length",
        "Work that waits in this process, by queue.",
        "queue",
        lambda: {"accesses": float(len(parts.accesses))},
    )


def _revealed(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()
