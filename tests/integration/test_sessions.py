"""Whole sessions: added by message, ended, summarized, cleared."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from agentcore.memory.models import MemoryRecord, MemoryType
from agentcore.memory.params.changes import HistoryParams
from agentcore.memory.params.memories import ListParams, RetrieveParams, StatsParams
from agentcore.memory.params.sessions import (
    AddSessionParams,
    AddSessionResult,
    ClearParams,
    EndSessionParams,
    EndSessionResult,
    SummarizeParams,
)
from tests.fixtures.memory import Agent

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
TALK = (
    ("user", "Our warehouse in Antwerp flooded on Friday and the pallets on the ground floor are lost."),
    ("assistant", "I am sorry to hear that. Shall I file the insurance claim for the Antwerp warehouse?"),
    ("user", "Yes. The policy number is HX-2210 and the damage is about 40,000 euros."),
    ("assistant", "The claim for the flooded Antwerp warehouse is filed under HX-2210."),
    ("user", "Thanks!"),
    ("user", "My daughter plays the cello, by the way."),
)


def messages(talk: tuple[tuple[str, str], ...] = TALK) -> list[dict[str, Any]]:
    return [
        {
            "role": role,
            "content": content,
            "message_id": f"m{place}",
            "timestamp": (NOON + timedelta(minutes=place)).isoformat(),
        }
        for place, (role, content) in enumerate(talk)
    ]


def crates(count: int) -> list[dict[str, Any]]:
    return [
        {
            "content": f"Crate {place} of the shipment to Ghent holds {place * 3} lamps.",
            "timestamp": (NOON + timedelta(minutes=place)).isoformat(),
        }
        for place in range(count)
    ]


async def add(agent: Agent, session_id: str = "s-1", **values: Any) -> AddSessionResult:
    given = {"session_id": session_id, "messages": messages(), **values}
    return await agent.memory.add_session(AddSessionParams.model_validate(given))


async def end(agent: Agent, session_id: str = "s-1", **values: Any) -> EndSessionResult:
    return await agent.memory.end_session(EndSessionParams(session_id=session_id, **values))


async def held(agent: Agent, **filters: Any) -> list[MemoryRecord]:
    result = await agent.memory.list(ListParams.model_validate({**filters, "descending": False}))
    return result.memories


@pytest.mark.shows("issue4-7.1")
async def test_each_message_is_a_memory_of_its_speaker_and_its_time(agent: Agent) -> None:
    added = await add(agent, user_id="u-1", tags=["claims"], force=True)
    assert (added.success, added.stored_count) == (True, 6)
    memories = await held(agent, session_id="s-1")
    assert [(each.speaker, each.content) for each in memories] == list(TALK)
    assert [each.external_id for each in memories] == [f"m{place}" for place in range(6)]
    assert [each.relevance_score for each in memories] == pytest.approx([0.5, 0.4, 0.5, 0.4, 0.5, 0.5])
    assert {(each.user_id, each.tags[0], each.timestamp.date()) for each in memories} == {
        ("u-1", "claims", NOON.date())
    }


async def test_thanks_and_the_like_are_passed_over_and_no_failure(agent: Agent) -> None:
    added = await add(agent)
    assert (added.success, added.stored_count) == (True, 5)
    assert (added.results[4].status, added.results[4].code) == ("rejected", None)


async def test_a_session_added_again_with_more_stores_only_what_is_new(agent: Agent) -> None:
    await add(agent, messages=messages()[:4], force=True)
    again = await add(agent, force=True)
    assert [result.status for result in again.results] == ["existing"] * 4 + ["stored"] * 2
    assert len(await held(agent)) == 6


async def test_a_bad_message_is_told_by_its_place_and_the_others_are_stored(agent: Agent) -> None:
    changed = messages()
    await add(agent, messages=changed[:1])
    changed[0]["content"] = "Something else under the same id."
    added = await add(agent, messages=changed[:2])
    assert [result.status for result in added.results] == ["rejected", "stored"]
    assert added.success is False


@pytest.mark.shows("issue4-7.1")
async def test_the_end_keeps_a_summary_that_is_tied_to_what_it_is_of(agent: Agent) -> None:
    await add(agent, user_id="u-1")
    ended = await end(agent, max_tokens=60)
    assert "Antwerp" in ended.summary
    assert "Thanks" not in ended.summary
    assert ended.summary_id is not None
    summary = await agent.get(ended.summary_id)
    assert (summary.memory_type, summary.session_id, summary.user_id) == (MemoryType.SEMANTIC, "s-1", "u-1")
    sources = {each.memory_id: each.content for each in await held(agent, memory_types=["episodic"])}
    assert {link.relation for link in summary.links} == {"summarises"}
    told = [line.split(": ", 1)[1] for line in summary.content.splitlines()]
    assert all(any(sentence in sources[link.target_id] for link in summary.links) for sentence in told)


@pytest.mark.shows("issue5-4-segments")
async def test_ended_again_it_tells_only_what_was_said_since(agent: Agent) -> None:
    await add(agent, messages=messages()[:4])
    first, again = await end(agent), await end(agent)
    assert (first.summary_ids, first.summary) == (again.summary_ids, again.summary)
    await add(agent, messages=messages())
    later = await end(agent)
    assert later.summary == "user: My daughter plays the cello, by the way."
    before, since = await held(agent, memory_types=["semantic"])
    assert [before.memory_id, since.memory_id] == [first.summary_id, later.summary_id]
    assert set(before.content.splitlines()).isdisjoint(since.content.splitlines())
    told = [link.target_id for each in (before, since) for link in each.links]
    assert len(told) == len(set(told)) == 5


@pytest.mark.shows("issue5-4-segments")
async def test_a_long_session_gives_several_memories_each_of_its_own_messages(agent: Agent) -> None:
    await add(agent, messages=crates(200), force=True)
    ended = await end(agent)
    kept = await held(agent, tags=["session_summary"], limit=50)
    assert [each.memory_id for each in kept] == ended.summary_ids
    assert [each.metadata["summarised_count"] for each in kept] == [20] * 10
    told = [link.target_id for each in kept for link in each.links]
    assert len(told) == len(set(told)) == 200
    assert ended.summary == "\n".join(each.content for each in kept)
    assert [each.timestamp - NOON for each in kept] == [timedelta(minutes=end) for end in range(19, 200, 20)]
    assert (await end(agent)).summary_ids == ended.summary_ids[-1:]


async def test_a_session_ended_by_several_at_once_is_told_once(agent: Agent) -> None:
    await add(agent, messages=crates(60), force=True)
    await asyncio.gather(*(end(agent) for _ in range(4)))
    kept = await held(agent, tags=["session_summary"])
    told = [link.target_id for each in kept for link in each.links]
    assert (len(kept), len(told), len(set(told))) == (3, 60, 60)
    assert {(await end(agent)).summary_id for _ in range(2)} == {kept[-1].memory_id}


@pytest.mark.shows("issue5-4-segments")
async def test_a_pause_parts_the_talks_of_a_session(agent: Agent) -> None:
    morning = messages()[:4]
    evening = [
        {
            **each,
            "message_id": f"e{place}",
            "content": each["content"].replace("Antwerp", "Bruges"),
            "timestamp": (NOON + timedelta(hours=6, minutes=place)).isoformat(),
        }
        for place, each in enumerate(morning)
    ]
    await add(agent, messages=[*morning, *evening])
    await end(agent)
    before, after = await held(agent, tags=["session_summary"])
    assert ("Antwerp" in before.content, "Bruges" in before.content) == (True, False)
    assert ("Antwerp" in after.content, "Bruges" in after.content) == (False, True)


async def test_without_rules_the_callers_own_summaries_are_used_and_nothing_is_told_twice(agent: Agent) -> None:
    own = {
        "role": "assistant",
        "content": "The Antwerp warehouse flooded; claim HX-2210.",
        "timestamp": (NOON + timedelta(minutes=3)).isoformat(),
        "compacted_until": (NOON + timedelta(minutes=3)).isoformat(),
    }
    await add(agent, messages=[*messages()[:4], own, messages()[5]])
    ended = await end(agent)
    kept = await held(agent, tags=["session_summary"])
    assert [each.content for each in kept] == [own["content"], "user: " + TALK[5][1]]
    assert [len(each.links) for each in kept] == [4, 1]
    assert ended.summary_ids == [each.memory_id for each in kept]


@pytest.mark.shows("issue4-7.2")
async def test_at_its_end_important_and_used_working_memories_last_and_the_others_are_over(agent: Agent) -> None:
    kept = {"session_id": "s-1", "memory_type": "working"}
    important = await agent.stored_id("The client signs on Monday at ten.", **kept, importance=0.8)
    used = await agent.stored_id("The draft contract has four pages.", **kept, importance=0.1)
    await agent.stored_id("The printer is warming up now.", **kept, importance=0.1)
    other = await agent.stored_id("Another call is on hold now.", memory_type="working", session_id="s-2")
    parts = agent.runtime.parts
    for _ in range(3):
        parts.accesses.note(agent.agent_id, [used], parts.clock())
    await parts.accesses.flush(parts.storage)
    ended = await end(agent, summarize=False)
    assert (ended.promoted_count, ended.ended_count, ended.summary_id, ended.summary) == (2, 1, None, "")
    lasting = {each.memory_id: each for each in await held(agent, memory_types=["episodic"])}
    assert set(lasting) == {important, used}
    assert {each.expires_at for each in lasting.values()} == {None}
    assert [each.memory_id for each in await held(agent, memory_types=["working"])] == [other]
    history = await agent.memory.history(HistoryParams(memory_id=important))
    assert [(change.operation, change.version) for change in history.changes] == [("promote", 2)]


@pytest.mark.parametrize(("importance", "lasting"), [(0.9, True), (0.1, False)])
async def test_a_superseded_working_memory_goes_the_way_of_what_took_its_place(
    agent: Agent, importance: float, lasting: bool
) -> None:
    said = [f"The API rate limit is {limit} requests per minute." for limit in (60, 90, 120)]
    kept = {"session_id": "s-1", "memory_type": "working"}
    first, second = [await agent.stored_id(content, **kept, importance=0.9) for content in said[:2]]
    between = datetime.now(UTC)
    last = await agent.stored_id(said[2], **kept, importance=importance)
    assert (await agent.get(first)).superseded_by == second
    ended = await end(agent, summarize=False)
    assert (ended.promoted_count, ended.ended_count) == (int(lasting), 3 - int(lasting))
    there = {each.memory_id: each.memory_type for each in await held(agent)}
    assert there == (dict.fromkeys((first, second, last), MemoryType.EPISODIC) if lasting else {})
    assert await agent.found("API rate limit") == ([said[2]] if lasting else [])
    assert await agent.found("API rate limit", as_of=between) == ([said[1]] if lasting else [])
    assert (await end(agent, summarize=False)).ended_count == 0


async def test_a_summary_takes_what_says_most_within_its_tokens(agent: Agent) -> None:
    await add(agent)
    for max_tokens in (12, 40, 400):
        result = await agent.memory.summarize(SummarizeParams(session_id="s-1", max_tokens=max_tokens))
        assert result.token_count <= max_tokens
        assert result.memory_count == 5
        assert result.token_count == agent.runtime.parts.count_tokens(result.summary) or not result.summary
    lines = result.summary.splitlines()
    assert lines[0].startswith("user: Our warehouse in Antwerp")
    assert not any(line.endswith("?") for line in lines)


async def test_what_matches_nothing_has_an_empty_summary(agent: Agent) -> None:
    result = await agent.memory.summarize(SummarizeParams(session_id="none"))
    assert (result.summary, result.token_count, result.memory_ids, result.memory_count) == ("", 0, [], 0)
    ended = await end(agent, "none")
    assert (ended.summary_id, ended.promoted_count, ended.ended_count) == (None, 0, 0)


@pytest.mark.shows("issue4-7.1")
async def test_a_session_a_user_or_everything_is_cleared_and_counted(agent: Agent) -> None:
    await add(agent, "s-1", user_id="u-1")
    await add(agent, "s-2", user_id="u-1", messages=messages()[:3])
    await add(agent, "s-3", user_id="u-2", messages=messages()[:2])
    counts = [
        (await agent.memory.clear(ClearParams(**what))).cleared_count
        for what in ({"session_id": "s-1"}, {"user_id": "u-1"}, {"session_id": "s-1"})
    ]
    assert counts == [5, 3, 0]
    assert (await agent.memory.stats(StatsParams())).total == 2
    assert (await agent.memory.clear(ClearParams(all=True, confirm=True))).cleared_count == 2


@pytest.mark.parametrize(
    "what", [{}, {"session_id": "s", "user_id": "u"}, {"all": True}, {"all": True, "session_id": "s", "confirm": True}]
)
def test_clearing_says_exactly_what(what: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"session_id|confirm"):
        ClearParams.model_validate(what)


async def test_a_summary_does_not_hide_what_it_was_made_of(agent: Agent) -> None:
    await add(agent)
    await end(agent)
    result = await agent.memory.retrieve(RetrieveParams(query="What is the policy number?", k=5))
    assert any(each.content == TALK[2][1] for each in result.memories)


async def test_a_summary_takes_no_facts_place_and_tells_none_that_is_over(agent: Agent) -> None:
    await agent.stored_id("The project budget is 10,000 euros.", session_id="s-9")
    current = await agent.stored_id("The project budget is 12,000 euros now.", session_id="s-9")
    ended = await end(agent, "s-9")
    assert "10,000" not in ended.summary
    assert (await agent.get(current)).superseded_by is None
    assert (await end(agent, "s-9")).summary_id == ended.summary_id


async def test_a_retried_end_of_a_session_with_working_memory_keeps_one_summary(agent: Agent) -> None:
    await add(agent, "s-8")
    await agent.stored_id("The client signs on Monday at ten.", session_id="s-8", memory_type="working")
    assert (await end(agent, "s-8")).summary_id == (await end(agent, "s-8")).summary_id


async def test_what_only_calls_a_tool_is_passed_over_and_of_parts_the_texts_are_kept(agent: Agent) -> None:
    """Messages of OpenAI's chat completions, as their clients write them."""
    calls = [{"id": "c-1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}]
    unused: dict[str, object] = {"refusal": None, "annotations": [], "audio": None, "function_call": None}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}
    added = await add(
        agent,
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "Is it cold in Oslo?"}, picture]},
            {"role": "assistant", "content": None, "tool_calls": calls, **unused},
            {"role": "tool", "content": "Oslo has minus four degrees.", "tool_call_id": "c-1"},
            {"role": "user", "content": [picture]},
        ],
    )
    assert added.success
    assert [result.status for result in added.results] == ["stored", "rejected", "stored", "rejected"]
    assert all(added.results[place].code is None for place in (1, 3))
    assert "no text" in str(added.results[1].reason)
    kept = await held(agent, session_id="s-1")
    assert {each.content for each in kept} == {"Is it cold in Oslo?", "Oslo has minus four degrees."}
    assert all(set(each.metadata) == {"role"} for each in kept)


async def test_one_bad_message_is_refused_alone_and_a_misspelt_field_refuses_the_call(agent: Agent) -> None:
    added = await add(
        agent,
        messages=[
            {"content": "The ferry to Kiel leaves at nine."},
            {"content": " "},
            {"role": "user"},
            {"content": 7},
            {"content": "Lost.", "timestamp": "yesterday"},
            {"content": "The harbour freezes in January."},
        ],
    )
    assert (added.success, added.stored_count) == (False, 2)
    assert [result.code for result in added.results] == [None, -32602, -32602, -32602, -32602, None]
    assert [str(result.reason).split(" ")[0] for result in added.results[1:5]] == [
        "content",
        "content",
        "content",
        "timestamp",
    ]
    with pytest.raises(ValidationError, match="contents"):
        await add(agent, messages=[{"content": "Stored?"}, {"contents": "x"}])
    assert len(await held(agent)) == 2
