"""Sources that no model summarizes do not block others; in the end they are summarized extractively."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import Any

import pytest

from agentcore.memory.deriving.session_summaries import MOST_LOOKS
from agentcore.memory.params.memories import DeleteParams
from tests.fixtures.chat_model import Talking
from tests.fixtures.scripted_http import Reply
from tests.fixtures.stretches import (
    LINES,
    SALT,
    add,
    at,
    change,
    end,
    message,
    periods,
    rules,
    say,
    summaries,
    two_sessions,
    waiting,
    weekly,
)

UNREADABLE = "no json"


def _no_answer_to(talk: Talking, *words: str) -> None:
    """Makes the model answer invalidly for requests that contain all these words."""
    answer = talk.model.answers["session_summary"]

    def unreadable(document: dict[str, Any]) -> Reply | str | dict[str, Any]:
        said = " ".join(each["text"] for each in document["conversation"])
        return UNREADABLE if all(word in said for word in words) else answer(document)

    talk.model.answers["session_summary"] = unreadable


async def _failing(talk: Talking) -> dict[str, int]:
    """Counts queued memories with failed model calls, by kind of work."""
    statement = "SELECT work, count(*) FROM llm_queue WHERE failing_since IS NOT NULL GROUP BY work"
    async with talk.runtime.database.owner_transaction() as connection:
        rows = await (await connection.execute(statement.encode())).fetchall()
    return {row["work"]: row["count"] for row in rows}


@pytest.mark.shows("issue5-2-unreadable")
async def test_a_period_of_an_old_rule_that_no_model_tells_of_is_told_by_plain_code(talk: Talking) -> None:
    agent = await weekly(talk, provider="llm")
    await two_sessions(agent, talk)
    await rules(agent, provider="llm", trigger="session_end", period="month")
    _no_answer_to(talk, "Bruges", "HX-2210")
    await change(agent, await message(agent, LINES[0]), content="The warehouse in Bruges flooded on Friday.")
    await talk.work()
    assert (await _failing(talk)).keys() == {"period"}
    await talk.wait_in_vain()
    told = {each.metadata["period"]: each for each in await periods(agent)}
    assert {*told} == {"2026-W23", "2026-06"}
    assert all("Bruges" in each.content for each in told.values())
    assert told["2026-W23"].metadata["degraded"]
    assert await waiting(agent) == []


@pytest.mark.shows("issue5-2-unreadable")
async def test_the_periods_of_others_are_told_though_the_model_fails_at_one(talk: Talking) -> None:
    agent = await weekly(talk, provider="llm")
    _no_answer_to(talk, "Antwerp", "HX-2210")
    for user_id, texts in (("u-1", LINES[:2]), ("u-2", LINES[2:4])):
        for place, text in enumerate(texts):
            await say(agent, f"{user_id}-{place}", place, text, user_id=user_id)
    await talk.work()
    assert [each.user_id for each in await periods(agent)] == ["u-2"]
    # Jobs run concurrently: the model may run before the second session's summary is queued.
    assert (await _failing(talk)).keys() == {"period"}
    await talk.wait_in_vain()
    assert {each.user_id for each in await periods(agent)} == {"u-1", "u-2"}
    assert await waiting(agent) == []


async def test_what_an_old_period_is_yet_to_tell_goes_on_waiting_though_the_new_one_told_it(talk: Talking) -> None:
    agent = await weekly(talk, provider="llm")
    await two_sessions(agent, talk)
    await rules(agent, provider="llm", trigger="session_end", period="month")
    await say(agent, "c", 20, SALT)
    await talk.work()
    # The model fails only on the week without its third session.
    answer = talk.model.answers["session_summary"]
    talk.model.answers["session_summary"] = lambda document: (
        UNREADABLE if len(document["conversation"]) == 2 else answer(document)
    )
    await change(agent, await message(agent, LINES[0]), content="The warehouse in Bruges flooded on Friday.")
    await talk.work()
    told = {each.metadata["period"]: each.content for each in await periods(agent)}
    assert "Bruges" in told["2026-06"]
    assert "Bruges" not in told["2026-W23"]
    assert await waiting(agent) == ["period"]
    talk.model.answers["session_summary"] = answer
    await talk.later()
    told = {each.metadata["period"]: each.content for each in await periods(agent)}
    assert "Bruges" in told["2026-W23"]
    assert await waiting(agent) == []


@pytest.mark.shows("issue5-2-unreadable")
async def test_other_summaries_are_made_anew_though_the_model_fails_at_the_first(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm", trigger="session_end")
    for session_id, text in (("a", LINES[0]), ("b", LINES[3])):
        await say(agent, session_id, 0, text)
    await talk.work()
    _no_answer_to(talk, "Bruges")
    await change(agent, await message(agent, LINES[0]), content="The warehouse in Bruges flooded on Friday.")
    await change(agent, await message(agent, LINES[3]), content="Our broker is called Jan Devos.")
    await talk.work()
    told = {each.session_id: each.content for each in await summaries(agent)}
    assert "Devos" in told["b"]
    assert "Bruges" not in told["a"]
    assert await _failing(talk) == {"refresh": 1}
    await talk.wait_in_vain()
    assert any("Bruges" in each.content for each in await summaries(agent))


@pytest.mark.shows("issue5-2-unreadable")
async def test_other_sessions_are_told_again_though_the_model_fails_at_the_first(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm", trigger="session_end")
    for session_id, first in (("a", 0), ("b", 2)):
        await say(agent, session_id, 0, LINES[first], LINES[first + 1])
    await talk.work()
    _no_answer_to(talk, "HX-2210")
    going = [await message(agent, LINES[0]), await message(agent, LINES[2])]
    await agent.memory.delete(DeleteParams(memory_ids=going))
    await talk.work()
    assert [each.session_id for each in await summaries(agent)] == ["b"]
    assert await _failing(talk) == {"summary": 1}
    await talk.wait_in_vain()
    assert {each.session_id for each in await summaries(agent)} == {"a", "b"}


async def test_only_what_a_model_was_asked_about_has_failed(talk: Talking) -> None:
    """Uses a session that takes several requests."""
    agent = talk.agent()
    await rules(agent, provider="llm", trigger="session_end")
    long = [" ".join([LINES[place]] * 110) for place in range(3)]
    await add(
        agent,
        [{"role": "user", "content": text, "timestamp": at(place).isoformat()} for place, text in enumerate(long)],
    )
    talk.model.answers["session_summary"] = lambda document: Reply({}, status=500)
    await end(agent)
    await talk.work()
    assert len({*await waiting(agent)}) == 1
    assert 0 < (await _failing(talk))["summary"] < len(await waiting(agent))


async def test_that_others_change_what_is_told_is_no_failure_of_the_model(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm", trigger="session_end")
    await say(agent, "a", 0, LINES[0])
    going = await message(agent, LINES[0])
    times = count()

    async def again() -> None:
        await change(agent, going, content=f"The warehouse in Antwerp flooded {next(times)} times.")

    tasks = talk.model.act_during("session_summary", again, once=False)
    await talk.work()
    await asyncio.gather(*tasks)
    assert len(tasks) == MOST_LOOKS
    assert await waiting(agent) == ["summary"]
    assert await _failing(talk) == {}
