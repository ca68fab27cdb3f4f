"""Lexical search: typos, identifiers, long and short memories, sessions."""

from __future__ import annotations

import pytest

from agentcore.memory.params.memories import RetrieveParams
from tests.fixtures.memory import Agent

PERMITS = "The council sent the scaffolding permits."
LEASE = "The lease of the warehouse ends in October."


@pytest.mark.parametrize(
    ("query", "corrected"),
    [
        ("scafolding", {"scafold": "scaffold"}),
        ("warehuose", {"warehuos": "warehous"}),
        ("scaffolding", None),
        ("qcaffolding", None),
        ("XK-4710", None),
    ],
)
@pytest.mark.shows("issue3-1-lexical")
async def test_a_slip_of_the_pen_is_read_as_the_word_it_is_near(
    agent: Agent, query: str, corrected: dict[str, str] | None
) -> None:
    for content in (PERMITS, LEASE):
        await agent.stored_id(content)
    result = await agent.memory.retrieve(RetrieveParams(query=query, explain=True))
    assert result.receipt.searched.get("corrected") == corrected
    if corrected:
        assert result.receipt.candidates["lexical"] == 1


async def test_a_word_that_is_written_right_too_counts_in_full_beside_its_slip(agent: Agent) -> None:
    await agent.stored_id(LEASE)

    async def share_of_words(query: str) -> float:
        result = await agent.memory.retrieve(RetrieveParams(query=query, k=1, explain=True))
        return (result.memories[0].terms or {})["words"].value

    right = await share_of_words("warehouse zeppelin balloon")
    assert await share_of_words("warehouse warehuose zeppelin balloon") == right
    assert await share_of_words("warehuose zeppelin balloon") < right


async def test_a_word_that_is_known_is_never_read_as_another(agent: Agent) -> None:
    await agent.stored_id("The marina is full.")
    for number in range(5):
        await agent.stored_id(f"Martina called about berth {number}.")
    result = await agent.memory.retrieve(RetrieveParams(query="marina"))
    assert "corrected" not in result.receipt.searched


@pytest.mark.parametrize("asked", ["ERR_4071", "db-7.eu", "10.0.12.7", "INV-2026-0113"])
@pytest.mark.shows("issue3-1-lexical")
async def test_an_identifier_finds_its_memory_among_many_like_it(agent: Agent, asked: str) -> None:
    for number in range(80):
        await agent.store(
            f"ERR_{4100 + number} on db-{number + 10}.eu at 10.0.{number + 20}.9 for INV-2025-{number}.", force=True
        )
    target = "ERR_4071 on db-7.eu at 10.0.12.7 for INV-2026-0113."
    await agent.stored_id(target, force=True)
    assert await agent.found(f"what about {asked}?", k=1) == [target]


@pytest.mark.shows("issue3-1-lexical")
async def test_a_short_memory_with_the_words_is_a_candidate_before_long_ones_that_hold_them_too(agent: Agent) -> None:
    padding = " ".join(f"remark{number} follows" for number in range(120))
    for number in range(100):
        long = f"Entry {number}: the anchor winch and the bilge. {padding} end{number}."
        await agent.store(long, force=True)
    short = "The anchor winch needs grease."
    await agent.stored_id(short, timestamp="2020-01-01T00:00:00Z")
    result = await agent.memory.retrieve(RetrieveParams(query="anchor winch bilge", k=100))
    assert short in [memory.content for memory in result.memories]
