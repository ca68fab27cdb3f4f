"""Failed fact extraction, caused by one text or by the whole request, and the scope of each request."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from agentcore.memory.llm import Extraction, SourceText
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.agent_settings import ConfigureParams
from agentcore.memory.params.changes import HistoryParams
from agentcore.memory.params.memories import ListParams, StoreBatchParams, StoreParams
from tests.fixtures.chat_model import Document, Talking, answered, moved_facts
from tests.fixtures.memory import Agent
from tests.fixtures.scripted_http import Reply

SAID = "I moved from Bristol to Ghent in 2021, and my sister Maren Holt helped me."
REFUSED = Reply({"error": {"message": "Unsupported parameter"}}, status=400)
FILTERED = Reply({"choices": [{"message": {"content": None}, "finish_reason": "content_filter"}]})
DECLINED = Reply({"choices": [{"message": {"content": "", "refusal": "I can't."}, "finish_reason": "stop"}]})
QUEUE = "SELECT memory_id FROM llm_queue WHERE agent_id = %s AND work = 'facts'"
JOBS = """
SELECT extract(epoch FROM scheduled_at - now()) AS seconds, failure FROM procrastinate_jobs
  LEFT JOIN job_failures ON job_id = id WHERE status = 'todo'"""


async def reader(talk: Talking) -> Agent:
    agent = talk.agent()
    await agent.memory.configure(ConfigureParams(extract_facts=True))
    return agent


async def notes(agent: Agent, *texts: str) -> list[UUID]:
    items = [StoreParams(content=text) for text in texts]
    results = (await agent.memory.store_batch(StoreBatchParams(items=items))).results
    return [each.memory_id for each in results if each.memory_id is not None]


def note(number: int, word: str = "plain") -> str:
    return f"{SAID} That is the {word} note {number} of my diary."


async def facts(agent: Agent) -> list[MemoryRecord]:
    return (await agent.memory.list(ListParams(tags=["fact"], limit=100))).memories


async def waiting(talk: Talking, agent: Agent) -> set[UUID]:
    async with talk.runtime.database.owner_transaction() as connection:
        rows = await (await connection.execute(QUEUE.encode(), (agent.agent_id,))).fetchall()
    return {row["memory_id"] for row in rows}


async def degraded(agent: Agent, memory_id: UUID) -> list[str]:
    """Returns the reasons why a memory was completed without a model's facts."""
    changes = (await agent.memory.history(HistoryParams(memory_id=memory_id))).changes
    return [each.after["degraded"] for each in changes if each.after and "degraded" in each.after]


def poisoned(bad: Reply | str) -> Callable[[Document], Any]:
    """Returns `bad` for requests with a poisoned text."""
    return lambda document: (
        bad if any("poison" in each["text"] for each in document["memories"]) else moved_facts(document)
    )


@pytest.mark.shows("issue5-3-facts-failing")
async def test_each_request_is_of_one_users_memories_in_one_namespace(talk: Talking) -> None:
    agent = await reader(talk)
    scopes = [("u-1", "a"), ("u-2", "a"), ("u-1", "b"), (None, None)]
    items = [
        StoreParams(content=note(number), user_id=user, namespace=namespace)
        for number, (user, namespace) in enumerate(scopes * 3)
    ]
    await agent.memory.store_batch(StoreBatchParams(items=items))
    await talk.work()
    assert [len(each["memories"]) for each in talk.model.documents("fact_extraction")] == [3, 3, 3, 3]
    assert len(await facts(agent)) == 12
    assert await waiting(talk, agent) == set()


@pytest.mark.parametrize(
    "bad",
    [answered("I would rather not."), answered(""), REFUSED, FILTERED, DECLINED],
    ids=["prose", "nothing", "refused", "filtered", "declined"],
)
@pytest.mark.shows("issue5-3-facts-failing")
async def test_one_text_that_a_model_does_not_answer_blocks_no_other(talk: Talking, bad: Reply) -> None:
    talk.model.answers["fact_extraction"] = poisoned(bad)
    agent = await reader(talk)
    [poison, *others] = await notes(agent, note(0, "poison"), *(note(number) for number in range(1, 12)))
    await talk.work()
    assert {each.parent_memory_id for each in await facts(agent)} == {*others}
    for _ in range(5):
        await talk.later()
    assert await waiting(talk, agent) == set()
    [reason] = await degraded(agent, poison)
    assert reason.startswith("The language model")
    assert len(talk.model.asked) < 25


async def test_a_text_that_is_answered_at_a_later_try_is_read(talk: Talking) -> None:
    talk.model.answers["fact_extraction"] = poisoned(answered("Not now."))
    agent = await reader(talk)
    [poison, _] = await notes(agent, note(0, "poison"), note(1))
    await talk.work()
    assert await waiting(talk, agent) == {poison}
    talk.model.answers["fact_extraction"] = moved_facts
    await talk.later()
    assert len(await facts(agent)) == 2
    assert await degraded(agent, poison) == []


