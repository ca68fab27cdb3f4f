"""Background work: the leader's periodic rounds and the jobs of derived memories."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Any
from uuid import UUID

from pgvector import HalfVector

from agentcore.database import Connection, Database, Row, query
from agentcore.errors import Conflict, DependencyUnavailable
from agentcore.maintenance.index_keeper import IndexKeeper, partition_state
from agentcore.maintenance.job_queue import JOBS, JobQueue, Work, job
from agentcore.memory.api import Caller
from agentcore.memory.consequences.pending_work import (
    AFTER_COMPACTION,
    AFTER_INACTIVITY,
    EXTRACT_FACTS,
    PRUNE_LAYER,
    QUEUE_PERIODS,
    REFRESH_SUMMARIES,
    RELATE_MESSAGES,
    SUMMARISE_AGAIN,
    SUMMARISE_PERIODS,
    SUMMARISE_SESSION,
    do_each,
)
from agentcore.memory.deriving.consolidating import MIN_AGE, Consolidating
from agentcore.memory.deriving.extracting import Extracting
from agentcore.memory.deriving.period_summaries import PeriodSummarizing
from agentcore.memory.deriving.relating import Relating
from agentcore.memory.deriving.session_summaries import Refreshing, SessionSummarizing
from agentcore.memory.deriving.summary_providers import ModelFailed
from agentcore.memory.embeddings import Embedder, refused_by
from agentcore.memory.encoding import embedding_text
from agentcore.memory.external_vectors import disable_outbox
from agentcore.memory.forgetting.removing import Pruning
from agentcore.memory.models import MemoryType
from agentcore.memory.params.agent_settings import ConsolidateParams
from agentcore.memory.params.memories import PruneParams
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.derived_rows import EMBED_PASSAGES
from agentcore.memory.storage import MemoryStorage, MemoryTransaction
from agentcore.memory.working import WorkingMemory
from agentcore.memory.writing.document_vectors import embed_each, embed_pending_passages
from agentcore.sql_errors import translated_errors
from agentcore.summary_rules import LLM_PROVIDERS, rules_in_force

ROWS_TO_EMBED = 256


async def embed_pending(database: Database, embedder: Embedder) -> int:
    """Embeds the oldest memories without a vector; returns how many.

    A text that the model rejects is marked, so that it does not block later ones. Raises DependencyUnavailable.
    """
    refused = refused_by(embedder.model)
    rows = await database.owner_rows(query("memories_without_vector"), limit=ROWS_TO_EMBED, refused=refused)
    if not rows:
        return 0
    texts = [embedding_text(row["content"], row["speaker"]) for row in rows]
    vectors = await embed_each(embedder, texts, "document")
    values = [
        {
            **row,
            "embedding": None if vector is None else HalfVector(vector),
            "embedding_model": refused if vector is None else embedder.model,
        }
        for row, vector in zip(rows, vectors, strict=True)
    ]
    # Rows are locked in one order by all writers.
    values.sort(key=itemgetter("agent_id", "memory_id"))
    async with database.owner_transaction() as connection:
        await connection.cursor().executemany(query("set_embedding"), values)
    return len(rows)


CONSOLIDATE_EPISODES = "consolidate_episodes"
LEAST_EPISODES = 20


@job
async def consolidate_episodes(work: Work) -> None:
    """Consolidates the agent's new episodes until a deadline; enqueues a job for the rest."""
    async with work.transaction() as transaction:
        wish, _ = await transaction.clusters.settings()
        rules = await transaction.llm.summary_rules()
    if not wish.get("consolidate"):
        return
    params: dict[str, Any] = {}
    days = wish.get("archive_sources_after_days", 0)
    if days and work.parts.archive is not None:
        params = {"archive_sources": True, "archive_sources_after_days": days}
    by_model = rules is not None and rules.provider in LLM_PROVIDERS
    done = await Consolidating(work.parts, work.caller, ConsolidateParams(**params), by_model=by_model).run()
    if not done.complete:
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(CONSOLIDATE_EPISODES)


