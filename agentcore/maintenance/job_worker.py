"""The worker: takes jobs from the queue and does them, a few at a time, until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from procrastinate import BaseRetryStrategy, JobContext, RetryDecision
from procrastinate.exceptions import JobAborted, ProcrastinateException
from procrastinate.job_context import AbortReason
from procrastinate.jobs import DeleteJobCondition
from procrastinate.jobs import Job as QueuedJob
from procrastinate.worker import Worker

from agentcore.database import Database
from agentcore.errors import AgentCoreError
from agentcore.maintenance.job_queue import JOBS, MAX_ATTEMPTS, STALLED_SECONDS, Job, JobQueue, Work
from agentcore.memory.parts import MemoryParts
from agentcore.telemetry import Metrics, describe_failure

logger = logging.getLogger(__name__)
CONCURRENCY = 2
POLLING_SECONDS, ABORT_POLLING_SECONDS = 1.0, 2.0
RESTART_SECONDS = 2.0
# A worker that ran this long was well: its end is another outage.
WORKED_SECONDS = 60.0
LONGEST_BACKOFF_SECONDS = 600


class Backoff(BaseRetryStrategy):
    """1, 2, 4 ... seconds, ten minutes at most, so many times; a worker that stops counts for nothing.

    A failure may say that asking again soon is of no use (`data.retry_after_seconds`).
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
    """One process's share of the jobs; `grace_seconds` is the time they have to end when it stops.

    It asks for work once a second: a notification would need a session that no pooler gives away.
    """

    def __init__(
        self, database: Database, parts: MemoryParts, *, grace_seconds: float, concurrency: int = CONCURRENCY
    ) -> None:
        self._database = database
        self._parts = parts
        self._grace_seconds = grace_seconds
        self._concurrency = concurrency
        self._stopping = asyncio.Event()
        self._worker: Worker | None = None
        self._names = tuple(JOBS)
        self.queue = JobQueue(database)
        for name, function in JOBS.items():
            task = self.queue.app.task(name=name, pass_context=True, retry=Backoff(), queue=name)
            task(self._done(function))

    def adopt(self, parts: MemoryParts) -> None:
        """Do the jobs that start from now on with these parts."""
        self._parts = parts

    def stop(self) -> None:
        """Take no more jobs; those that run may end."""
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop()

    async def run(self) -> None:
        """Do jobs until stopped, also when PostgreSQL goes away and comes back: one log line an outage."""
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

    async def run_waiting(self) -> None:
        """Do the jobs that are due, and those that they enqueue; ends only when all have ended."""
        await self._work(wait=False)

    async def _work(self, *, wait: bool) -> None:
        self._worker = Worker(
            self.queue.app,
            queues=[*self._names],
            concurrency=self._concurrency,
            wait=wait,
            fetch_job_polling_interval=POLLING_SECONDS,
            abort_job_polling_interval=ABORT_POLLING_SECONDS,
            # Without waiting it shuts down when the queue is empty: a limit would abort jobs that still run.
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
            async with _Told(context, self.queue, self._parts.metrics):
                async with work.transaction() as transaction:
                    await transaction.jobs.await_enqueuers(context.job.lock or "")
                await function(work, **ids)

        return do


class _Told:
    """A context that counts how a job ended in it, and keeps why it failed for those who ask."""

    def __init__(self, context: JobContext, queue: JobQueue, metrics: Metrics | None) -> None:
        self._context = context
        self._queue = queue
        self._metrics = metrics

    async def __aenter__(self) -> None:
        return None

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        name, job_id = self._context.job.task_name, self._context.job.id or 0
        failed = isinstance(error, Exception)
        if self._metrics is not None:
            self._metrics.job_ended(name, "done" if error is None else "failed" if failed else "stopped")
        if isinstance(error, Exception):
            logger.warning("job %s (%s) failed", job_id, name, extra={"failure": describe_failure(error)})
            await self._queue.note_failure(job_id, _named(error))
        elif error is not None and self._context.abort_reason() is AbortReason.USER_REQUEST:
            raise JobAborted from error


def _named(failure: Exception) -> str:
    """What failed, by its kind; of messages only our own errors': a driver's may quote a memory."""
    if isinstance(failure, AgentCoreError):
        return f"{type(failure).__name__}: {failure.message}"
    return type(failure).__name__
