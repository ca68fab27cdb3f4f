"""The worker: fetches jobs from the queue and runs them, a few at a time, until stopped."""

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
# After a run this long, an error is a new outage.
WORKED_SECONDS = 60.0
LONGEST_BACKOFF_SECONDS = 600


class Backoff(BaseRetryStrategy):
    """Retries after 1, 2, 4 ... s (10 minutes at most), up to MAX_ATTEMPTS; at once if the worker stopped.

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
    """Runs jobs in one process; `grace_seconds`: the time running jobs have to end when it stops.

    Polls once a second: LISTEN needs a session of its own, which connection poolers do not provide.
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
        """Runs jobs that start from now on with these parts."""
        self._parts = parts

    def stop(self) -> None:
        """Stops fetching jobs; running jobs may end."""
        self._stopping.set()
        if self._worker is not None:
            self._worker.stop()

    async def run(self) -> None:
        """Runs jobs until stopped. Restarts after an outage of PostgreSQL; logs one line per outage."""
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
        """Runs all due jobs and the jobs they enqueue; returns when all have ended."""
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
            async with _Told(context, self.queue, self._parts.metrics):
                async with work.transaction() as transaction:
                    await transaction.jobs.await_enqueuers(context.job.lock or "")
                await function(work, **ids)

        return do


class _Told:
    """Context manager that counts how a job ended and stores why it failed."""

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
    """Returns the error's class, and the message of our own errors: a driver's message may quote a memory."""
    if isinstance(failure, AgentCoreError):
        return f"{type(failure).__name__}: {failure.message}"
    return type(failure).__name__
