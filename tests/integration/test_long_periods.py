"""Period summaries of many sessions: what the model's merge keeps, and how often it reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agentcore.maintenance.rounds import enqueue_llm_work
from agentcore.memory.params.memories import DeleteParams
from tests.fixtures.chat_model import Talking
from tests.fixtures.memory import Agent
from tests.fixtures.stretches import LINES, SALT, change, message, periods, say, summaries, told_in, waiting, weekly

# Questions state no fact: a long text without any sentence worth keeping.
PAD = "Were some of the pallets wet and others dry on that day, and who has seen them? " * 50


async def _long(talk: Talking, agent: Agent, said: Sequence[str]) -> None:
    """Adds sessions with long summaries that end with these texts; a request fits four."""
    for place in range(len(said)):
        await say(agent, f"s{place}", 0, f"The warehouse in Antwerp flooded in hall {place}.")
    await talk.work()
    for each, text in zip(await summaries(agent), said, strict=True):
        await change(agent, each.memory_id, content=f"{PAD}{text}")


@pytest.mark.shows("issue5-2-periods")
async def test_what_a_step_keeps_as_a_fact_is_read_in_the_next(talk: Talking) -> None:
    agent = await weekly(talk, provider="llm")

    def answered(document: dict[str, Any]) -> dict[str, Any]:
        said = " ".join(each["text"] for each in document["conversation"])
        facts = ["Its policy number is HX-2210."] if "HX-2210" in said else []
        return {"summary": "Some of the pallets were wet.", "topics": [], "key_facts": facts}

    talk.model.answers["session_summary"] = answered
    await _long(talk, agent, [LINES[1], *[""] * 5])
    before = len(told_in(talk))
    await talk.work()
    steps = told_in(talk)[before:]
    assert [len(each) for each in steps] == [4, 2, 2]
    assert any("Its policy number is HX-2210." in text for text in steps[-1])
    [period] = await periods(agent)
    assert "HX-2210" in period.content


@pytest.mark.shows("issue5-2-periods")
async def test_evidence_that_the_steps_lost_stands_in_the_summary_of_all(talk: Talking) -> None:
    """In each request other sentences rank highest, but overall the surveyor's does."""
    agent = await weekly(talk, provider="llm", max_tokens=45)

    def answered(document: dict[str, Any]) -> dict[str, Any]:
        said = " ".join(each["text"] for each in document["conversation"])
        names = " and ".join(name for name in ("Verhoeven", "Mertens") if name in said)
        return {"summary": f"They spoke of {names} in Antwerp.", "topics": [], "key_facts": []}

    talk.model.answers["session_summary"] = answered
    others = [f"The salt of Verhoeven went into crate {place}." for place in range(4)]
    others += [f"The cloth of Mertens went onto pallet {place}." for place in range(4)]
    survey = "The broker Devos measured hall {} in Antwerp."
    surveys = [survey.format(place) if place % 4 else "" for place in range(8)]
    await _long(talk, agent, [f"{first} {second}" for first, second in zip(others, surveys, strict=True)])
    before = len(told_in(talk))
    await talk.work()
    steps = told_in(talk)[before:]
    assert [len(each) for each in steps] == [4, 4, 2]
    assert not any("Devos" in text for text in steps[-1])
    [period] = await periods(agent)
    assert period.content.startswith("They spoke of Verhoeven and Mertens in Antwerp.")
    assert "The broker Devos measured hall" in period.content


@pytest.mark.shows("issue5-2-periods")
async def test_a_model_reads_a_period_again_when_it_has_grown_by_a_quarter(talk: Talking) -> None:
    agent = await weekly(talk, provider="llm")
    told: list[int] = []
    for place in range(14):
        await say(agent, f"s{place}", 0, f"The warehouse in Antwerp flooded in hall {place}.")
        before = len(told_in(talk))
        await talk.work()
        told += [len(each) for each in told_in(talk)[before:] if len(each) > 1]
    assert told == [2, 3, 4, 5, 7, 9, 12]
    assert (await waiting(agent)) == ["period"] * 2
    [period] = await periods(agent)
    assert period.metadata["summarised_count"] == 12


@pytest.mark.shows("issue5-2-periods")
async def test_a_model_reads_the_last_sessions_of_a_period_that_has_been_quiet(talk: Talking) -> None:
    agent = await weekly(talk, provider="llm")
    for place in range(6):
        await say(agent, f"s{place}", 0, f"The warehouse in Antwerp flooded in hall {place}.")
        await talk.work()
    assert await waiting(agent) == ["period"]
    await _round(talk)
    assert await waiting(agent) == ["period"]
    await talk.run("UPDATE llm_queue SET queued_at = queued_at - interval '7 hours'")
    await _round(talk)
    assert await waiting(agent) == []
    [period] = await periods(agent)
    assert period.metadata["summarised_count"] == 6


@pytest.mark.shows("issue5-2-periods")
async def test_what_changed_or_went_is_told_at_once(talk: Talking) -> None:
    agent = await weekly(talk, provider="llm")
    halls = [f"The warehouse in Antwerp flooded in hall {place}." for place in range(6)]
    for place, text in enumerate(halls):
        await say(agent, f"s{place}", 0, text)
        await talk.work()
    await change(agent, await message(agent, halls[0]), content=SALT)
    await talk.work()
    [period] = await periods(agent)
    assert SALT.rstrip(".") in period.content
    assert period.metadata["summarised_count"] == 6
    await agent.memory.delete(DeleteParams(memory_ids=[await message(agent, SALT)]))
    await talk.work()
    [period] = await periods(agent)
    assert period.metadata["summarised_count"] == 5
    assert SALT.rstrip(".") not in period.content


async def test_sentences_of_a_growing_period_are_chosen_anew_with_each_session(talk: Talking) -> None:
    agent = await weekly(talk)
    for place in range(6):
        await say(agent, f"s{place}", 0, f"The warehouse in Antwerp flooded in hall {place}.")
        await talk.work()
    [period] = await periods(agent)
    assert period.metadata["summarised_count"] == 6


async def test_periods_that_wait_for_more_do_not_keep_others_from_being_told(
    talk: Talking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentcore.memory.deriving.period_summaries.BATCH", 1)
    agent = await weekly(talk, provider="llm")
    for user_id, count in (("u-1", 6), ("u-2", 6), ("u-3", 2)):
        for place in range(count):
            text = f"The warehouse in Antwerp flooded in hall {place}."
            await say(agent, f"{user_id}-{place}", 0, text, user_id=user_id)
            await talk.work()
    told = {each.user_id: each.metadata["summarised_count"] for each in await periods(agent)}
    assert told == {"u-1": 5, "u-2": 5, "u-3": 2}
    assert await waiting(agent) == ["period"] * 2


async def _round(talk: Talking) -> None:
    await enqueue_llm_work(talk.runtime.database, talk.runtime.parts)
    await talk.work()
