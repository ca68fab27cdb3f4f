"""Historical queries return what was valid then, marked as such; other queries return current facts."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from agentcore.memory.models import MemoryType, Receipt
from agentcore.memory.params.memories import GetContextParams, RetrieveParams, RetrieveResult
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent

HENRIK, MARIT = "My boss is Henrik Dahl", "My boss is Marit Solberg"
JANUARY, APRIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 4, 1, tzinfo=UTC)
NOVEMBER = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def local_agent(local_runtime: Runtime) -> Agent:
    """An agent with the local model, whose query vector decides whether a query is historical."""
    return Agent(local_runtime)


async def two_bosses(agent: Agent, **values: object) -> tuple[UUID, UUID]:
    """Henrik until April, Marit since."""
    old = await agent.stored_id(HENRIK, timestamp=JANUARY, **values)
    new = await agent.store(MARIT, timestamp=APRIL, **values)
    assert new.superseded == [old]
    assert new.memory_id is not None
    return old, new.memory_id


async def asked(agent: Agent, query: str, **values: object) -> RetrieveResult:
    """Retrieves as of November."""
    given = {"query": query, "asked_at": NOVEMBER, "min_fit": 0.0, **values}
    return await agent.memory.retrieve(RetrieveParams.model_validate(given))


def contents(result: RetrieveResult) -> list[str]:
    return [each.content for each in result.memories]


def history(receipt: Receipt) -> object:
    return receipt.searched.get("history")


async def test_a_time_gone_by_finds_what_held_in_it_before_what_held_only_later(agent: Agent) -> None:
    old, new = await two_bosses(agent)
    found = await asked(agent, "Who was my boss in February 2026?")
    assert contents(found) == [HENRIK, MARIT]
    first, second = found.memories
    assert (first.memory_id, first.superseded_by) == (old, new)
    assert (first.valid_from, first.valid_to) == (JANUARY, APRIL)
    assert (second.superseded_by, second.valid_from, second.valid_to) == (None, None, None)
    assert history(found.receipt) == {
        "phrase": "February 2026",
        "held_in": [["2026-02-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00"]],
    }


@pytest.mark.parametrize(
    "query", ["Who was my boss before Marit?", "Who was my previous boss?", "Wer war vorher mein Chef?"]
)
async def test_a_historical_query_finds_superseded_memories_beside_current_ones(local_agent: Agent, query: str) -> None:
    await two_bosses(local_agent)
    found = await asked(local_agent, query)
    assert sorted(contents(found)) == [HENRIK, MARIT]
    assert found.receipt.searched["history"]["probability"] > 0.8


@pytest.mark.parametrize(
    ("asked_at", "found"), [(NOVEMBER, [HENRIK, MARIT]), (datetime(2025, 11, 22, tzinfo=UTC), [MARIT])]
)
async def test_a_relative_time_is_one_before_it_is_asked(agent: Agent, asked_at: datetime, found: list[str]) -> None:
    await two_bosses(agent)
    answer = await asked(agent, "Who was my boss last winter?", asked_at=asked_at)
    assert contents(answer) == found


async def test_what_held_at_another_time_than_the_one_named_stays_away(agent: Agent) -> None:
    await two_bosses(agent)
    assert contents(await asked(agent, "Who was my boss in July 2026?")) == [MARIT]


@pytest.mark.parametrize(
    "query", ["Who is my boss?", "Who was my boss?", "Who is my boss this year?", "Who is my boss since May?"]
)
async def test_who_does_not_surely_ask_of_the_past_gets_what_holds_alone(agent: Agent, query: str) -> None:
    await two_bosses(agent)
    found = await asked(agent, query)
    assert contents(found) == [MARIT]
    assert history(found.receipt) is None
    context = await agent.memory.get_context(GetContextParams(query=query, asked_at=NOVEMBER, min_fit=0.0))
    assert "Henrik" not in context.context
    assert "[valid" not in context.context


@pytest.mark.parametrize("layer", [MemoryType.EPISODIC, MemoryType.SEMANTIC])
async def test_a_context_says_of_what_is_superseded_when_it_held(agent: Agent, layer: MemoryType) -> None:
    await two_bosses(agent, memory_type=layer)
    query = "Who was my boss in February 2026?"
    params = GetContextParams(query=query, asked_at=NOVEMBER, min_fit=0.0)
    context = await agent.memory.get_context(params)
    assert f"[valid 2026-01-01 to 2026-04-01] {HENRIK}" in context.context
    assert f". {MARIT}" in context.context
    assert history(context.receipt) is not None
    assert context.token_count == agent.runtime.parts.count_tokens(context.context)
    as_json = await agent.memory.get_context(params.model_copy(update={"format": "json"}))
    assert f'"valid":"2026-01-01 to 2026-04-01","text":"{HENRIK}"' in as_json.context


async def test_of_a_line_of_changes_each_time_has_its_own(local_agent: Agent) -> None:
    for month, boss in enumerate((HENRIK, MARIT, HENRIK, MARIT), 1):
        await local_agent.store(boss, timestamp=datetime(2026, month, 1, tzinfo=UTC))
    found = await asked(local_agent, "Who was my boss before that?")
    assert sorted(contents(found)) == [HENRIK, HENRIK, MARIT, MARIT]
    assert sum(each.superseded_by is None for each in found.memories) == 1


async def test_the_filters_hold_for_the_past_and_so_does_as_of(local_agent: Agent) -> None:
    await two_bosses(local_agent, user_id="ada", namespace="work")
    query = "Who was my boss before Marit?"
    assert contents(await asked(Agent(local_agent.runtime), query)) == []
    for elsewhere in ({"user_id": "bob"}, {"namespace": "home"}, {"after": NOVEMBER}):
        assert contents(await asked(local_agent, query, **elsewhere)) == []
    then = await asked(local_agent, query, as_of=datetime(2026, 2, 1, tzinfo=UTC), asked_at=None)
    assert contents(then) == [HENRIK]
    assert (then.memories[0].superseded_by, then.memories[0].valid_to) == (None, None)
    assert history(then.receipt) is None


@pytest.mark.parametrize(
    ("query", "is_about"),
    [
        ("Which book on bees did you recommend to me?", True),
        ("Welches Buch über Bienen hattest du mir empfohlen?", True),
        ("Which book on bees did I buy?", False),
    ],
)
async def test_a_query_about_the_assistant_is_detected_and_reported(
    local_agent: Agent, query: str, is_about: bool
) -> None:
    for speaker, content in (
        ("user", "Can you recommend a book on bees for beginners?"),
        ("assistant", "I would recommend The Lives of Bees by Thomas Seeley, a book for beginners."),
        ("user", "I bought a book on bees today, by Jürgen Tautz."),
    ):
        await local_agent.store(content, speaker=speaker, session_id="bees")
    found = await asked(local_agent, query)
    assert ("about_assistant" in found.receipt.searched) == is_about
