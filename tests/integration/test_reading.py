"""Reads on real rows: pages, statistics, capabilities."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from uuid import uuid4

import pytest

from agentcore.errors import InvalidParams, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.embedding_cache import CachingEmbedder
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import MemoryType
from agentcore.memory.params.memories import CapabilitiesParams, CountParams, GetParams, ListParams, StatsParams
from tests.fixtures.memory import Agent, fill


async def test_capabilities_are_told_before_anything_was_embedded(agent: Agent) -> None:
    embedder = agent.runtime.parts.embedder
    assert embedder is not None
    parts = replace(agent.runtime.parts, embedder=CachingEmbedder(embedder))
    told = await MemoryManager(parts, Caller(agent.agent_id)).capabilities(CapabilitiesParams())
    assert told.embedding_model == embedder.model


@pytest.mark.shows("NFR-2.3", "issue6-5-replica")
async def test_a_consistent_reading_shows_what_was_just_written_where_a_replica_lags(lagging: Agent) -> None:
    embedding = [0.5] * 64
    memory_id = await lagging.stored_id("The kiln is hot.", embedding=embedding)
    for consistent in (False, True):
        listed = await lagging.memory.list(ListParams(vectors=True, consistent=consistent))
        assert [(each.memory_id, each.embedding) for each in listed.memories] == [(memory_id, embedding)] * consistent
        assert (await lagging.memory.count(CountParams(consistent=consistent))).count == int(consistent)
    with pytest.raises(NotFound):
        await lagging.get(memory_id)
    assert (await lagging.memory.get(GetParams(memory_id=memory_id, consistent=True))).memory.version == 1


@pytest.mark.parametrize("order_by", ["timestamp", "importance", "access_count"])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.shows("issue2-6-list")
async def test_pages_hold_each_memory_once_in_order(agent: Agent, order_by: str, descending: bool) -> None:
    ids = await fill(agent, 25)
    agent.runtime.parts.accesses.note(agent.agent_id, ids[:5] + ids[:2], agent.runtime.parts.clock())
    await agent.runtime.parts.accesses.flush(agent.runtime.parts.storage)
    seen, cursor = [], None
    while True:
        page = await agent.memory.list(
            ListParams.model_validate({"order_by": order_by, "descending": descending, "limit": 7, "cursor": cursor})
        )
        seen += page.memories
        cursor = page.next_cursor
        if cursor is None:
            break
    assert {memory.memory_id for memory in seen} == set(ids)
    assert len(seen) == 25
    name = "relevance_score" if order_by == "importance" else order_by
    keys = [(getattr(memory, name), memory.memory_id) for memory in seen]
    assert keys == sorted(keys, reverse=descending)


@pytest.mark.parametrize(
    ("order_by", "place"),
    [
        ("access_count", 10**30),
        ("access_count", 3 * 10**10),
        ("access_count", -1),
        ("access_count", "Infinity"),
        ("importance", 1e300),
        ("importance", "nan"),
        ("timestamp", "12026-01-01"),
        ("timestamp", 7),
    ],
)
async def test_a_cursor_with_a_place_no_page_ends_at_is_refused(agent: Agent, order_by: str, place: object) -> None:
    await agent.stored_id("A memory to page over.")
    made_up = json.dumps([order_by, True, place, str(uuid4())]).replace('"Infinity"', "Infinity")
    cursor = base64.urlsafe_b64encode(made_up.encode()).decode()
    with pytest.raises(InvalidParams, match="cursor"):
        await agent.memory.list(ListParams.model_validate({"order_by": order_by, "cursor": cursor}))


@pytest.mark.parametrize("cursor", ["nonsense", "AAAA", "WzEsMiwzLDRd", "é"])
async def test_a_made_up_cursor_is_refused(agent: Agent, cursor: str) -> None:
    with pytest.raises(InvalidParams, match="cursor"):
        await agent.memory.list(ListParams(cursor=cursor))


@pytest.mark.shows("FR-1.1")
async def test_statistics_count_each_layer(agent: Agent) -> None:
    await fill(agent, 3)
    await agent.stored_id("Water boils at 100 degrees.", memory_type="semantic", pinned=True)
    stats = await agent.memory.stats(StatsParams())
    assert stats.total == 4
    assert stats.layers[MemoryType.EPISODIC].count == 3
    assert stats.layers[MemoryType.SEMANTIC].pinned == 1
    assert stats.layers[MemoryType.PROCEDURAL].count == 0
    assert stats.layers[MemoryType.EPISODIC].waiting_for_embedding == 0
