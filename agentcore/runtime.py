"""The composition root: creates the parts from the settings, opens them in order, closes them in reverse."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from prometheus_client.core import CounterMetricFamily
from redis.asyncio import Redis

from agentcore import assembly, migration, readiness
from agentcore.auth import TokenVerifier
from agentcore.call_queue import CallQueue
from agentcore.circuit_breaker import CircuitBreaker
from agentcore.config import Settings, revealed
from agentcore.database import Database
from agentcore.embedded import EmbeddedParts, Home, attach, default_home, runs_on, service_url_of
from agentcore.errors import ConfigurationError, DependencyUnavailable, StartupError
from agentcore.maintenance.job_queue import JobQueue, JobWorker
from agentcore.maintenance.rounds import Maintenance
from agentcore.memory.api import Caller, MemoryApi
from agentcore.memory.embedding_cache import CachingEmbedder
from agentcore.memory.embeddings import BatchingEmbedder, Embedder
from agentcore.memory.manager import MemoryManager
from agentcore.memory.parts import MemoryParts
from agentcore.memory.query_samples import query_samples
from agentcore.memory.rows.vector_rows import KnownModel, model_in_force
from agentcore.model_watch import ModelWatch, restart_sentence, settings_in_force
from agentcore.readiness import WatchedEmbedder
from agentcore.replication import LastWriteLsns
from agentcore.telemetry import Metrics

logger = logging.getLogger(__name__)
Log = Callable[[str], None]
# Share of the grace time; the rest is for enqueueing aborted jobs again.
JOBS_GRACE_SHARE = 0.8


@dataclass
class Runtime:
    """The running service without HTTP."""

    settings: Settings
    home: Home
    database: Database
    redis: Redis | None
    parts: MemoryParts
    base_embedder: WatchedEmbedder | None
    verifier: TokenVerifier
    metrics: Metrics
    calls: CallQueue
    maintenance: Maintenance
    jobs: JobWorker

    def manager_for(self, caller: Caller) -> MemoryManager:
        return MemoryManager(self.parts, caller)

    def adopt(self, parts: MemoryParts, base_embedder: WatchedEmbedder | None) -> None:
        """Calls and background tasks that start from now on use these parts; None keeps the embedder."""
        self.parts = parts
        self.base_embedder = base_embedder or self.base_embedder
        self.maintenance.adopt(parts)
        self.jobs.adopt(parts)

    async def readiness(self) -> dict[str, dict[str, Any]]:
        return await readiness.states(self.database, self.parts, self.base_embedder, self.circuits)

    @property
    def circuits(self) -> list[CircuitBreaker]:
        parts = self.parts
        found = (
            self.redis,
            self.base_embedder,
            parts.archive,
            parts.reranker,
            parts.rewriter,
            parts.fact_judge,
            parts.vectors.external,
        )
        circuits = (getattr(each, "circuit", None) for each in found)
        return [*self.database.circuits, *(each for each in circuits if each is not None)]


def home_of(settings: Settings) -> Home:
    return Home(settings.agentcore_home or default_home())


def can_attach(settings: Settings) -> bool:
    """Returns whether a running server already provides the parts that have no URL."""
    has_both_urls = settings.database_url is not None and settings.redis_url is not None
    return not has_both_urls and runs_on(home_of(settings))


def database_url_of(settings: Settings) -> str:
    """Returns the URL of the settings, else of the server that runs on this home. Raises StartupError."""
    database_url = revealed(settings.database_url) or attach(home_of(settings)).database_url
    if database_url is None:
        raise StartupError("No DATABASE_URL is set and no embedded PostgreSQL runs here.")
    return database_url


def urls_of(settings: Settings) -> tuple[str, str | None]:
    """Returns the PostgreSQL and Redis URLs. Raises StartupError."""
    return database_url_of(settings), revealed(settings.redis_url) or attach(home_of(settings)).redis_url


@asynccontextmanager
async def running_database(settings: Settings) -> AsyncIterator[Database]:
    """Opens the database for commands outside the service. Raises StartupError."""
    database_url = database_url_of(settings)
    await asyncio.to_thread(migration.check_revision, database_url)
    database = Database(database_url, pool_size=1, timeout_seconds=settings.database_timeout_seconds)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def open_runtime(
    settings: Settings, *, log: Log = logger.info, migrate: bool = False, attach_only: bool = False
) -> AsyncIterator[Runtime]:
    """Starts embedded parts that have no URL; with `attach_only`, uses those of a running server.

    An embedded database is always migrated, another only with `migrate`. Raises ConfigurationError and StartupError.
    """
    assembly.check_choices(settings)
    async with AsyncExitStack() as stack:
        home = home_of(settings)
        database_url, redis_url = await _start_parts(settings, home, stack, log, attach_only)
        embedded = settings.database_url is None and not attach_only
        await asyncio.to_thread(migration.upgrade if migrate or embedded else migration.check_revision, database_url)
        metrics = Metrics()
        redis = assembly.make_redis(redis_url, settings)
        if redis is not None:
            stack.push_async_callback(redis.aclose)
        database = await _open_database(settings, home, database_url, stack, attach_only, redis)
        current_model = await model_in_force(database)
        effective_settings = settings_in_force(settings, current_model)

        async def open_embedder(made: WatchedEmbedder | None, wanted: Settings) -> Embedder | None:
            return await _open_embedder(made, redis, metrics, wanted, stack)

        base_embedder, embedder = await _embedder_at_start(settings, effective_settings, current_model, open_embedder)
        await readiness.check_dimensions(
            database, embedder, effective_settings.embedding_dimensions, in_force=current_model is not None
        )
        queue = JobQueue(database)
        parts = assembly.make_parts(
            effective_settings,
            home,
            database,
            redis,
            embedder,
            metrics,
            queue,
            in_force=current_model,
            samples=await query_samples(embedder, assembly.cache_of(settings)),
        )
        if parts.vectors.external is not None:
            stack.push_async_callback(parts.vectors.external.close)
        await _open_models(parts, stack)
        archive_status = await readiness.archive_state(database, parts.archive)
        if not archive_status["ok"]:
            logger.warning("archive: %s", archive_status["problem"])
        # Load the tokenizer tables before the first request.
        await asyncio.to_thread(parts.count_tokens, "text")
        jobs = JobWorker(database, queue, parts, grace_seconds=settings.shutdown_grace_seconds * JOBS_GRACE_SHARE)
        await queue.open()
        maintenance = Maintenance(database, parts, queue, settings.maintenance_interval_seconds)
        runtime = Runtime(
            settings=settings,
            home=home,
            database=database,
            redis=redis,
            parts=parts,
            base_embedder=base_embedder,
            verifier=assembly.make_verifier(settings, home),
            metrics=metrics,
            calls=CallQueue(settings.max_running_calls, settings.max_queue_seconds),
            maintenance=maintenance,
            jobs=jobs,
        )
        _register_metrics(runtime)
        stack.push_async_callback(_count_last_accesses, parts)
        watch = ModelWatch(settings, database, lambda: runtime.parts, open_embedder, runtime.adopt, current_model)
        await _run_in_background(stack, runtime, watch)
        yield runtime


async def _open_models(parts: MemoryParts, stack: AsyncExitStack) -> None:
    if parts.relations is not None:
        stack.callback(parts.relations.close)
    for model in (parts.reranker, parts.rewriter, parts.fact_judge, parts.extractor, parts.summariser):
        if model is not None:
            await model.open()
            stack.push_async_callback(model.close)


async def _start_parts(
    settings: Settings, home: Home, stack: AsyncExitStack, log: Log, attach_only: bool
) -> tuple[str, str | None]:
    if attach_only:
        return urls_of(settings)
    parts = EmbeddedParts(home, postgres=settings.database_url is None, redis=settings.redis_url is None, log=log)
    await stack.enter_async_context(parts)
    stack.push_async_callback(_cancel, start_task(parts.supervise()))
    database_url = revealed(settings.database_url) or parts.urls.database_url
    if database_url is None:
        raise StartupError("The embedded PostgreSQL has no URL.")
    return database_url, revealed(settings.redis_url) or parts.urls.redis_url


async def _open_database(
    settings: Settings, home: Home, database_url: str, stack: AsyncExitStack, attach_only: bool, redis: Redis | None
) -> Database:
    database = Database(
        database_url,
        read_url=revealed(settings.database_read_url),
        service_url=_service_url(settings, home, database_url),
        pool_size=settings.database_pool_size,
        timeout_seconds=settings.database_timeout_seconds,
        gone_reason=_gone_reason(home) if attach_only and settings.database_url is None else lambda: None,
        last_writes=LastWriteLsns(redis),
    )
    await database.open()
    stack.push_async_callback(database.close)
    await readiness.check_server(database)
    return database


def _service_url(settings: Settings, home: Home, database_url: str) -> str | None:
    if settings.database_url is None:
        return service_url_of(home, database_url)
    return revealed(settings.database_service_url)


def _gone_reason(home: Home) -> Callable[[], str | None]:
    def reason() -> str | None:
        with suppress(StartupError):
            if not runs_on(home):
                return (
                    f"The process that ran PostgreSQL and Redis for {home.path} has ended. "
                    "Open the memory again to start them, or keep `agentcore serve` running."
                )
        return None

    return reason


def start_task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Starts a background task; logs an unexpected exception that ends it."""
    task = asyncio.create_task(work)
    task.add_done_callback(_log_failure)
    return task


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (failure := task.exception()) is not None:
        logger.error("a background task failed: restart the service", exc_info=failure)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def _count_last_accesses(parts: MemoryParts) -> None:
    try:
        await parts.accesses.flush(parts.storage, parts.extend_after_uses)
    except DependencyUnavailable:
        logger.warning("could not write the last access counts: PostgreSQL does not respond")