async def enqueue_consolidations(database: Database, parts: MemoryParts) -> int:
    """Enqueues consolidation for agents that enabled it and have enough new episodes; returns how many."""
    before = parts.clock() - MIN_AGE
    rows = await database.owner_rows(query("agents_to_consolidate"), before=before, least=LEAST_EPISODES)
    for row in rows:
        async with parts.storage.transaction(row["agent_id"]) as transaction:
            await transaction.jobs.enqueue(CONSOLIDATE_EPISODES)
    return len(rows)


BUSY_SECONDS = 5.0


@job
async def prune_layer(work: Work, layer: str) -> None:
    """Prunes to the layer's capacity, by the service's strategy."""
    params, wait_seconds = PruneParams(memory_layer=MemoryType(layer)), 0.0
    try:
        removed = await Pruning(work.parts, work.caller, params, capacity_only=True).run()
        complete = removed.complete
    except Conflict:
        # Another call is pruning the layer, and perhaps not to its capacity.
        complete, wait_seconds = False, BUSY_SECONDS
    if not complete:
        not_before = work.parts.clock() + timedelta(seconds=wait_seconds)
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(PRUNE_LAYER, layer=layer, not_before=not_before)


async def enqueue_missed(database: Database, parts: MemoryParts) -> int:
    """Enqueues pruning for every layer above its capacity; returns how many.

    A store does not see concurrent stores to one layer, nor a capacity set later.
    """
    capacities = parts.capacities
    limits = [capacities.get(layer, 0) for layer in MemoryType]
    rows = await database.owner_rows(query("agents_over_capacity"), layers=[*MemoryType], capacities=limits)
    for row in rows:
        async with parts.storage.transaction(row["agent_id"]) as transaction:
            await transaction.jobs.enqueue(PRUNE_LAYER, layer=row["layer"])
    return len(rows)


AGENTS_A_TURN = 500
DELTAS_A_FOLD = 1_000


async def fold_deltas(database: Database) -> int:
    """Folds lexical deltas into document frequencies; returns how many. Agents take turns."""
    folded = 0
    while True:
        agents = await database.owner_rows(query("agents_with_deltas"), limit=AGENTS_A_TURN)
        counts = [await _fold(database, row["agent_id"]) for row in agents]
        folded += sum(counts)
        # Zero folded: another process has locked the remaining deltas.
        waiting = len(agents) == AGENTS_A_TURN or DELTAS_A_FOLD in counts
        if not waiting or sum(counts) == 0:
            return folded


# In this order. Citus permits no INSERT inside WITH.
FOLDING = (
    "fold_lexical_totals",
    "fold_lexical_terms",
    "forget_empty_terms",
    "forget_lexical_deltas",
    "forget_empty_totals",
)


async def _fold(database: Database, agent_id: str) -> int:
    async with database.owner_transaction() as connection:
        cursor = await connection.execute(query("lock_lexical_deltas"), {"agent_id": agent_id, "limit": DELTAS_A_FOLD})
        delta_ids = [row["delta_id"] for row in await cursor.fetchall()]
        if delta_ids:
            for name in FOLDING:
                await connection.execute(query(name), {"agent_id": agent_id, "delta_ids": delta_ids})
    return len(delta_ids)


ROWS_TO_EXPIRE = 1_000
GRACE_SECONDS = 60


async def sweep_expired(database: Database, storage: MemoryStorage, working: WorkingMemory) -> int:
    """Deletes expired memories, one transaction per agent; returns how many."""
    async with database.owner_transaction() as connection:
        await connection.execute(query("sweep_idempotency_keys"))
        await connection.execute(query("sweep_redis_instances"))
        cursor = await connection.execute(
            query("expired_memories"), {"limit": ROWS_TO_EXPIRE, "grace_seconds": GRACE_SECONDS}
        )
        rows = await cursor.fetchall()
    swept = 0
    for agent_id, expired in groupby(rows, key=itemgetter("agent_id")):
        async with storage.transaction(agent_id) as transaction:
            gone = await transaction.delete_expired([row["memory_id"] for row in expired])
        await working.forget(agent_id, sorted({row["task_id"] for row in gone if row["task_id"] is not None}))
        swept += len(gone)
    return swept


LOCK_KEY = 5_520_981_347_702_114_403