async def test_what_comes_later_is_read_before_what_was_not_answered(talk: Talking) -> None:
    talk.model.answers["fact_extraction"] = poisoned(answered("Not now."))
    agent = await reader(talk)
    await notes(agent, note(0, "poison"), note(1))
    await talk.work()
    [late] = await notes(agent, note(2))
    await talk.later()
    assert late in {each.parent_memory_id for each in await facts(agent)}


@pytest.mark.parametrize("bad", [REFUSED, answered("Sorry?")], ids=["refused", "unreadable"])
@pytest.mark.shows("issue5-3-facts-failing")
async def test_where_no_text_at_all_is_answered_it_is_the_request_and_nothing_is_lost(
    talk: Talking, bad: Reply
) -> None:
    agent = await reader(talk)
    await notes(agent, SAID)
    await talk.work()
    talk.model.answers["fact_extraction"] = lambda document: bad
    talk.model.asked.clear()
    stored = await notes(agent, *(note(number) for number in range(12)))
    await talk.work()
    assert await waiting(talk, agent) == {*stored}
    assert len(talk.model.asked) == (9 if bad is REFUSED else 2 * 9)
    async with talk.runtime.database.owner_transaction() as connection:
        [job] = await (await connection.execute(JOBS.encode())).fetchall()
    assert "no text" in job["failure"]
    assert job["seconds"] > 300
    talk.model.answers["fact_extraction"] = moved_facts
    await talk.later()
    assert len(await facts(agent)) == 13


async def test_a_request_that_is_refused_for_long_is_done_without(talk: Talking) -> None:
    talk.model.answers["fact_extraction"] = lambda document: REFUSED
    agent = await reader(talk)
    [stored] = await notes(agent, note(0))
    await talk.work()
    assert await waiting(talk, agent) == {stored}
    await talk.wait_in_vain()
    assert await waiting(talk, agent) == set()
    assert "(400)" in (await degraded(agent, stored))[0]


async def test_a_failure_in_the_middle_keeps_what_was_read_and_asks_the_rest_again(talk: Talking) -> None:
    def fails_late(document: Document) -> Any:
        if len(document["memories"]) > 1:
            return answered("Too many.")
        return moved_facts(document) if len(talk.model.asked) < 5 else Reply({}, status=401)

    talk.model.answers["fact_extraction"] = fails_late
    agent = await reader(talk)
    await notes(agent, *(note(number) for number in range(4)))
    await talk.work()
    assert len(await facts(agent)) == 2
    assert len(await waiting(talk, agent)) == 2
    talk.model.answers["fact_extraction"] = moved_facts
    await talk.later()
    assert len(await facts(agent)) == 4


@pytest.mark.shows("issue5-3-facts-failing")
async def test_a_memory_that_waited_long_is_not_given_up_at_the_first_failure(talk: Talking) -> None:
    talk.model.answers["fact_extraction"] = lambda document: Reply({}, status=500)
    agent = await reader(talk)
    [stored] = await notes(agent, note(0))
    await talk.run("UPDATE llm_queue SET queued_at = queued_at - interval '1 day'")
    await talk.work()
    assert await waiting(talk, agent) == {stored}
    await talk.run("UPDATE llm_queue SET failing_since = failing_since - interval '29 minutes'")
    await talk.later()
    assert await waiting(talk, agent) == {stored}
    await talk.run("UPDATE llm_queue SET failing_since = failing_since - interval '2 minutes'")
    await talk.later()
    assert await waiting(talk, agent) == set()


@pytest.mark.parametrize("dirt", ["\x00", "\x07", "\ud800", "\r\n\t", "\x85"])
@pytest.mark.shows("issue5-3-facts-failing")
async def test_what_no_text_can_hold_is_taken_out_of_an_answer(talk: Talking, dirt: str) -> None:
    said = {
        "memories": [
            {"number": 0, "entities": [f"Maren{dirt} Holt"], "facts": [f"Maren{dirt} Holt is the user's sister."]}
        ]
    }
    talk.model.answers["fact_extraction"] = lambda document: said
    agent = await reader(talk)
    await notes(agent, SAID)
    await talk.work()
    [fact] = await facts(agent)
    assert fact.content == "Maren Holt is the user's sister."
    assert "Maren Holt" in fact.entities
    assert len(talk.model.asked) == 1


class Unclean:
    """A third-party extractor whose facts contain NUL."""

    model, prompt = "other/unclean", "other@1"

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def extract(self, said: Sequence[SourceText], *, agent_id: str) -> Sequence[Extraction]:
        return [Extraction(["The user likes \x00 goats a lot."]) for _ in said]


async def test_a_fact_that_no_memory_can_hold_counts_as_no_answer(talk: Talking) -> None:
    parts = talk.runtime.parts
    talk.runtime.adopt(replace(parts, extractor=Unclean()), None)
    agent = await reader(talk)
    [stored] = await notes(agent, SAID)
    await talk.work()
    assert await waiting(talk, agent) == {stored}
    await talk.wait_in_vain()
    assert await waiting(talk, agent) == set()
    assert len(await degraded(agent, stored)) == 1