async def _embedder_at_start(
    settings: Settings,
    effective_settings: Settings,
    current_model: KnownModel | None,
    open_embedder: Callable[[WatchedEmbedder | None, Settings], Awaitable[Embedder | None]],
) -> tuple[WatchedEmbedder | None, Embedder | None]:
    try:
        base_embedder = assembly.make_embedder(effective_settings)
        embedder = await open_embedder(base_embedder, effective_settings)
    except (ConfigurationError, StartupError) as failure:
        if current_model is None:
            raise
        raise ConfigurationError([restart_sentence(current_model), failure.message]) from failure
    wanted = assembly.make_embedder(settings)
    if current_model is not None and wanted is not None and wanted.model != current_model.model:
        asked = KnownModel(
            wanted.model,
            settings.embedding_model,
            settings.embedding_model_name,
            settings.embedding_dimensions,
            "filling",
        )
        logger.warning(
            "EMBEDDING_MODEL selects %s, but the stored vectors are from %s, which stays in use. "
            "Set %s, or re-embed with: agentcore reembed %s",
            wanted.model,
            current_model.model,
            current_model.sentence(),
            asked.arguments(),
        )
    return base_embedder, embedder


async def _run_in_background(stack: AsyncExitStack, runtime: Runtime, watch: ModelWatch) -> None:
    duties = [runtime.maintenance.flush_accesses(), watch.run()]
    if runtime.settings.maintenance_in_server:
        duties += [runtime.maintenance.lead(), runtime.jobs.run()]
    tasks = [start_task(duty) for duty in duties]

    async def end() -> None:
        watch.stop()
        runtime.maintenance.stop()
        runtime.jobs.stop()
        _, late = await asyncio.wait(tasks, timeout=runtime.settings.shutdown_grace_seconds)
        for task in late:  # such as an index build, which is repeated later
            await _cancel(task)

    stack.push_async_callback(end)


