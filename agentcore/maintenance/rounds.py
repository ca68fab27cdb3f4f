"""The rounds of background work: every process flushes its own accesses, the leader does the rest."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from agentcore.database import Database, query
from agentcore.errors import DependencyUnavailable
from agentcore.maintenance.consolidation import enqueue_consolidations
from agentcore.maintenance.expiry import sweep_expired
from agentcore.maintenance.folding import fold_deltas
from agentcore.maintenance.index_keeper import IndexKeeper
from agentcore.maintenance.job_queue import JobQueue
from agentcore.maintenance.leader import Lead, leadership
from agentcore.maintenance.llm_work import enqueue_llm_work, sweep_llm_usage
from agentcore.maintenance.pruning import enqueue_missed
from agentcore.maintenance.reembed import embed_waiting
from agentcore.memory.embeddings import refused_by
from agentcore.memory.parts import MemoryParts

logger = logging.getLogger(__name__)
RETRY_LEAD_SECONDS = 5.0
# What is enqueued where it arises anyway, and what can wait: not in every round.
SELDOM_SECONDS = 600.0


class Maintenance:
    """Runs until `stop`; a duty that fails is tried again in the next round, the others go on."""

    def __init__(
        self, database: Database, parts: MemoryParts, queue: JobQueue, interval_seconds: float
    ) -> None:
        self._database = database
        self._parts = parts
        self._queue = queue
        self._interval_seconds = interval_seconds
        self._stopping = asyncio.Event()
        self.waiting: dict[str, float] = {}
        """How much waited for the leader when its last round ended, by queue; empty where another leads."""
        self.jobs: dict[str, float] = {}
        """How many jobs were in which state then, all agents together."""
        self._seldom_at = 0.0
        self._failing: dict[str, str] = {}

    def adopt(self, parts: MemoryParts) -> None:
        """Work with these parts from the next duty on."""
        self._parts = parts

    def stop(self) -> None:
        """End after the running duty."""
        self._stopping.set()

    async def flush_accesses(self) -> None:
        """Count what this process gave out, until stopped."""
        while not self._stopping.is_set():
            await self._pause(min(1.0, self._interval_seconds))
            await self._attempt("count accesses", self._count_accesses)

    async def _count_accesses(self) -> int:
        parts = self._parts
        return await parts.accesses.flush(parts.storage, parts.extend_after_uses)

    async def lead(self) -> None:
        """Wait to lead, then do every duty in turn, until stopped."""
        while not self._stopping.is_set():
            await self._attempt("lead", self._lead_rounds)
            await self._pause(RETRY_LEAD_SECONDS)

    async def _lead_rounds(self) -> None:
        async with leadership(self._database) as lead:
            if lead is None:
                return
            try:
                async with asyncio.TaskGroup() as loops:
                    loops.create_task(self._repeat(lead, self.round))
                    loops.create_task(self._repeat(lead, self.keep_indexes))
            except* DependencyUnavailable as lost:
                raise DependencyUnavailable("The lead is lost.") from lost
            finally:
                self.waiting, self.jobs = {}, {}

    async def _repeat(self, lead: Lead, duty: Callable[[], Awaitable[object]]) -> None:
        while not self._stopping.is_set():
            await lead.confirm()
            await duty()
            await self._pause(self._interval_seconds)

    async def round(self) -> dict[str, int]:
        """Every short duty once; how much each had to do (a failed one is missing)."""
        parts, done = self._parts, {}
        duties: dict[str, Callable[[], Awaitable[int]]] = {
            "fold": lambda: fold_deltas(self._database),
            "expire": lambda: sweep_expired(self._database, parts.storage, parts.working),
            "revive jobs": self._queue.revive,
        }
        if parts.embedder is not None:
            embedder = parts.embedder
            duties["embed"] = lambda: embed_waiting(self._database, embedder)
        now = asyncio.get_running_loop().time()
        if now >= self._seldom_at:
            self._seldom_at = now + SELDOM_SECONDS
            duties["prune"] = lambda: enqueue_missed(self._database, parts)
            duties["consolidate"] = lambda: enqueue_consolidations(self._database, parts)
            duties["ask models"] = lambda: enqueue_llm_work(self._database, parts)
            duties["sweep accounts"] = lambda: sweep_llm_usage(self._database)
            duties["sweep jobs"] = self._queue.sweep
        for name, duty in duties.items():
            count = await self._attempt(name, duty)
            if count is not None:
                done[name] = count
        await self._attempt("count what waits", self._count_waiting)
        return done

    async def _count_waiting(self) -> None:
        refused = {"refused": refused_by(self._parts.vector_model)}
        async with self._database.owner_transaction() as connection:
            row = await (await connection.execute(query("waiting_work"), refused)).fetchone() or {}
        if self._parts.embedder is None:
            row.pop("embeddings", None)
        self.waiting = {queue: float(length) for queue, length in row.items()}
        self.jobs = {state: float(count) for state, count in (await self._queue.counts()).items()}

    async def keep_indexes(self) -> None:
        """The index keeper's round: it may take minutes, so it stands apart from the short duties.

        While vectors move none is made: who moves them makes it over all of them at the end.
        """
        if self._parts.vectors_moving:
            return
        policy = self._parts.policy
        keeper = IndexKeeper(
            self._database,
            self._parts.vector_model,
            policy.embedding_dimensions,
            policy.indexes,
            exact_search_limit=policy.limits.exact_search_limit,
        )
        await self._attempt("index", keeper.round)

    async def _attempt(self, name: str, duty: Callable[[], Awaitable[int | None]]) -> int | None:
        try:
            done = await duty()
        except DependencyUnavailable as failure:
            if self._failing.get(name) != failure.message:  # one line for each change
                logger.warning("maintenance: %s waits: %s", name, failure.message)
            self._failing[name] = failure.message
            return None
        except Exception:  # one duty's defect must not end the others; it is logged and tried again
            logger.exception("maintenance: %s failed", name)
            return None
        if self._failing.pop(name, None) is not None:
            logger.info("maintenance: %s goes on", name)
        return done

    async def _pause(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stopping.wait(), seconds)
        except TimeoutError:
            return