@asynccontextmanager
async def leadership(database: Database) -> AsyncIterator[Connection | None]:
    """Yields None if another process leads; leadership ends with the connection."""
    async with database.owner_autocommit() as connection:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s) AS leads", (LOCK_KEY,))
        row = await cursor.fetchone()
        yield connection if row and row["leads"] else None


logger = logging.getLogger(__name__)
RETRY_LEAD_SECONDS = 5.0
# For duties that are not urgent.
SELDOM_SECONDS = 600.0
SIZES_SECONDS = 60.0


class Maintenance:
    """A failed duty is retried in the next round and does not stop others."""

    def __init__(self, database: Database, parts: MemoryParts, queue: JobQueue, interval_seconds: float) -> None:
        self._database = database
        self._parts = parts
        self._queue = queue
        self._interval_seconds = interval_seconds
        self._stopping = asyncio.Event()
        self.waiting: dict[str, float] = {}
        """Pending work by queue; empty if another process leads, as are all below. `jobs`: by state."""
        self.jobs: dict[str, float] = {}
        self.table_bytes: dict[str, float] = {}
        """Of the largest tables with their indexes; partitions count to their table."""
        self.index_recall: dict[str, float] = {}
        """By index; indexes that were not measured are left out."""
        self._seldom_at = 0.0
        self._failing: dict[str, str] = {}

    def adopt(self, parts: MemoryParts) -> None:
        """Applies from the next duty on."""
        self._parts = parts

    def stop(self) -> None:
        self._stopping.set()

    async def flush_accesses(self) -> None:
        """Counts the accesses of this process, until stopped; every process runs it."""
        while not self._stopping.is_set():
            await self._pause(min(1.0, self._interval_seconds))
            await self._attempt("count accesses", self._count_accesses)

    async def _count_accesses(self) -> int:
        parts = self._parts
        return await parts.accesses.flush(parts.storage, parts.extend_after_uses)

    async def lead(self) -> None:
        """Retries until it leads, then runs every duty in turn, until stopped."""
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
                    loops.create_task(self._repeat(lead, self.drain_outbox))
                    loops.create_task(self._repeat(lead, self.read_sizes, SIZES_SECONDS))
            except* DependencyUnavailable as lost:
                raise DependencyUnavailable("The lead is lost.") from lost
            finally:
                self.waiting, self.jobs, self.table_bytes, self.index_recall = {}, {}, {}, {}

    async def _repeat(self, lead: Connection, duty: Callable[[], Awaitable[object]], least_seconds: float = 0) -> None:
        while not self._stopping.is_set():
            with translated_errors():
                await lead.execute("SELECT 1")
            await duty()
            await self._pause(max(self._interval_seconds, least_seconds))

    async def round(self) -> dict[str, int]:
        """Runs every short duty once; returns counts, without duties that failed."""
        parts, done = self._parts, {}
        duties: dict[str, Callable[[], Awaitable[int]]] = {
            "fold": lambda: fold_deltas(self._database),
            "expire": lambda: sweep_expired(self._database, parts.storage, parts.working),
            "revive jobs": self._queue.revive,
        }
        if parts.embedder is not None:
            embedder = parts.embedder
            duties["embed"] = lambda: embed_pending(self._database, embedder)
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
        refused = refused_by(self._parts.vector_model)
        [row] = await self._database.owner_rows(query("waiting_work"), refused=refused)
        unused = "embeddings" if self._parts.embedder is None else None
        self.waiting = {queue: float(length) for queue, length in row.items() if queue != unused}
        self.jobs = {state: float(count) for state, count in (await self._queue.counts()).items()}

    async def read_sizes(self) -> None:
        """Reads the sizes of tables and the recall of indexes, for the metrics."""
        await self._attempt("read sizes", self._read_sizes)

    async def _read_sizes(self) -> None:
        tables = await self._database.owner_rows(query("table_sizes"))
        partitions = await self._database.owner_rows(query("partition_sizes"))
        if any(row["is_distributed"] for row in partitions):
            tables += await self._database.owner_rows(query("distributed_table_sizes"))
        # The distributed ones come last: the coordinator's own tables of these names are empty.
        sizes = {row["name"]: row["bytes"] for row in tables}
        self.table_bytes = {name: float(size) for name, size in sizes.items() if size is not None}
        states = [partition_state(row) for row in partitions]
        indexes = [index for state in states for index in state.indexes]
        self.index_recall = {index.name: index.recall for index in indexes if index.recall is not None}

    async def drain_outbox(self) -> int | None:
        """Applies the outbox to the external vector store; without one, disables the outbox."""
        return await self._attempt("drain vector outbox", self._drain_outbox)

    async def _drain_outbox(self) -> int:
        external = self._parts.vectors.external
        if external is None:
            await disable_outbox(self._database)
            return 0
        await external.enable_outbox()
        return await external.drain()

    async def keep_indexes(self) -> None:
        """Runs the index keeper; skipped while vectors are migrating: the migrating process builds the index."""
        if self._parts.vectors_moving:
            return
        policy = self._parts.policy
        keeper = IndexKeeper(
            self._database,
            self._parts.vector_model,
            policy.embedding_dimensions,
            policy.indexes,
            exact_search_limit=policy.limits.exact_search_limit,
            passages_alone=self._parts.vectors.external is not None,
        )
        if await self._attempt("index", keeper.round):
            await self.read_sizes()

    async def _attempt(self, name: str, duty: Callable[[], Awaitable[int | None]]) -> int | None:
        try:
            done = await duty()
        except DependencyUnavailable as failure:
            if self._failing.get(name) != failure.message:  # one line per change
                logger.warning("maintenance: %s waits: %s", name, failure.message)
            self._failing[name] = failure.message
            return None
        except Exception:  # one duty's defect must not end the others: it is logged and retried
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


