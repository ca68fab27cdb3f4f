"""Work that must complete although its task is cancelled."""

from __future__ import annotations

import asyncio

import pytest

from agentcore.cancellation import run_to_completion


async def test_work_completes_before_the_second_of_two_cancellations_takes_effect() -> None:
    started, release, completed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        started.set()
        await release.wait()
        completed.set()

    task = asyncio.create_task(run_to_completion(work()))
    await started.wait()
    for _ in range(2):
        task.cancel()
        await asyncio.wait([task], timeout=0.01)
        assert not task.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert completed.is_set()


async def test_the_result_or_the_error_of_the_work_is_returned() -> None:
    assert await run_to_completion(asyncio.to_thread(str, "done")) == "done"
    with pytest.raises(TimeoutError):
        await run_to_completion(asyncio.wait_for(asyncio.Event().wait(), 0.001))
