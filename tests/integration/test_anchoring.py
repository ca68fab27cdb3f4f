"""A time told by an event: the agent's own memories say when that was, and the receipt says which of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from agentcore.memory.models import Receipt
from agentcore.memory.params.memories import RetrieveParams, RetrieveResult
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services

NOW = "2026-06-10T12:00:00Z"
TRIP = "Last weekend was the trip to Lisbon."
EARLIER, LATER = "Paid 120 euros for the car insurance.", "Paid 480 euros for the car tyres."


async def asked(agent: Agent, query: str, **values: Any) -> RetrieveResult:
    params = {"query": query, "asked_at": NOW, "k": 5, "explain": True, **values}
    return await agent.memory.retrieve(RetrieveParams.model_validate(params))


def times(result: RetrieveResult) -> dict[str, float]:
    """What the term `time` is worth to each memory found."""
    return {each.content: (each.terms or {})["time"].value for each in result.memories}


def told(receipt: Receipt) -> Any:
    """What the receipt says of the one anchor."""
    [anchor] = receipt.searched["anchors"]
    return anchor


@pytest.fixture
async def driver(agent: Agent) -> AsyncIterator[Agent]:
    """An agent who paid for a car before and after a trip, and noted a lot that says nothing of either."""
    await agent.stored_id(EARLIER, timestamp="2026-03-02T09:00:00Z")
    await agent.stored_id(TRIP, timestamp="2026-04-15T09:00:00Z", tags=["travel"])
    await agent.stored_id(LATER, timestamp="2026-05-20T09:00:00Z")
    for number in range(30):
        await agent.store(f"Meter {number + 100} was read.", timestamp="2025-01-02T00:00:00Z", force=True)
    yield agent


@pytest.mark.parametrize(("relation", "first", "second", "window"), [
    ("before", EARLIER, LATER, ["0002-01-01T00:00:00+00:00", "2026-04-11T00:00:00+00:00"]),
    ("after", LATER, EARLIER, ["2026-04-13T00:00:00+00:00", "9998-12-31T00:00:00+00:00"]),
    ("since", LATER, EARLIER, ["2026-04-11T00:00:00+00:00", "9998-12-31T00:00:00+00:00"]),
])
async def test_what_was_before_or_after_an_event_comes_first(
    driver: Agent, relation: str, first: str, second: str, window: list[str]
) -> None:
    result = await asked(driver, f"What was paid for the car {relation} the trip?")
    found = [each.content for each in result.memories if each.content in (EARLIER, LATER)]
    assert found == [first, second]
    assert times(result)[first] == 1.0
    assert times(result)[second] == 0.0
    anchor = told(result.receipt)
    assert anchor["phrase"] == f"{relation} the trip"
    assert anchor["windows"] == [window]
    [teller] = [each.memory_id for each in result.memories if each.content == TRIP]
    assert anchor["memory_id"] == str(teller)


async def test_the_memory_that_tells_the_event_keeps_its_own_time(driver: Agent) -> None:
    result = await asked(driver, "What did Lisbon cost before the trip?")
    assert times(result)[TRIP] == 1.0


async def test_what_happened_during_an_event_is_found_though_no_word_or_vector_does(driver: Agent) -> None:
    fado = "Heard fado at the harbour."
    await driver.stored_id(fado, timestamp="2026-04-11T21:00:00Z")
    result = await asked(driver, "What was done during the trip?")
    assert result.receipt.candidates["temporal"] == 2
    assert times(result)[fado] == 1.0


async def test_an_event_that_no_memory_surely_tells_opens_no_window_and_the_receipt_says_so(
    driver: Agent,
) -> None:
    result = await asked(driver, "What was paid for the car before the wedding?")
    anchor = told(result.receipt)
    assert anchor["windows"] == []
    assert anchor["reason"] == "no memory surely speaks of it"
    assert "temporal" not in result.receipt.candidates
    assert set(times(result).values()) == {0.0}


async def test_an_event_that_happened_twice_is_not_guessed_at(driver: Agent) -> None:
    again = "Last weekend was the trip to Lisbon, as ever."
    await driver.stored_id(again, timestamp="2026-01-15T09:00:00Z")
    assert told((await asked(driver, "What was paid after the trip?")).receipt)["windows"] == []


async def test_a_memory_that_says_no_time_tells_the_event_by_when_it_was_said(driver: Agent) -> None:
    moved = await driver.stored_id("We moved to Berlin.", timestamp="2026-05-01T10:00:00Z")
    result = await asked(driver, "What have I paid since we moved to Berlin?")
    assert told(result.receipt) == {
        "phrase": "since we moved to Berlin",
        "windows": [["2026-05-01T00:00:00+00:00", "9998-12-31T00:00:00+00:00"]],
        "memory_id": str(moved),
    }
    assert times(result)[LATER] == 1.0


async def test_filters_hold_for_what_tells_the_event_too(driver: Agent) -> None:
    query = "What was paid for the car before the trip?"
    assert told((await asked(driver, query, tags=["travel"])).receipt)["windows"] != []
    assert told((await asked(driver, query, memory_types=["semantic"])).receipt)["windows"] == []


async def test_another_agents_event_tells_nothing(driver: Agent, runtime: Runtime) -> None:
    other = Agent(runtime)
    await other.stored_id(LATER, timestamp="2026-05-20T09:00:00Z")
    assert told((await asked(other, "What was paid before the trip?")).receipt)["windows"] == []


async def test_a_time_of_the_calendar_is_narrowed_by_the_event(driver: Agent) -> None:
    result = await asked(driver, "What was paid in April after the trip?", k=40)
    assert told(result.receipt)["windows"] != []
    assert times(result)[LATER] == 0.0
    assert times(result)[EARLIER] == 0.0


@pytest.mark.parametrize("query", [
    "What was paid before lunch?", "What was paid before 5 pm?", "Was the car paid after all?",
])
async def test_without_an_event_nothing_more_is_searched(driver: Agent, query: str) -> None:
    receipt = (await asked(driver, query)).receipt
    assert "anchors" not in receipt.searched
    assert "anchor" not in receipt.timings_ms


async def test_a_callers_vector_leaves_events_to_their_words(driver: Agent) -> None:
    result = await asked(driver, "What was paid before the trip?", query_vector=[1.0] * 64)
    assert told(result.receipt)["windows"] != []


async def test_events_are_found_where_only_words_are_searched(services: Services) -> None:
    async with open_runtime(settings_for(services, embedding_model="none")) as runtime:
        agent = Agent(runtime)
        await agent.stored_id(TRIP, timestamp="2026-04-15T09:00:00Z")
        await agent.stored_id(LATER, timestamp="2026-05-20T09:00:00Z")
        result = await asked(agent, "What was paid after the trip?")
        assert times(result)[LATER] == 1.0
