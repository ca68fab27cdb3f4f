"""Durable jobs: enqueued within a transaction, run by any worker, controlled by operators."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from psycopg import errors

from agentcore.errors import Conflict, DependencyUnavailable, NotFound
from agentcore.maintenance.job_queue import JOBS, MAX_ATTEMPTS, JobQueue, JobWorker, Work
from agentcore.memory.params.memories import DeleteParams
from agentcore.memory.storage import job_lock
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent

SOON = timedelta(minutes=5)


async def nothing(work: Work) -> None:
    pass


class Probe:
    def __init__(self) -> None:
        self.runs: list[tuple[str, str]] = []
        self.started = asyncio.Event()
        self.twice = asyncio.Event()
        self.act: Callable[[Work], Any] = nothing

    async def run(self, work: Work, mark: str = "") -> None:
        self.runs.append((work.agent_id, mark))
        (self.twice if self.started.is_set() else self.started).set()
        await self.act(work)


@pytest.fixture
async def probe() -> AsyncIterator[Probe]:
    made = Probe()

    async def probe(work: Work, mark: str = "") -> None:
        await made.run(work, mark)

    JOBS["probe"] = probe
    yield made
    del JOBS["probe"]


@pytest.fixture
async def worker(runtime: Runtime, probe: Probe) -> JobWorker:
    await owner(runtime, "DELETE FROM procrastinate_jobs")
    return await new_worker(runtime)


async def new_worker(runtime: Runtime, **options: Any) -> JobWorker:
    made = JobWorker(runtime.database, JobQueue(runtime.database), runtime.parts, **{"grace_seconds": 5.0, **options})
    await made.queue.open()
    return made


@asynccontextmanager
async def running(*workers: JobWorker) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(each.run()) for each in workers]
    try:
        yield
    finally:
        for each in workers:
            each.stop()
        await asyncio.gather(*tasks)


async def enqueue(agent: Agent, name: str = "probe", **values: Any) -> None:
    async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        await transaction.jobs.enqueue(name, **values)


async def owner(runtime: Runtime, statement: str, *values: object) -> list[Any]:
    async with runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(statement.encode(), values)
        return [*await cursor.fetchall()] if cursor.description else []


async def make_due(runtime: Runtime) -> None:
    await owner(runtime, "UPDATE procrastinate_jobs SET scheduled_at = now() WHERE status = 'todo'")


async def bury_workers(runtime: Runtime) -> None:
    await owner(runtime, "UPDATE procrastinate_workers SET last_heartbeat = now() - interval '1 hour'")


async def states(worker: JobWorker) -> list[tuple[str, str]]:
    return [(row["name"], row["state"]) for row in await worker.queue.page()]


async def test_a_job_is_done_after_its_transaction_and_is_gone(agent: Agent, worker: JobWorker, probe: Probe) -> None:
    await enqueue(agent, mark="one")
    assert await states(worker) == [("probe", "waiting")]
    await worker.run_pending()
    assert probe.runs == [(agent.agent_id, "one")]
    assert await states(worker) == []


@pytest.mark.shows("issue4-9-jobs")
async def test_a_job_is_enqueued_only_if_its_transaction_is(agent: Agent, worker: JobWorker, probe: Probe) -> None:
    with pytest.raises(ZeroDivisionError):
        async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
            await transaction.jobs.enqueue("probe")
            raise ZeroDivisionError
    await worker.run_pending()
    assert probe.runs == []
    assert await states(worker) == []


async def test_the_same_work_waits_once_and_other_work_beside_it(
    agent: Agent, new_agent: Callable[[], Agent], worker: JobWorker, probe: Probe
) -> None:
    other = new_agent()
    await asyncio.gather(*(enqueue(each, mark=mark) for mark in "abab" for each in (agent, other) * 3))
    await worker.run_pending()
    assert sorted(probe.runs) == sorted((each.agent_id, mark) for each in (agent, other) for mark in "ab")


async def test_a_job_does_not_start_before_its_time(agent: Agent, worker: JobWorker, probe: Probe) -> None:
    await enqueue(agent, not_before=datetime.now(UTC) + SOON)
    await worker.run_pending()
    assert probe.runs == []
    assert await states(worker) == [("probe", "scheduled")]
    await make_due(agent.runtime)
    await worker.run_pending()
    assert len(probe.runs) == 1


@pytest.mark.shows("issue4-9-jobs")
async def test_a_job_waits_for_everybody_who_counted_on_it(agent: Agent, worker: JobWorker, probe: Probe) -> None:
    await enqueue(agent)
    async with AsyncExitStack() as stack:
        async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
            assert await transaction.jobs.waits(job_lock("probe"))
            await stack.enter_async_context(running(worker))
            await _until(lambda: _has_state(worker, "running"))
            assert probe.runs == []
            # The job has started, so it does not deduplicate later ones.
            assert not await transaction.jobs.waits(job_lock("probe"))
        await probe.started.wait()


async def _has_state(worker: JobWorker, state: str) -> bool:
    return state in {found for _, found in await states(worker)}


async def _until(happened: Callable[[], Any], seconds: float = 20.0) -> None:
    async with asyncio.timeout(seconds):
        while not await happened():
            pass


async def test_two_workers_do_not_do_one_job_twice_nor_the_same_work_at_once(
    agent: Agent, worker: JobWorker, probe: Probe, runtime: Runtime
) -> None:
    at_work, most, release = 0, 0, asyncio.Event()

    async def act(work: Work) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await release.wait()
        at_work -= 1

    probe.act = act
    other = await new_worker(runtime)
    await enqueue(agent)
    async with running(worker, other):
        await probe.started.wait()
        await enqueue(agent)
        assert sorted(state for _, state in await states(worker)) == ["running", "waiting"]
        release.set()
        await _until(lambda: _is_empty(worker))
    assert (len(probe.runs), most) == (2, 1)


async def _is_empty(worker: JobWorker) -> bool:
    return await states(worker) == []


@pytest.mark.shows("issue4-9-retries")
async def test_a_job_that_fails_is_tried_again_later_and_says_why(
    agent: Agent, worker: JobWorker, probe: Probe, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail(work: Work) -> None:
        if len(probe.runs) == 1:
            raise DependencyUnavailable("The archive does not answer.")
        if len(probe.runs) == 2:
            raise ValueError("Ada's secret recipe")

    probe.act = fail
    await enqueue(agent)
    await worker.run_pending()
    [row] = await worker.queue.page()
    assert (row["state"], row["attempts"]) == ("scheduled", 1)
    assert row["failure"] == "DependencyUnavailable: The archive does not answer."
    await make_due(agent.runtime)
    await worker.run_pending()
    [row] = await worker.queue.page()
    assert (row["attempts"], row["failure"]) == (2, "ValueError")
    assert row["not_before"] - datetime.now(UTC) > timedelta(seconds=1)
    await make_due(agent.runtime)
    await worker.run_pending()
    assert len(probe.runs) == 3
    assert await states(worker) == []


async def test_a_job_that_always_fails_ends_as_failed_and_is_tried_again_by_hand(
    agent: Agent, worker: JobWorker, probe: Probe
) -> None:
    async def fail(work: Work) -> None:
        raise ValueError

    probe.act = fail
    await enqueue(agent)
    await owner(agent.runtime, "UPDATE procrastinate_jobs SET attempts = %s", MAX_ATTEMPTS - 1)
    await worker.run_pending()
    [row] = await worker.queue.page(state="failed", agent_id=agent.agent_id)
    assert (await worker.queue.counts())["failed"] == 1
    assert [each["happened"] for each in (await worker.queue.get(row["job_id"]))["story"]] == [
        "deferred",
        "started",
        "ValueError",
        "failed",
    ]
    probe.act = nothing
    await worker.queue.retry(row["job_id"])
    with pytest.raises(Conflict, match="is waiting: only a failed one"):
        await worker.queue.retry(row["job_id"])
    await worker.run_pending()
    assert await states(worker) == []
    with pytest.raises(NotFound):
        await worker.queue.retry(row["job_id"])


async def test_a_job_that_fails_while_the_same_work_waits_leaves_it_its_attempts(
    agent: Agent, worker: JobWorker, probe: Probe
) -> None:
    async def fail(work: Work) -> None:
        await enqueue(agent)
        raise DependencyUnavailable("Gone.")

    probe.act = fail
    await enqueue(agent)
    await owner(agent.runtime, "UPDATE procrastinate_jobs SET attempts = 5")
    await worker.run_pending()
    [row] = await worker.queue.page()
    assert (row["state"], row["attempts"], row["failure"]) == ("scheduled", 6, "DependencyUnavailable: Gone.")


async def test_a_waiting_job_is_cancelled_and_never_runs(agent: Agent, worker: JobWorker, probe: Probe) -> None:
    await enqueue(agent)
    [row] = await worker.queue.page()
    assert await worker.queue.cancel(row["job_id"]) == "waiting"
    await worker.run_pending()
    assert probe.runs == []
    assert await states(worker) == [("probe", "cancelled")]
    with pytest.raises(Conflict, match="is cancelled: only one that waits or runs"):
        await worker.queue.cancel(row["job_id"])


@pytest.mark.shows("issue4-9-operators")
async def test_a_running_job_is_stopped_and_not_tried_again(agent: Agent, worker: JobWorker, probe: Probe) -> None:
    probe.act = lambda work: asyncio.Event().wait()
    await enqueue(agent)
    async with running(worker):
        await probe.started.wait()
        [row] = await worker.queue.page()
        assert await worker.queue.cancel(row["job_id"]) == "running"
        await _until(lambda: _has_state(worker, "cancelled"))
    assert len(probe.runs) == 1


async def test_a_worker_that_stops_breaks_a_long_job_off_and_another_does_it(
    agent: Agent, runtime: Runtime, worker: JobWorker, probe: Probe
) -> None:
    probe.act = lambda work: asyncio.Event().wait()
    await enqueue(agent)
    async with running(await new_worker(runtime, grace_seconds=0.0)):
        await probe.started.wait()
    assert await states(worker) == [("probe", "waiting")]
    probe.act = nothing
    await worker.run_pending()
    assert len(probe.runs) == 2
    assert await states(worker) == []


async def test_the_job_of_a_worker_that_is_silent_is_done_by_another(
    agent: Agent, runtime: Runtime, worker: JobWorker, probe: Probe
) -> None:
    release = asyncio.Event()
    probe.act = lambda work: release.wait()
    await enqueue(agent)
    silent = asyncio.create_task((await new_worker(runtime)).run_pending())
    await probe.started.wait()
    assert await worker.queue.revive() == 0
    await bury_workers(runtime)
    assert await worker.queue.revive() == 1
    other = asyncio.create_task(worker.run_pending())
    await probe.twice.wait()
    release.set()
    # The slow worker may find its job done and skips it.
    await other
    await silent
    assert len(probe.runs) == 2
    assert await states(worker) == []


async def test_a_job_that_kills_its_workers_fails_in_the_end(
    agent: Agent, runtime: Runtime, worker: JobWorker, probe: Probe
) -> None:
    await enqueue(agent)
    await owner(runtime, "UPDATE procrastinate_jobs SET status = 'doing', attempts = %s", MAX_ATTEMPTS)
    assert await worker.queue.revive() == 1
    assert await states(worker) == [("probe", "failed")]


async def test_an_agents_jobs_can_be_forgotten_also_the_one_that_runs(
    agent: Agent, new_agent: Callable[[], Agent], worker: JobWorker, probe: Probe
) -> None:
    release, other = asyncio.Event(), new_agent()
    probe.act = lambda work: release.wait()
    await enqueue(agent, mark="running")
    async with running(worker):
        await probe.started.wait()
        await enqueue(agent, mark="waiting", not_before=datetime.now(UTC) + SOON)
        await enqueue(other, not_before=datetime.now(UTC) + SOON)
        async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
            assert await transaction.jobs.forget() == 2
        release.set()
    assert [row["ids"]["agent_id"] for row in await worker.queue.page()] == [other.agent_id]


async def test_deleting_everything_forgets_the_agents_jobs(agent: Agent, worker: JobWorker) -> None:
    await enqueue(agent, not_before=datetime.now(UTC) + SOON)
    await agent.memory.delete(DeleteParams(all=True, confirm=True))
    assert await states(worker) == []


@pytest.mark.shows("issue4-9-jobs")
async def test_jobs_are_those_of_the_agent_of_the_transaction_alone(
    agent: Agent, new_agent: Callable[[], Agent], worker: JobWorker
) -> None:
    other = new_agent()
    await enqueue(other)
    statements = (
        "SELECT enqueue_job(%s, 'probe', '{}', 'lock', NULL)",
        "SELECT job_waits(%s, 'lock')",
        "SELECT forget_jobs(%s)",
    )
    for statement in statements:
        for stranger in (other.agent_id, None, ""):
            with pytest.raises(errors.InsufficientPrivilege, match="agent of the transaction alone"):
                async with agent.runtime.database.transaction(agent.agent_id) as connection:
                    await connection.execute(statement.encode(), (stranger,))
    async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        assert not await transaction.jobs.waits(job_lock("probe"))
        assert await transaction.jobs.forget() == 0
    with pytest.raises(errors.InsufficientPrivilege, match="permission denied"):
        async with agent.runtime.database.transaction(agent.agent_id) as connection:
            await connection.execute("SELECT * FROM procrastinate_jobs")
    assert await states(worker) == [("probe", "waiting")]


async def test_a_job_nobody_knows_waits_for_who_does_and_harms_no_other(
    agent: Agent, worker: JobWorker, probe: Probe
) -> None:
    await enqueue(agent, "of_another_version")
    await enqueue(agent)
    await worker.run_pending()
    assert len(probe.runs) == 1
    assert await states(worker) == [("of_another_version", "waiting")]


async def test_what_ended_long_ago_is_swept(agent: Agent, worker: JobWorker) -> None:
    await enqueue(agent, mark="old")
    await enqueue(agent, mark="new")
    old, new = sorted(row["job_id"] for row in await worker.queue.page())
    await worker.queue.cancel(old)
    await worker.queue.cancel(new)
    aged = "UPDATE procrastinate_events SET at = at - interval '2 days' WHERE job_id = %s"
    await owner(agent.runtime, aged, old)
    assert await worker.queue.sweep() == 1
    assert [row["job_id"] for row in await worker.queue.page()] == [new]
