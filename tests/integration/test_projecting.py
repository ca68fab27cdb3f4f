"""Projection of vectors onto two axes: its values, and which memories it contains."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from agentcore.memory.api import Caller
from agentcore.memory.params.memories import ProjectParams, ProjectResult, StoreBatchParams, StoreParams
from agentcore.memory.recall import projecting
from agentcore.memory.recall.projecting import MAX_DIMENSIONS, folded, principal_components
from tests.fixtures.memory import Agent, fill

DIMENSIONS = 64


def invented(count: int, seed: int = 3) -> NDArray[np.float16]:
    """Vectors whose variance is different along each axis, far from the origin."""
    chance = np.random.default_rng(seed)
    spread = 0.8 ** np.arange(DIMENSIONS)
    turned, _ = np.linalg.qr(chance.standard_normal((DIMENSIONS, DIMENSIONS)))
    vectors: NDArray[np.float16] = chance.standard_normal((count, DIMENSIONS)) * spread @ turned + 5.0
    return vectors.astype(np.float16)


def by_svd(vectors: NDArray[np.float16]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    vectors = np.asarray(vectors, np.float32)
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float16).astype(np.float64)
    centered = vectors.astype(np.float64)
    centered -= centered.mean(axis=0)
    _, singular, axes = np.linalg.svd(centered, full_matrices=False)
    places = centered @ axes[:2].T
    return places / np.abs(places).max(), singular[:2] ** 2 / (singular**2).sum()


async def store(agent: Agent, vectors: NDArray[np.float16], **values: object) -> None:
    items = [
        StoreParams.model_validate(
            {
                "content": f"Reading {number} of the meter",
                "embedding": vector,
                "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z",
                "force": True,
                **values,
            }
        )
        for number, vector in enumerate(vectors.astype(float).tolist())
    ]
    await agent.memory.store_batch(StoreBatchParams(items=items))


def places_of(found: ProjectResult) -> NDArray[np.float64]:
    return np.array([found.x, found.y]).T


async def test_places_are_those_of_a_singular_value_decomposition(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projecting, "PAGE_ROWS", 70)
    vectors = invented(210)
    await store(agent, vectors)
    found = await agent.memory.project(ProjectParams())
    places, explained = by_svd(vectors[::-1])
    own = places_of(found)
    for axis in (0, 1):
        sign = np.sign(own[0, axis] * places[0, axis])
        assert own[:, axis] == pytest.approx(sign * places[:, axis], abs=2e-4)
    assert found.explained == pytest.approx(explained, abs=1e-4)
    assert (found.without_vectors, found.complete) == (0, True)
    assert sorted(found.timestamps, reverse=True) == found.timestamps
    again = await agent.memory.project(ProjectParams())
    assert again.model_copy(update={"receipt": found.receipt}) == found


async def test_a_limit_keeps_the_newest_and_says_so(agent: Agent) -> None:
    vectors = invented(9)
    await store(agent, vectors)
    found = await agent.memory.project(ProjectParams(limit=8))
    assert (len(found.memory_ids), found.complete) == (8, False)
    assert np.abs(places_of(found)) == pytest.approx(np.abs(by_svd(vectors[:0:-1])[0]), abs=2e-4)
    assert (await agent.memory.project(ProjectParams(limit=9))).complete


async def test_none_one_and_equal_memories_have_places(agent: Agent) -> None:
    empty = await agent.memory.project(ProjectParams())
    assert (empty.memory_ids, empty.x, empty.explained, empty.complete) == ([], [], (0.0, 0.0), True)
    same = np.repeat(invented(1), 2, axis=0)
    await store(agent, same[:1])
    one = await agent.memory.project(ProjectParams())
    assert (one.x, one.y, one.explained) == ([0.0], [0.0], (0.0, 0.0))
    await store(agent, same[:1], user_id="ada")
    two = await agent.memory.project(ProjectParams())
    assert (two.x, two.y, two.explained) == ([0.0, 0.0], [0.0, 0.0], (0.0, 0.0))


async def test_memories_without_a_vector_of_the_model_are_counted(agent: Agent) -> None:
    await store(agent, invented(3))
    ids = await fill(agent, 2)
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "UPDATE memories SET embedding = NULL, embedding_model = NULL WHERE agent_id = %s AND memory_id = %s",
            (agent.agent_id, ids[0]),
        )
        await connection.execute(
            "UPDATE memories SET embedding_model = 'another' WHERE agent_id = %s AND memory_id = %s",
            (agent.agent_id, ids[1]),
        )
    found = await agent.memory.project(ProjectParams())
    assert (len(found.memory_ids), found.without_vectors, found.complete) == (3, 2, True)


async def test_other_agents_other_users_and_other_filters_are_left_out(
    agent: Agent, new_agent: Callable[..., Agent]
) -> None:
    await store(agent, invented(4), user_id="ada", session_id="one")
    await store(agent, invented(3, seed=4), user_id="ben", memory_type="semantic")
    await store(new_agent(), invented(5))
    every = await agent.memory.project(ProjectParams())
    assert len(every.memory_ids) == 7
    assert set(every.values["user_ids"]) == {"ada", "ben"}
    assert set(every.values["session_ids"]) == {"one", None}
    semantic = await agent.memory.project(ProjectParams.model_validate({"memory_types": ["semantic"]}))
    assert [semantic.values["user_ids"][each] for each in semantic.user_ids] == ["ben"] * 3
    bound = agent.runtime.manager_for(Caller(agent.agent_id, users=frozenset({"ada"})))
    own = await bound.project(ProjectParams())
    assert (own.values["user_ids"], len(own.memory_ids)) == (["ada"], 4)
    assert set(own.memory_ids).isdisjoint(semantic.memory_ids)


def test_long_vectors_are_folded_and_about_keep_their_places() -> None:
    chance = np.random.default_rng(5)
    plane = chance.standard_normal((2, 6_000)) * [[3.0], [1.0]]
    vectors = (chance.standard_normal((50, 2)) @ plane).astype(np.float16)
    lengths = np.linalg.norm(vectors.astype(np.float32), axis=1, keepdims=True)
    shorter = folded((vectors / lengths).astype(np.float16))
    assert shorter.shape == (50, MAX_DIMENSIONS)
    places, explained = principal_components([shorter])
    expected, _ = by_svd(vectors)
    assert sum(explained) == pytest.approx(1.0, abs=0.01)
    assert abs(np.corrcoef(places[:, 0], expected[:, 0])[0, 1]) > 0.98
