"""Background jobs: registry, procrastinate's queue on our connections, and the worker."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, cast

import psycopg
import stamina
from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.exceptions import ConnectorException, JobAborted, ProcrastinateException, UniqueViolation
from procrastinate.job_context import AbortReason
from procrastinate.jobs import DeleteJobCondition, Status
from procrastinate.jobs import Job as QueuedJob
from procrastinate.manager import JobManager
from procrastinate.worker import Worker

from agentcore.database import Database, Row, query
from agentcore.errors import AgentCoreError, Conflict, DependencyUnavailable, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.params.jobs import JobState
from agentcore.memory.parts import MemoryParts
from agentcore.memory.storage import MemoryTransaction
from agentcore.telemetry import describe_failure

MAX_ATTEMPTS = 20
STALLED_SECONDS, PATIENCE_SECONDS = 30.0, 5.0
# Retention of cancelled jobs, and of failed jobs, which an operator has to look at.
KEPT_HOURS, FAILED_KEPT_HOURS = 24, 30 * 24


class LenientManager(JobManager):
    """Tolerates jobs that were deleted or enqueued twice."""

    def __init__(self, connector: PsycopgConnector, database: Database) -> None:
        super().__init__(connector)
        self._database = database

    async def update_heartbeat(self, worker_id: int) -> None:
        """Updates a worker's heartbeat; after a connection error, the next call does."""
        try:
            await super().update_heartbeat(worker_id)
        except ConnectorException:
            # The error would end the heartbeat loop unnoticed: the worker would run on, and count as dead.
            return

    async def finish_job_by_id_async(self, job_id: int, status: Status, delete_job: bool) -> None:
        """Ends a job; no error if it was deleted while it ran."""
        async for attempt in stamina.retry_context(on=_may_pass, wait_max=PATIENCE_SECONDS):
            with attempt, _unless_gone():
                await super().finish_job_by_id_async(job_id, status, delete_job)

    async def retry_job_by_id_async(
        self,
        job_id: int,
        retry_at: datetime,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """Enqueues a job again, unless the same work is pending already."""
        async for attempt in stamina.retry_context(on=_may_pass, wait_max=PATIENCE_SECONDS):
            with attempt, _unless_gone():
                try:
                    await super().retry_job_by_id_async(job_id, retry_at, priority, queue, lock)
                except UniqueViolation:
                    await self._hand_over(job_id, retry_at)

    async def _hand_over(self, job_id: int, retry_at: datetime) -> None:
        if not await self._database.owner_rows(query("hand_job_over"), job_id=job_id, retry_at=retry_at):
            # The pending job was started or cancelled between the two statements.
            await super().retry_job_by_id_async(job_id, retry_at)


class JobQueue:
    """The jobs of all agents, on the owner's connections."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connector = PsycopgConnector()
        self.app = App(connector=self._connector)
        self.manager = self.app.job_manager = LenientManager(self._connector, database)

    async def open(self) -> None:
        # procrastinate sets its own row factory, so the pool's default does not matter.
        await self._connector.open_async(cast(Any, self._database.owner))

    async def counts(self) -> dict[str, int]:
        found = {row["state"]: int(row["count"]) for row in await self._database.owner_rows(query("count_jobs"))}
        return {state: found.get(state, 0) for state in JobState}

    async def page(self, *, state: str | None = None, agent_id: str | None = None, limit: int = 50) -> list[Row]:
        """Newest first."""
        return await self._database.owner_rows(
            query("list_jobs"), job_id=None, state=state, agent_id=agent_id, limit=limit
        )

    async def get(self, job_id: int) -> Mapping[str, Any]:
        """Adds events and failures as `story`. Raises NotFound."""
        rows = await self._database.owner_rows(query("list_jobs"), job_id=job_id, state=None, agent_id=None, limit=1)
        if not rows:
            raise NotFound(f"There is no job {job_id}: it never was, or is done.")
        return {**rows[0], "story": await self._database.owner_rows(query("job_story"), job_id=job_id)}

    async def retry(self, job_id: int) -> None:
        """Raises NotFound, and Conflict unless the job failed."""
        found = await self.get(job_id)
        if found["state"] != "failed":
            raise Conflict(f"Job {job_id} is {found['state']}: only a failed one is tried again.")
        await self.manager.retry_job_by_id_async(job_id, datetime.now(UTC))

    async def cancel(self, job_id: int) -> str:
        """Returns the job's former state. Raises NotFound, Conflict."""
        found = await self.get(job_id)
        if not await self.manager.cancel_job_by_id_async(job_id, abort=True):
            raise Conflict(f"Job {job_id} is {found['state']}: only one that waits or runs is cancelled.")
        return str(found["state"])

    async def change(self, agent_id: str, job_id: int, action: str) -> str:
        """Retries or cancels a job of this agent; returns its former state. Raises NotFound, Conflict."""
        if not await self._database.owner_rows(
            query("list_jobs"), job_id=job_id, state=None, agent_id=agent_id, limit=1
        ):
            raise NotFound("The agent has no job with this id; jobs that succeeded are deleted.")
        if action == "cancel":
            return await self.cancel(job_id)
        await self.retry(job_id)
        return JobState.FAILED

    async def revive(self) -> int:
        """Enqueues the jobs of dead workers again, up to MAX_ATTEMPTS; returns how many."""
        try:
            stalled = [*await self.manager.get_stalled_jobs(seconds_since_heartbeat=STALLED_SECONDS)]
            for each in stalled:
                if each.attempts >= MAX_ATTEMPTS:
                    await self.manager.finish_job(each, Status.FAILED, delete_job=False)
                else:
                    await self.manager.retry_job(each)
        except ConnectorException as failure:
            raise DependencyUnavailable("PostgreSQL does not answer.") from failure
        return len(stalled)

    async def sweep(self) -> int:
        """Deletes jobs that ended before the retention period; returns how many."""
        before = sum((await self.counts()).values())
        try:
            await self.manager.delete_old_jobs(KEPT_HOURS, include_cancelled=True, include_aborted=True)
            await self.manager.delete_old_jobs(FAILED_KEPT_HOURS, include_failed=True)
        except ConnectorException as failure:
            raise DependencyUnavailable("PostgreSQL does not answer.") from failure
        return max(0, before - sum((await self.counts()).values()))

    async def note_failure(self, job_id: int, failure: str) -> None:
        """`failure` must quote no memory."""
        await self._database.owner_rows(query("note_job_failure"), job_id=job_id, failure=failure)


def _may_pass(failure: Exception) -> bool:
    return isinstance(failure, ConnectorException | DependencyUnavailable)


@contextmanager
def _unless_gone() -> Iterator[None]:
    try:
        yield
    except ConnectorException as failure:
        if not isinstance(failure.__cause__, psycopg.errors.RaiseException):
            raise


@dataclass(frozen=True)
class Work:
    """Context of a running job: parts, database, agent and job id."""

    parts: MemoryParts
    database: Database
    agent_id: str
    job_id: int

    @property
    def caller(self) -> Caller:
        """Returns the caller for the history: the agent, without a token, with the job as trace."""
        return Caller(self.agent_id, trace_id=f"job-{self.job_id}")

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[MemoryTransaction]:
        """Opens a transaction of the agent; jobs enqueued in it are part of it."""
        async with self.parts.storage.transaction(self.agent_id) as transaction:
            yield transaction


# Called with the work and the enqueued ids as keywords. Must be idempotent: it may be aborted anywhere, and
# run again after it has ended.
Job = Callable[..., Awaitable[None]]
JOBS: dict[str, Job] = {}


def job(function: Job) -> Job:
    JOBS[function.__name__] = function
    return function


logger = logging.getLogger(__name__)
CONCURRENCY = 2
POLLING_SECONDS, ABORT_POLLING_SECONDS = 1.0, 2.0
RESTART_SECONDS = 2.0
# After a run this long, an error is a new outage.
WORKED_SECONDS = 60.0
LONGEST_BACKOFF_SECONDS = 600


class Backoff(BaseRetryStrategy):
    """Retries after 1, 2, 4 ... s (10 minutes at most); at once if the worker stopped.

    An error may ask for a longer delay (`data.retry_after_seconds`).
    """

    def get_retry_decision(self, *, exception: BaseException, job: QueuedJob) -> RetryDecision | None:
        if isinstance(exception, asyncio.CancelledError):
            return RetryDecision(retry_in={"seconds": 0})
        if job.attempts + 1 >= MAX_ATTEMPTS:
            return None
        named = exception.data.get("retry_after_seconds", 0) if isinstance(exception, AgentCoreError) else 0
        seconds = min(LONGEST_BACKOFF_SECONDS, max(named, 2**job.attempts))
        return RetryDecision(retry_in={"seconds": seconds})


class JobWorker:
    """`grace_seconds`: the time running jobs have to end when it stops.

    Polls once a second: LISTEN needs a session of its own, which connection poolers do not provide.
    """

    def __init__(
        self,
        database: Database,
        queue: JobQueue,
        parts: MemoryParts,
        *,
        grace_seconds: float,
        concurrency: int = CONCURRENCY,
    ) -> None:
        self._database = database
        self.queue = queue
        self._parts = parts
        self._grace_seconds = grace_seconds
        self._concurrency = concurrency
        self._stopping = asyncio.Event()
        self._worker: Worker | None = None
        self._names = tuple(JOBS)
        for name, function in JOBS.items():
            task = self.queue.app.task(name=name, pass_context=True, retry=Backoff(), queue=name)
            task(self._done(function))

    def adopt(self, parts: MemoryParts) -> None:
        """Applies to jobs that start from now on."""
        self._parts = parts

    def stop(self) -> None:
        """Stops fetching jobs; running jobs may end."""
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop()

    async def run(self) -> None:
        """Restarts after an outage of PostgreSQL; logs one line per outage."""
        logged = False
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                await self._work(wait=True)
            except ProcrastinateException as failure:
                if not logged or time.monotonic() - began > WORKED_SECONDS:
                    logger.warning("jobs wait for PostgreSQL", extra={"failure": describe_failure(failure)})
                logged = True
            try:
                await asyncio.wait_for(self._stopping.wait(), RESTART_SECONDS)
            except TimeoutError:
                continue

    async def run_pending(self) -> None:
        """Runs all due jobs and the jobs they enqueue."""
        await self._work(wait=False)

    async def _work(self, *, wait: bool) -> None:
        self._worker = Worker(
            self.queue.app,
            queues=[*self._names],
            concurrency=self._concurrency,
            wait=wait,
            fetch_job_polling_interval=POLLING_SECONDS,
            abort_job_polling_interval=ABORT_POLLING_SECONDS,
            # With wait=False it shuts down once the queue is empty: a timeout would abort running jobs.
            shutdown_graceful_timeout=self._grace_seconds if wait else None,
            listen_notify=False,
            delete_jobs=DeleteJobCondition.SUCCESSFUL,
            install_signal_handlers=False,
            stalled_worker_timeout=STALLED_SECONDS,
        )
        await self._worker.run()

    def _done(self, function: Job) -> Any:
        async def do(context: JobContext, agent_id: str, **ids: Any) -> None:
            work = Work(self._parts, self._database, agent_id, context.job.id or 0)

            async def ended(_: type[BaseException] | None, error: BaseException | None, __: object) -> None:
                await self._ended(context, work, error)

            async with AsyncExitStack() as stack:
                stack.push_async_exit(ended)
                async with work.transaction() as transaction:
                    await transaction.jobs.await_enqueuers(context.job.lock or "")
                await function(work, **ids)

        return do

    async def _ended(self, context: JobContext, work: Work, error: BaseException | None) -> None:
        """Counts how a job ended, and stores why it failed. Raises JobAborted if a user canceled it."""
        name, job_id = context.job.task_name, context.job.id or 0
        failed = isinstance(error, Exception)
        if work.parts.metrics is not None:
            work.parts.metrics.job_ended(name, "done" if error is None else "failed" if failed else "stopped")
        if isinstance(error, Exception):
            logger.warning("job %s (%s) failed", job_id, name, extra={"failure": describe_failure(error)})
            await self.queue.note_failure(job_id, _named(error))
        elif error is not None and context.abort_reason() is AbortReason.USER_REQUEST:
            raise JobAborted from error


def _named(failure: Exception) -> str:
    """A driver's message may quote a memory; our own do not."""
    if isinstance(failure, AgentCoreError):
        return f"{type(failure).__name__}: {failure.message}"
    return type(failure).__name__
