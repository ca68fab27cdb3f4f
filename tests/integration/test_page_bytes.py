"""The byte limit of one call: a page ends early, and a search drops its lowest hits."""

from __future__ import annotations

from uuid import UUID

import pytest

from agentcore.limits import LIMITS, MAX_PAGE_BYTES
from agentcore.memory.params.archived import ArchivedParams
from agentcore.memory.params.changes import HistoryParams, UpdateParams, Updates
from agentcore.memory.params.memories import ListParams, PruneParams, RetrieveParams
from agentcore.params import MemoryType
from tests.fixtures.memory import Agent

LARGE = {"note": "x" * (MAX_PAGE_BYTES // 3)}


@pytest.mark.parametrize("order", ["timestamp", "importance", "access_count"])
@pytest.mark.shows("A3")
async def test_a_page_of_large_memories_ends_early_and_the_cursor_continues(agent: Agent, order: str) -> None:
    stored = {await agent.stored_id(f"Fact number {number}", metadata=LARGE) for number in range(5)}
    found: set[UUID] = set()
    sizes: list[int] = []
    cursor: str | None = None
    while not sizes or cursor is not None:
        page = await agent.memory.list(ListParams.model_validate({"order_by": order, "cursor": cursor}))
        sizes.append(len(page.memories))
        found |= {each.memory_id for each in page.memories}
        cursor = page.next_cursor
    assert found == stored
    assert max(sizes) == 2


async def test_one_memory_larger_than_a_page_is_a_page(agent: Agent) -> None:
    for number in range(2):
        await agent.store(f"Fact number {number}", metadata={"note": "x" * (MAX_PAGE_BYTES + 1)})
    page = await agent.memory.list()
    assert (len(page.memories), page.next_cursor is not None) == (1, True)


@pytest.mark.shows("A3")
async def test_a_search_drops_what_is_beyond_a_page_and_its_receipt_says_so(agent: Agent) -> None:
    for number in range(4):
        await agent.store(f"The ferry {number} leaves from pier {number}", metadata=LARGE)
    found = await agent.memory.retrieve(RetrieveParams(query="ferry pier", k=10, min_fit=0, distinct=False))
    assert len(found.memories) == 2
    assert [(each.reason, each.count) for each in found.receipt.dropped] == [("page_bytes", 2)]


async def test_a_page_of_history_ends_early_and_the_cursor_continues(agent: Agent) -> None:
    memory_id = await agent.stored_id("A fact")
    for number in range(5):
        note = {"note": str(number) * (MAX_PAGE_BYTES // 5)}
        await agent.memory.update(UpdateParams(memory_id=memory_id, updates=Updates(metadata=note)))
    numbers, pages, cursor = [], 0, None
    while not pages or cursor is not None:
        page = await agent.memory.history(HistoryParams(memory_id=memory_id, cursor=cursor))
        numbers += [each.number for each in page.changes]
        pages, cursor = pages + 1, page.next_cursor
    assert numbers == [5, 4, 3, 2, 1]
    assert pages > 1


async def test_a_page_of_the_archive_still_ends_at_its_limit(agent: Agent) -> None:
    for number in range(3):
        await agent.store(f"Fact number {number}", tags=["t" * 200] * 1)
    await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=3))
    first = await agent.memory.archived(ArchivedParams(limit=2))
    second = await agent.memory.archived(ArchivedParams(limit=2, cursor=first.next_cursor))
    assert (len(first.memories), len(second.memories), second.next_cursor) == (2, 1, None)


@pytest.mark.shows("issue13-limits-table")
async def test_capabilities_report_every_limit_in_force(agent: Agent) -> None:
    told = (await agent.memory.capabilities()).limits
    assert set(told) == {limit.name for limit in LIMITS}
    assert {"batch_items": 1_000, "k": 200, "page": 1_000, "delete_ids": 10_000}.items() <= told.items()
    assert told["request_bytes"] == agent.runtime.settings.max_body_bytes
    assert told["connections"] == agent.runtime.settings.max_connections
