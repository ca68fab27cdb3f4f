"""Requests beyond MAX_RUNNING_CALLS: queued, fairly between agents, and rejected if the queue is too long."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from pydantic import BaseModel

from agentcore.call_queue import FIRST_INTERVAL_SECONDS, CallQueue
from agentcore.errors import RateLimited
from agentcore.memory.jsonrpc import MemoryCall
from agentcore.rpc import RpcMethod
from agentcore.server import create_app
from tests.fixtures.edge import Edge, edge_runtime, request
from tests.fixtures.embedded_parts import eventually, until
from tests.fixtures.rpc_methods import Nothing


@dataclass
class Gate:
    """A method that runs until the test releases it, and records whose call started."""

    started: list[str] = field(default_factory=list)
    open: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))

    async def run(self, call: MemoryCall, params: BaseModel) -> dict[str, Any]:
        self.started.append(call.caller.agent_id)
        await self.open.acquire()
        return {}

    def release(self, count: int) -> None:
        for _ in range(count):
            self.open.release()


@asynccontextmanager
async def gated(**settings: Any) -> AsyncIterator[tuple[Edge, Gate]]:
    runtime, stopping, gate = edge_runtime(**settings), asyncio.Event(), Gate()
    app = create_app(runtime, stopping=stopping, methods=[RpcMethod("run", Nothing, dict[str, Any], gate.run, "Runs.")])
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://edge") as http:
        yield Edge(runtime, stopping, http), gate


async def until_queued(queue: CallQueue, count: int) -> None:
    async def is_queued() -> bool:
        return len(queue) == count

    await until(is_queued)


@pytest.mark.shows("issue16-2-fair")
async def test_an_agent_with_many_requests_does_not_delay_the_others() -> None:
    async with gated(max_running_calls=1) as (edge, gate), asyncio.TaskGroup() as tasks:
        crowd = [tasks.create_task(edge.post(request("run"), agent="ada")) for _ in range(6)]
        await until_queued(edge.runtime.calls, 5)
        others = [tasks.create_task(edge.post(request("run"), agent=name)) for name in ("bob", "cyd")]
        await until_queued(edge.runtime.calls, 7)
        gate.release(8)
        answers = await asyncio.gather(*crowd, *others)
    assert [each.status_code for each in answers] == [200] * 8
    assert gate.started == ["ada", "ada", "bob", "cyd", "ada", "ada", "ada", "ada"]


@pytest.mark.shows("issue16-2-shedding")
async def test_a_request_that_would_wait_too_long_is_rejected_and_costs_nothing() -> None:
    async with gated(max_running_calls=1, max_queue_seconds=0.0, rate_limit_per_minute=1) as (edge, gate):
        async with asyncio.TaskGroup() as tasks:
            admitted = tasks.create_task(edge.post(request("run")))
            await eventually(lambda: gate.started == ["ada"])
            rejected = await edge.post(request("run", id="late"), agent="bob")
            gate.release(3)
            assert (await admitted).status_code == 200
        # Once the service is idle, the next ones are admitted again.
        assert (await edge.post(request("run"), agent="bob")).status_code == 200
    error = rejected.json()["error"]
    assert (rejected.status_code, error["code"], rejected.json()["id"]) == (429, -32004, "late")
    assert error["data"]["retryable"] is True
    assert rejected.headers["retry-after"] == str(math.ceil(error["data"]["retry_after_seconds"]))


@pytest.mark.shows("issue16-2-fair")
async def test_each_call_of_a_batch_takes_a_slot() -> None:
    async with gated(max_running_calls=2, max_queue_seconds=0.0) as (edge, gate), asyncio.TaskGroup() as tasks:
        batch = tasks.create_task(edge.post([request("run", id=number) for number in range(3)]))
        await eventually(lambda: len(gate.started) == 2)
        gate.release(2)
        answer = await batch
    members = {each["id"]: each for each in answer.json()}
    assert answer.status_code == 200
    assert sorted(each.get("error", {}).get("code", 0) for each in members.values()) == [-32004, 0, 0]


async def test_slow_calls_of_one_agent_leave_slots_to_the_others() -> None:
    async with gated(max_running_calls=4) as (edge, gate), asyncio.TaskGroup() as tasks:
        slow = [tasks.create_task(edge.post(request("run"), agent="ada")) for _ in range(4)]
        await until_queued(edge.runtime.calls, 1)
        other = tasks.create_task(edge.post(request("run"), agent="bob"))
        await eventually(lambda: gate.started[-1] == "bob")
        gate.release(5)
        answers = await asyncio.gather(*slow, other)
    assert [each.status_code for each in answers] == [200] * 5
    assert gate.started == ["ada", "ada", "ada", "bob", "ada"]


async def test_a_call_whose_task_is_cancelled_leaves_the_queue() -> None:
    queue, order = CallQueue(1, 5.0), list[str]()

    async def call(name: str) -> None:
        async with queue.slot(name):
            order.append(name)

    async with asyncio.TaskGroup() as tasks, queue.slot("ada"):
        calls = [tasks.create_task(call(name)) for name in ("bob", "cyd", "dan")]
        await until_queued(queue, 3)
        calls[0].cancel()
        await until_queued(queue, 2)
    assert order == ["cyd", "dan"]
    async with asyncio.timeout(1), queue.slot("bob"):
        assert len(queue) == 0


async def test_a_slot_is_passed_on_if_its_call_is_cancelled_with_it() -> None:
    queue = CallQueue(1, 5.0)

    async def call() -> None:
        async with queue.slot("bob"):
            pytest.fail("the call was cancelled before it started")

    async with queue.slot("ada"):
        cancelled = asyncio.create_task(call())
        await until_queued(queue, 1)
    # It has the slot, but has not run since.
    cancelled.cancel()
    with pytest.raises(asyncio.CancelledError):
        await cancelled
    async with asyncio.timeout(1), queue.slot("cyd"):
        assert len(queue) == 0


async def calls_of(queue: CallQueue, tasks: asyncio.TaskGroup, *agents: str, queued: int) -> asyncio.Semaphore:
    """Starts a call of each agent, until so many are queued; returns a semaphore that ends them."""
    ends = asyncio.Semaphore(0)

    async def call(agent_id: str) -> None:
        async with queue.slot(agent_id):
            await ends.acquire()

    for agent_id in agents:
        tasks.create_task(call(agent_id))
    await until_queued(queue, queued)
    return ends


def end(ends: asyncio.Semaphore, count: int) -> None:
    for _ in range(count):
        ends.release()


async def test_the_expected_wait_is_by_the_queued_calls_of_the_agent() -> None:
    queue, count = CallQueue(1, 60.0, clock=lambda: 0.0), round(60.0 / FIRST_INTERVAL_SECONDS)
    async with asyncio.TaskGroup() as tasks:
        ends = await calls_of(queue, tasks, "ada", *["bob"] * (count - 1), queued=count - 1)
        queue.reject_long_waits("bob")
        last = await calls_of(queue, tasks, "bob", queued=count)
        with pytest.raises(RateLimited) as rejected:
            queue.reject_long_waits("bob")
        assert rejected.value.data["retry_after_seconds"] == 60.0
        queue.reject_long_waits("cyd")
        end(ends, count)
        end(last, 1)


async def test_a_call_is_queued_no_longer_than_the_limit() -> None:
    queue = CallQueue(1, 0.05)
    async with queue.slot("ada"):
        with pytest.raises(RateLimited):
            async with queue.slot("bob"):
                pytest.fail("there is no free slot")
        assert len(queue) == 0
    async with queue.slot("bob"):
        assert len(queue) == 0


async def test_a_stall_of_one_agent_rejects_no_calls_of_another_and_is_forgotten() -> None:
    now = 0.0
    queue = CallQueue(4, 5.0, clock=lambda: now)
    async with asyncio.TaskGroup() as tasks:
        ends = await calls_of(queue, tasks, *["ada"] * 5, queued=2)
        now += 1_000.0
        end(ends, 1)
        await until_queued(queue, 1)
        with pytest.raises(RateLimited):
            queue.reject_long_waits("ada")
        queue.reject_long_waits("bob")
        end(ends, 4)
    queue.reject_long_waits("ada")