# Retention of daily usage.
KEPT_DAYS = 90
# Memories stay pending this long after their summary rules were removed: the rules may be restored.
RULES_MISSED_FOR = timedelta(days=1)
# Limits of one job, so that other jobs get their turn.
SESSIONS_A_JOB, MEMORIES_A_PAGE = 20, 2_000
_JOBS = {
    "facts": EXTRACT_FACTS,
    "summary": SUMMARISE_AGAIN,
    "refresh": REFRESH_SUMMARIES,
    "period": SUMMARISE_PERIODS,
    "relations": RELATE_MESSAGES,
    "passages": EMBED_PASSAGES,
}


# Each call returns whether more is pending; the number limits the batches of one job.
_BATCH_WORK: dict[str, tuple[Callable[[MemoryParts, Caller], Awaitable[bool]], int]] = {
    EXTRACT_FACTS: (lambda parts, caller: Extracting(parts, caller).run(), 1),
    REFRESH_SUMMARIES: (lambda parts, caller: Refreshing(parts, caller).run(), 1),
    SUMMARISE_PERIODS: (lambda parts, caller: PeriodSummarizing(parts, caller).run(), 1),
    RELATE_MESSAGES: (lambda parts, caller: Relating(parts, caller).run(), 20),
    EMBED_PASSAGES: (embed_pending_passages, 1),
}


async def _run_batches(name: str, work: Work) -> None:
    run, most = _BATCH_WORK[name]
    for _ in range(most):
        if not await run(work.parts, work.caller):
            return
    async with work.transaction() as transaction:
        await transaction.jobs.enqueue(name)


JOBS.update({name: partial(_run_batches, name) for name in _BATCH_WORK})


@job
async def summarise_session(work: Work, session_id: str, after: str = "") -> None:
    """After inactivity only if no message has arrived since."""
    if after == AFTER_INACTIVITY and not await _is_quiet(work, session_id):
        return
    only_compacted = after == AFTER_COMPACTION
    await _summarise(work, session_id, only_compacted=only_compacted)


async def _summarise(work: Work, session_id: str, *, only_compacted: bool = False, only_again: bool = False) -> None:
    summarizing = SessionSummarizing(
        work.parts, work.caller, session_id, only_compacted=only_compacted, only_again=only_again
    )
    try:
        await summarizing.run()
    except ModelFailed as failure:
        async with work.transaction() as transaction:
            await transaction.llm.record_failure("summary", failure.memory_ids)
        raise


