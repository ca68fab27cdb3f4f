"""memory.jobs and memory.change_job: an agent's own background jobs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from psycopg import sql

from agentcore.database import query
from agentcore.errors import Conflict, NotFound
from agentcore.memory.params.jobs import ChangeJobParams, JobsParams
from tests.fixtures.memory import Agent


async def enqueued(agent: Agent, name: str = "consolidate_episodes") -> int:
    """Returns the id of a new job of the agent."""
    async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        await transaction.jobs.enqueue(name)
    return (await agent.memory.jobs(JobsParams())).jobs[0].job_id


async def fail(agent: Agent, job_id: int, failure: str) -> None:
    database = agent.runtime.database
    await database.owner_rows(
        sql.SQL("UPDATE procrastinate_jobs SET status = 'failed' WHERE id = %(job_id)s"), job_id=job_id
    )
    await database.owner_rows(query("note_job_failure"), job_id=job_id, failure=failure)


async def test_an_agent_sees_its_own_jobs(agent: Agent, new_agent: Callable[..., Agent]) -> None:
    other = new_agent()
    job_id = await enqueued(agent)
    assert (await other.memory.jobs(JobsParams())).jobs == []
    [job] = (await agent.memory.jobs(JobsParams(state="waiting"))).jobs
    assert (job.job_id, job.name, job.failure) == (job_id, "consolidate_episodes", None)
    assert "agent_id" not in job.ids
    assert (await agent.memory.jobs(JobsParams(state="failed"))).jobs == []
    for action in ("retry", "cancel"):
        with pytest.raises(NotFound):
            await other.memory.change_job(ChangeJobParams(job_id=job_id, action=action))


async def test_a_failed_job_is_retried_and_shows_no_frames(agent: Agent) -> None:
    job_id = await enqueued(agent)
    with pytest.raises(Conflict):
        await agent.memory.change_job(ChangeJobParams(job_id=job_id, action="retry"))
    await fail(agent, job_id, "builtins.ValueError: bad\n  file.py:3 in run")
    [job] = (await agent.memory.jobs(JobsParams(state="failed"))).jobs
    assert job.failure == "builtins.ValueError: bad"
    changed = await agent.memory.change_job(ChangeJobParams(job_id=job_id, action="retry"))
    assert changed.previous_state == "failed"
    [job] = (await agent.memory.jobs(JobsParams())).jobs
    assert (job.job_id, job.state) == (job_id, "waiting")


async def test_a_waiting_job_is_cancelled_once(agent: Agent) -> None:
    job_id = await enqueued(agent)
    assert (await agent.memory.change_job(ChangeJobParams(job_id=job_id, action="cancel"))).previous_state == "waiting"
    assert [each.state for each in (await agent.memory.jobs(JobsParams())).jobs] == ["cancelled"]
    with pytest.raises(Conflict):
        await agent.memory.change_job(ChangeJobParams(job_id=job_id, action="cancel"))
