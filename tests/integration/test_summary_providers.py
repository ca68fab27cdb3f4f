"""Providers of stretch summaries, their results, and warnings about settings."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.limits import MAX_TEXT_CHARS
from agentcore.memory.deriving import session_summaries
from agentcore.memory.params.agent_settings import NOT_RECOMMENDED
from agentcore.memory.params.memories import RetrieveParams
from agentcore.runtime import open_runtime
from tests.fixtures.chat_model import Talking
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services
from tests.fixtures.stretches import (
    LINES,
    add,
    at,
    change,
    compaction,
    end,
    lines,
    message,
    rules,
    summaries,
    told_in,
    waiting,
)

# --- providers ---------------------------------------------------------------------------------------------


@pytest.mark.shows("issue5-4-segments")
async def test_a_long_session_gives_several_summaries_each_of_what_one_request_holds(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm", trigger="session_end")
    long = [
        {
            "role": "user",
            "timestamp": at(place).isoformat(),
            "content": f"Part {place} of the report. " + "The barge was late again. " * 200,
        }
        for place in range(8)
    ]
    await add(agent, long)
    await end(agent)
    await talk.work()
    made = await summaries(agent)
    assert len(made) == len(told_in(talk)) == 3
    assert sum(each.metadata["summarised_count"] for each in made) == 8
    for document in talk.model.documents("session_summary"):
        assert sum(len(each["text"].encode()) for each in document["conversation"]) <= 16_384
    assert [each.metadata["from"] for each in made] == sorted(each.metadata["from"] for each in made)


@pytest.mark.shows("issue5-4-providers")
async def test_the_callers_compactions_are_used_and_the_model_is_asked_for_the_rest(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="compaction_aware", trigger="session_end")
    await add(agent, [*lines(0, 4), compaction("The flood in Antwerp, the policy and the broker.", 3), *lines(4, 6)])
    await end(agent)
    await talk.work()
    assert told_in(talk) == [list(LINES[4:6])]
    own, made = sorted(await summaries(agent), key=lambda each: each.timestamp)
    assert own.content == "The flood in Antwerp, the policy and the broker."
    assert len(own.links) == 4
    assert made.metadata["summarised_count"] == 2
    assert own.memory_type == made.memory_type == "semantic"


@pytest.mark.parametrize(
    "written",
    [
        {"until": "yesterday"},
        {"until": 5},
        {"until": "2026-06-01T12:00:00"},
        {"until": "2026-06-01T13:00:00+00:00", "from": "2026-06-01T12:00:00"},
    ],
)
async def test_metadata_that_only_look_like_a_compaction_cover_nothing(talk: Talking, written: Any) -> None:
    agent = talk.agent()
    await rules(agent, provider="compaction_aware", trigger="session_end")
    await add(agent, lines(0, 2))
    await agent.stored_id("Not by this service.", session_id="s", metadata={"compaction": written})
    await end(agent)
    await talk.work()
    assert told_in(talk) == [list(LINES[:2])]


@pytest.mark.parametrize("metadata", [{"compaction": "high pressure"}, {"compaction": {}}])
async def test_metadata_of_a_callers_own_by_that_name_are_no_compaction(
    talk: Talking, metadata: dict[str, Any]
) -> None:
    agent = talk.agent()
    await rules(agent, provider="compaction_aware", trigger="session_end")
    await add(agent, lines(0, 2))
    await agent.stored_id("The compressor in hall 4 was repaired.", session_id="s", metadata=metadata)
    await end(agent)
    await talk.work()
    assert told_in(talk) == [[*LINES[:2], "The compressor in hall 4 was repaired."]]


async def test_reasoning_alone_is_neither_stored_nor_summarized(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm", trigger="session_end")
    stored = await agent.store("<think>I had better say nothing of the goats.</think>", session_id="s")
    assert (stored.status, stored.memory_id) == ("rejected", None)
    await end(agent)
    await talk.work()
    assert talk.model.asked == []
    assert await summaries(agent) == []


async def test_what_lies_between_compactions_is_summarised(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="compaction_aware", trigger="session_end")
    await add(agent, [*lines(0, 6), compaction("The broker and the deadline of the claim.", 4, 3)])
    await end(agent)
    await talk.work()
    assert told_in(talk) == [[*LINES[:3], LINES[5]]]


@pytest.mark.shows("issue5-5-triggers")
async def test_each_compaction_is_a_memory_at_once_and_costs_no_request(talk: Talking) -> None:
    agent = talk.agent()
    assert await rules(agent, provider="compaction_aware", trigger="compaction") == []
    await add(agent, lines(0, 4))
    await add(agent, [compaction("The flood in Antwerp and the policy.", 2)])
    await talk.work()
    [own] = await summaries(agent)
    assert len(own.links) == 3
    assert talk.model.asked == []
    await end(agent)
    await talk.work()
    assert told_in(talk) == [[LINES[3]]]


@pytest.mark.shows("issue5-4-providers")
async def test_passed_through_what_was_said_is_kept_as_it_was_said(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="passthrough", trigger="session_end", max_tokens=40)
    await add(agent, lines(0, 5))
    await end(agent)
    made = await summaries(agent)
    assert len(made) > 1
    assert [line for each in made for line in each.content.splitlines()] == [f"user: {line}" for line in LINES[:5]]
    assert talk.model.asked == []


@pytest.mark.shows("issue5-4-providers")
async def test_the_agents_own_wish_stands_behind_the_rules_and_not_in_their_place(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm", prompt="Write like a pirate.")
    await add(agent, lines(0, 5))
    await talk.work()
    system = talk.server.received[0].json["messages"][0]["content"]
    assert system.endswith("contradict the rules above:\nWrite like a pirate.")


async def test_numbers_that_nobody_said_are_left_out_and_that_is_told(talk: Talking) -> None:
    talk.model.answers["session_summary"] = lambda document: {
        "summary": "The damage is 40,000 euros. The ransom is 7,777,777 euros.",
        "topics": [],
        "key_facts": ["The policy number is HX-2210.", "The safe opens with 9001."],
    }
    agent = talk.agent()
    await rules(agent, provider="llm")
    await add(agent, lines(0, 5))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content.startswith("The damage is 40,000 euros.\n- The policy number is HX-2210.\n")
    assert summary.facts[0] == "The policy number is HX-2210."
    assert "7,777,777" not in summary.content
    assert "9001" not in summary.content
    assert summary.metadata["degraded"] == "it told of names or numbers that nobody said"


@pytest.mark.shows("issue5-2-quality")
async def test_a_model_that_speaks_of_something_else_is_not_kept(talk: Talking) -> None:
    talk.model.answers["session_summary"] = lambda document: {
        "summary": "They had a nice talk.",
        "topics": ["weather"],
        "key_facts": [],
    }
    agent = talk.agent()
    await rules(agent, provider="llm")
    await add(agent, lines(0, 5))
    await talk.work()
    [summary] = await summaries(agent)
    assert {each.removeprefix("user: ") for each in summary.content.splitlines()} <= {*LINES[:5]}
    assert summary.metadata["by"] == "extractive"
    assert summary.metadata["degraded"] == "it told of no name and no number that was said"


async def test_a_summary_is_found_by_its_meaning(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="llm")
    await add(agent, lines(0, 5))
    await talk.work()
    found = await agent.memory.retrieve(RetrieveParams(query="What flooded?", memory_types=["semantic"]))
    assert [each.tags for each in found.memories] == [["session_summary"]]


@pytest.mark.shows("issue5-5-triggers")
async def test_with_the_compaction_trigger_alone_each_compaction_is_the_one_memory_of_its_stretch(
    talk: Talking,
) -> None:
    agent = talk.agent()
    assert await rules(agent, trigger="compaction") == []
    await add(agent, [*lines(0, 4), compaction("The flood in Antwerp and the policy.", 3)])
    await talk.work()
    await end(agent)
    await talk.work()
    [own] = await summaries(agent)
    assert (own.content, len(own.links)) == ("The flood in Antwerp and the policy.", 4)
    assert talk.model.asked == []


@pytest.mark.parametrize(("first", "until", "left"), [(None, 8, 1), (6, 9, 6)])
async def test_a_compaction_of_much_behind_more_that_waits_takes_all_of_its_own(
    talk: Talking, monkeypatch: pytest.MonkeyPatch, first: int | None, until: int, left: int
) -> None:
    monkeypatch.setattr(session_summaries, "MOST_MESSAGES", 4)
    agent = talk.agent()
    await rules(agent, trigger="compaction")
    await add(agent, lines(0, 10))
    await add(agent, [compaction("The flood in Antwerp.", until, first)])
    await talk.work()
    [own] = await summaries(agent)
    assert len(own.links) == 10 - left
    assert await waiting(agent) == ["summary"] * left


@pytest.mark.parametrize("provider", ["extractive", "llm"])
@pytest.mark.shows("issue5-4-segments")
async def test_a_long_stretch_gives_several_memories_each_of_its_own_messages(talk: Talking, provider: str) -> None:
    agent = talk.agent()
    await rules(agent, provider=provider, trigger="session_end")
    await add(agent, lines(0, 50))
    await end(agent)
    await talk.work()
    made = await summaries(agent)
    assert [each.metadata["summarised_count"] for each in made] == [16, 17, 17]
    assert len({link.target_id for each in made for link in each.links}) == 50


@pytest.mark.shows("issue5-4-providers")
async def test_a_message_of_full_length_is_passed_through_as_far_as_a_memory_holds_it(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="passthrough", trigger="session_end")
    await add(agent, [{"content": ("The barge was late. " * 14_000)[:MAX_TEXT_CHARS]}])
    await end(agent)
    [summary] = await summaries(agent)
    assert len(summary.content) <= MAX_TEXT_CHARS
    assert summary.content.startswith("user: The barge was late.")
    assert summary.metadata["degraded"] == "it was longer than a memory may be, and is cut"


async def test_what_is_too_much_to_be_passed_through_again_is_told_in_sentences_of_it(talk: Talking) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end", max_tokens=60)
    await add(agent, lines(0, 10))
    await end(agent)
    await rules(agent, provider="passthrough", trigger="session_end", max_tokens=60)
    await change(agent, await message(agent, LINES[2]), content="The damage comes to 50,000 euros.")
    await talk.work()
    [summary] = await summaries(agent)
    assert talk.runtime.parts.count_tokens(summary.content) <= 60
    assert summary.version == 2


# --- warnings -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wish", "warned"),
    [
        ({"provider": "llm"}, ""),
        ({"provider": "none"}, "embedding without summarization is not recommended"),
        ({"provider": "llm", "trigger": "compaction"}, "does not use the summaries of the compactions"),
    ],
)
@pytest.mark.shows("issue5-4-matrix")
async def test_an_unwise_wish_is_kept_with_a_warning(talk: Talking, wish: dict[str, Any], warned: str) -> None:
    warnings = await rules(talk.agent(), **wish)
    assert len(warnings) == (1 if warned else 0)
    assert all(warned in each for each in warnings)


# Summaries, vectors, whether a search for the flood finds the summary, and the warning: seed 003.
@pytest.mark.parametrize(
    ("provider", "embedding_model", "found", "warned"),
    [
        ("none", "none", 0, []),
        ("extractive", "none", 1, []),
        ("none", "hashing", 0, [NOT_RECOMMENDED]),
        ("extractive", "hashing", 1, []),
    ],
)
@pytest.mark.shows("issue5-4-matrix")
async def test_each_row_of_the_matrix_finds_what_it_says(
    services: Services, provider: str, embedding_model: str, found: int, warned: list[str]
) -> None:
    async with open_runtime(settings_for(services, embedding_model=embedding_model)) as runtime:
        agent = Agent(runtime)
        assert await rules(agent, provider=provider) == warned
        await add(agent, lines(0, 5))
        await runtime.jobs.run_pending()
        query = "Which warehouse in Antwerp flooded on Friday?"
        assert LINES[0] in await agent.found(query, memory_types=["episodic"])
        told = await agent.memory.retrieve(
            RetrieveParams.model_validate({"query": query, "memory_types": ["semantic"]})
        )
        assert [each.tags for each in told.memories] == [["session_summary"]] * found
        assert all("Antwerp" in each.content for each in told.memories)
        by_vector = {each.similarity is not None for each in told.memories}
        assert by_vector == ({embedding_model == "hashing"} if found else set())


@pytest.mark.shows("issue5-4-matrix")
async def test_without_a_model_its_work_is_done_by_extraction_and_that_is_told(services: Services) -> None:
    async with open_runtime(settings_for(services, embedding_model="none")) as runtime:
        agent = Agent(runtime)
        assert "has no language model" in (await rules(agent, provider="llm"))[0]
        assert await rules(agent, provider="passthrough") == []
        await rules(agent, provider="llm")
        await add(agent, lines(0, 3))
        ended = await end(agent)
        [summary] = await summaries(agent)
        assert ended.summary_id == summary.memory_id
        assert summary.metadata["degraded"] == "this service has no language model"