@job
async def summarise_again(work: Work) -> None:
    """Summarizes messages whose summary was deleted."""
    async with work.transaction() as transaction:
        has_rules = await transaction.llm.summary_rules() is not None
        waiting = await transaction.summaries.pending_again() if has_rules else []
    session_ids = [row["session_id"] for row in waiting if row["work"] == "summary"]
    await do_each(session_ids[:SESSIONS_A_JOB], partial(_summarise, work, only_again=True))
    if len(session_ids) > SESSIONS_A_JOB:
        async with work.transaction() as transaction:
            await transaction.jobs.enqueue(SUMMARISE_AGAIN)


@job
async def queue_periods(work: Work, after: str = "") -> None:
    """Enqueues a page of session summaries for their periods."""
    async with work.transaction() as transaction:
        behind = UUID(after) if after else None
        queued, last_id = await transaction.summaries.enqueue_page_for_period(behind, MEMORIES_A_PAGE)
        if queued:
            await transaction.jobs.enqueue(SUMMARISE_PERIODS)
        if last_id is not None:
            await transaction.jobs.enqueue(QUEUE_PERIODS, after=last_id)


async def _is_quiet(work: Work, session_id: str) -> bool:
    """Returns whether the session was inactive for long enough; if not, enqueues the job for that time."""
    async with work.transaction() as transaction:
        rules = await transaction.llm.summary_rules()
        waiting = await transaction.llm.count_pending([session_id])
        if rules is None or not waiting:
            return False
        quiet_at = waiting[0]["latest_at"] + timedelta(seconds=rules.inactivity_seconds)
        if quiet_at <= work.parts.clock():
            return True
        await transaction.jobs.enqueue(
            SUMMARISE_SESSION, session_id=session_id, after=AFTER_INACTIVITY, not_before=quiet_at
        )
    return False


async def enqueue_llm_work(database: Database, parts: MemoryParts) -> int:
    """Enqueues jobs for pending work that is due; returns the number of entries.

    A store does not see concurrent stores to one session, rules changed later, and jobs that were cancelled or
    failed for good. Memories pending for a summary without rules are dequeued: the end of their session
    summarizes them.
    """
    rows = await database.owner_rows(query("llm_work_of_agents"))
    count = 0
    for agent_id, waiting in groupby(rows, key=itemgetter("agent_id")):
        of_agent = [*waiting]
        due = [row for row in of_agent if _is_due(row, parts)]
        missed = _misses_rules(of_agent, parts)
        if due or missed:
            async with parts.storage.transaction(agent_id) as transaction:
                if missed and await transaction.llm.summary_rules() is None:
                    await transaction.llm.dequeue_session_messages()
                for row in due:
                    await _enqueue(transaction, row)
        count += len(due)
    return count


def _misses_rules(rows: Sequence[Row], parts: MemoryParts) -> bool:
    times = [row["latest_at"] for row in rows if row["work"] == "summary"]
    if not times or rules_in_force(rows[0]["summaries"], parts.storage.service_rules) is not None:
        return False
    return bool(parts.clock() - max(times) >= RULES_MISSED_FOR)


async def _enqueue(transaction: MemoryTransaction, row: Row) -> None:
    if row["work"] == "summary" and not row["again"]:
        await transaction.jobs.enqueue(SUMMARISE_SESSION, session_id=row["session_id"])
    else:
        await transaction.jobs.enqueue(_JOBS[row["work"]])


def _is_due(row: Row, parts: MemoryParts) -> bool:
    needed = {"facts": parts.extractor, "relations": parts.relations, "passages": parts.embedder}
    if row["work"] in ("refresh", "period"):
        return True
    if row["work"] in needed:
        return needed[row["work"]] is not None
    rules = rules_in_force(row["summaries"], parts.storage.service_rules)
    if rules is None:
        return False
    if row["again"]:
        return True
    if rules.trigger == "inactivity":
        return bool(row["latest_at"] + timedelta(seconds=rules.inactivity_seconds) <= parts.clock())
    return rules.is_due(messages=row["messages"], user_turns=row["user_turns"])


async def sweep_llm_usage(database: Database) -> int:
    """Deletes daily usage older than KEPT_DAYS; returns how many rows."""
    return len(await database.owner_rows(query("sweep_llm_usage"), days=KEPT_DAYS))