async def _open_embedder(
    base_embedder: WatchedEmbedder | None,
    redis: Redis | None,
    metrics: Metrics,
    settings: Settings,
    stack: AsyncExitStack,
) -> Embedder | None:
    if base_embedder is None:
        return None
    # A query of the local model is not looked up in Redis: two commands cost about a third of embedding it.
    shared = None if settings.embedding_model == "local" else redis
    embedder = CachingEmbedder(
        BatchingEmbedder(base_embedder), redis=shared, max_entries=settings.embedding_cache_entries, metrics=metrics
    )
    await embedder.open()
    stack.push_async_callback(embedder.close)
    return embedder


def _register_metrics(runtime: Runtime) -> None:
    metrics, accesses = runtime.metrics, runtime.parts.accesses
    metrics.register_metric(
        "pool",
        "Connection pools, by counter.",
        "counter",
        lambda: {
            f"{pool}_{name}": float(value)
            for pool, counters in runtime.database.statistics().items()
            for name, value in counters.items()
        },
    )
    metrics.register_metric(
        "circuit_open",
        "1 while the circuit of a dependency is open.",
        "dependency",
        lambda: {each.dependency: float(each.is_open) for each in runtime.circuits},
    )
    metrics.register_metric(
        "circuit_openings",
        "How often the circuit of a dependency opened.",
        "dependency",
        lambda: {each.dependency: float(each.openings) for each in runtime.circuits},
        CounterMetricFamily,
    )
    metrics.register_metric(
        "replica_fallbacks",
        "Reads of the replica that the primary answered: the replica was unreachable or behind the agent's last write, "
        "replay canceled the query, or Redis did not reply.",
        "reason",
        lambda: {reason: float(count) for reason, count in runtime.database.fallbacks.items()},
        CounterMetricFamily,
    )
    metrics.register_metric(
        "queue_length",
        "Pending work by queue: in this process, and in the database if this process leads.",
        "queue",
        lambda: {"calls": float(len(runtime.calls)), "accesses": float(len(accesses)), **runtime.maintenance.waiting},
    )
    metrics.register_metric(
        "table_bytes",
        "Size of tables with their indexes, if this process leads.",
        "table",
        lambda: runtime.maintenance.table_bytes,
    )
    metrics.register_metric(
        "index_recall",
        "Measured share of the exact 50 nearest that an index finds, if this process leads.",
        "index",
        lambda: runtime.maintenance.index_recall,
    )
    metrics.register_metric(
        "jobs", "Background jobs by state, if this process leads.", "state", lambda: runtime.maintenance.jobs
    )


@asynccontextmanager
async def memory_in_process(agent_id: str, settings: Settings) -> AsyncIterator[MemoryApi]:
    """Opens the agent's memory, with PostgreSQL and Redis of its own or of a running service."""
    attached = can_attach(settings)
    if attached:  # that server does the background work
        settings = settings.model_copy(update={"maintenance_in_server": False})
    async with open_runtime(settings, attach_only=attached) as runtime:
        yield runtime.manager_for(Caller(agent_id))
