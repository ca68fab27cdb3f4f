"""Numbered context lines: each can be traced to its memory, rated and forgotten."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from agentcore.agents.memory_enabled_agent import MemoryEnabledAgent
from agentcore.agents.prefetch import with_memory
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.changes import FeedbackParams, HistoryParams
from agentcore.memory.params.memories import DeleteParams
from tests.fixtures.memory import Agent

HAWAII = "My budget for the Hawaii trip is 10,000 dollars."
QUESTION = "What is my budget for the Hawaii trip?"


class Telling(MemoryEnabledAgent):
    """Runs `work` within its turn."""

    def __init__(self, memory: MemoryApi, work: Callable[[Telling], Awaitable[str]] | None = None) -> None:
        super().__init__(memory)
        self.work = work

    async def process_query(self, query: str, task_id: str) -> str:
        return "Done." if self.work is None else await self.work(self)


@pytest.mark.shows("issue5-1-citable", "issue6-2-lines")
async def test_the_lines_of_a_turns_context_name_the_memories_they_are_of(agent: Agent) -> None:
    await agent.store(HAWAII)
    await agent.store("The budget for the Hawaii trip was raised once before, in spring.")
    named: list[UUID] = []

    async def act_on_line_two(own: Telling) -> str:
        named.extend(own.turn.memory_ids)
        second = own.turn.memory_ids[1]
        await own.memory.api.feedback(FeedbackParams(memory_id=second, verdict="unhelpful"))
        return "Done."

    turn = await Telling(agent.memory, act_on_line_two).run_turn(QUESTION, remember=False)
    assert turn.context is not None
    lines = re.findall(r"^\d+\. .*", turn.context, re.MULTILINE)
    assert len(lines) == len(turn.memory_ids) == 2
    assert named == [*turn.memory_ids]
    for line, memory_id in zip(lines, turn.memory_ids, strict=True):
        assert (await agent.get(memory_id)).content in line
    assert turn.receipt is not None
    history = (await agent.memory.history(HistoryParams(memory_id=turn.memory_ids[1]))).changes
    assert "feedback" in [each.operation for each in history]
    # A user's request to forget a line deletes its memory.
    await agent.memory.delete(DeleteParams(memory_ids=[turn.memory_ids[1]]))
    later = await Telling(agent.memory).run_turn(QUESTION, remember=False)
    assert [*later.memory_ids] == [turn.memory_ids[0]]


@pytest.mark.shows("issue6-2-lines")
async def test_a_context_of_another_query_and_a_chat_name_their_memories_too(agent: Agent) -> None:
    memory_id = await agent.stored_id(HAWAII)
    built = await Telling(agent.memory).memory.get_context(QUESTION)
    assert built is not None
    assert (built.memory_ids, HAWAII in built.context) == ([memory_id], True)
    chat = await with_memory(agent.memory, [{"role": "user", "content": QUESTION}])
    assert [*chat.memory_ids] == [memory_id]
    assert (await with_memory(agent.memory, [{"role": "user", "content": " "}])).memory_ids == ()
