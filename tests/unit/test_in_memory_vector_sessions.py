"""In-process session memory with a developer's embedder: exact cosines, within its bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from agentcore.agents.session_memory import RetrieveOptions, SessionMessage, SessionParts, open_session_memory
from agentcore.agents.session_memory.in_memory import InMemoryVectorSessionMemory
from agentcore.errors import ConfigurationError, DependencyUnavailable
from agentcore.memory.embeddings import EmbeddingKind, Vectors, unit_rows

# Texts as directions in a plane, in degrees from the first axis.
DEGREES = {"east": 0, "north-east": 45, "north": 90, "west": 180, "a little north of east": 10}


class Compass:
    """A developer's embedder that records its requests and can fail."""

    model = "compass"
    dimensions = 2
    distinguishes_queries = True
    batch_size = 8
    parallel_requests = 1

    def __init__(self) -> None:
        self.asked: list[tuple[str, EmbeddingKind]] = []
        self.broken = False

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        if self.broken:
            raise DependencyUnavailable("The compass is broken.")
        self.asked += [(text, kind) for text in texts]
        angles = np.radians([DEGREES[text] for text in texts])
        rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        return unit_rows(rows, count=len(texts), dimensions=2)


async def said(memory: InMemoryVectorSessionMemory, *contents: str) -> None:
    for content in contents:
        await memory.store("s", SessionMessage(content=content, message_id=content))


@pytest.mark.shows("issue6-4-vector")
async def test_a_score_is_the_exact_cosine_and_what_is_less_near_is_not_found() -> None:
    memory = InMemoryVectorSessionMemory(Compass())
    await said(memory, "north", "west", "east", "north-east")
    found = await memory.retrieve_with_scores("s", "a little north of east")
    assert [each.message.content for each in found] == ["east", "north-east", "north"]
    expected = [np.cos(np.radians(degrees)) for degrees in (10, 35, 80)]
    assert [each.score for each in found] == pytest.approx(expected, abs=1e-6)
    strict = InMemoryVectorSessionMemory(Compass(), least_similarity=0.9)
    await said(strict, "north", "east")
    assert [each.content for each in await strict.retrieve("s", RetrieveOptions(query="a little north of east"))] == [
        "east"
    ]
    assert await strict.retrieve_with_scores("another", "east") == []


async def test_a_message_is_embedded_once_as_a_document_and_a_query_as_a_query() -> None:
    compass = Compass()
    memory = InMemoryVectorSessionMemory(compass)
    await said(memory, "east", "east")
    await memory.retrieve("s", RetrieveOptions(query="north"))
    assert compass.asked == [("east", "document"), ("north", "query")]
    assert "semantic_search" in memory.capabilities()


async def test_what_cannot_be_embedded_is_not_stored() -> None:
    compass = Compass()
    memory = InMemoryVectorSessionMemory(compass)
    compass.broken = True
    with pytest.raises(DependencyUnavailable, match="compass"):
        await said(memory, "east")
    assert await memory.session_count("s") == 0
    compass.broken = False
    await said(memory, "east")
    assert await memory.session_count("s") == 1


@pytest.mark.shows("issue6-4-vector")
async def test_the_message_found_least_recently_goes_with_its_vector() -> None:
    memory = InMemoryVectorSessionMemory(Compass(), max_messages=2, max_sessions=1)
    await said(memory, "east", "north")
    await memory.retrieve("s", RetrieveOptions(query="east", limit=1))
    await said(memory, "west")
    assert {each.content for each in await memory.retrieve("s")} == {"east", "west"}
    assert await memory.retrieve_with_scores("s", "north") == []
    await memory.store("t", SessionMessage(content="north"))
    assert await memory.session_count("s") == 0


def test_without_an_embedder_it_is_not_made() -> None:
    with pytest.raises(ConfigurationError, match="embedder"):
        open_session_memory("in_memory_vector", SessionParts())
    assert isinstance(
        open_session_memory("in_memory_vector", SessionParts(embedder=Compass())), InMemoryVectorSessionMemory
    )
