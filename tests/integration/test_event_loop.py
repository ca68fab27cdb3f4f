"""The event loop is never blocked while the longest texts are stored, searched and put into a context."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Iterator

import pytest

from agentcore.limits import MAX_QUERY_CHARS, MAX_TEXT_CHARS
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import GetContextParams, RetrieveParams
from tests.fixtures.memory import Agent

# CPU time of this thread per step of the loop, independent of other threads and processes.
MOST_SECONDS = 0.2
TEXTS = {
    "mixed combining marks": "a" + "\u0301\u0323\u0327" * MAX_TEXT_CHARS,
    "squared katakana": "\u3313" * MAX_TEXT_CHARS,
    "different Han characters": "".join(chr(0x4E00 + 17 * at % 20_000) for at in range(MAX_TEXT_CHARS)),
    "the longest ligature": "\ufdfa" * MAX_TEXT_CHARS,
    "quotation marks": "Ada" + '"\\' * MAX_TEXT_CHARS,
}


class Steps:
    """Samples the event loop and records the maximum CPU seconds between two samples."""

    def __init__(self) -> None:
        self.longest, self._begun = 0.0, time.thread_time()
        self._next: asyncio.TimerHandle | None = None

    def sample(self) -> None:
        now = time.thread_time()
        self.longest, self._begun = max(self.longest, now - self._begun), now
        self._next = asyncio.get_running_loop().call_later(0.005, self.sample)

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()


@pytest.fixture
def frozen_heap() -> Iterator[None]:
    """Freezes the heap, as the service does at its start; a full collection in a long run takes 0.5 s."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen_heap")
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.shows("A14-U+FDFA")
async def test_no_text_occupies_the_event_loop(agent: Agent, name: str) -> None:
    text = TEXTS[name][:MAX_TEXT_CHARS]
    query = text[:MAX_QUERY_CHARS]
    memory_id = await agent.stored_id("The budget is 9,000 euros.", task_id="t")
    steps = Steps()
    steps.sample()
    found = {}
    for doing in ("store", "update", "retrieve", "context"):
        steps.longest = 0.0
        if doing == "store":
            await agent.store(text, task_id="t", force=True)
        elif doing == "update":
            updates = {"memory_id": memory_id, "updates": {"content": f"New {text}"[:MAX_TEXT_CHARS]}}
            await agent.memory.update(UpdateParams.model_validate(updates))
        elif doing == "retrieve":
            await agent.memory.retrieve(RetrieveParams(query=query))
        else:
            await agent.memory.get_context(GetContextParams(query=query, task_id="t"))
        found[doing] = round(steps.longest, 3)
    steps.stop()
    assert max(found.values()) < MOST_SECONDS, found
