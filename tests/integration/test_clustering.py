"""Clustering of small example stories with the local model; a wrong cluster is the worst outcome."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from agentcore.memory.embeddings import EmbedderOptions
from agentcore.memory.encoding import embedding_text, encode
from agentcore.memory.language.rejection import rejection
from agentcore.memory.summaries.clustering import Cluster, Episode, ExistingSummary, clusters
from agentcore.providers.e5 import E5Embedder

DATA = Path(__file__).parents[1] / "data"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
Pairs = set[tuple[int, int]]


def stories(name: str) -> list[dict[str, Any]]:
    return list(tomllib.loads((DATA / name).read_text(encoding="utf-8"))["story"])


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("e5")


@pytest.fixture
async def embedder(cache: Path) -> Any:
    local = E5Embedder(EmbedderOptions("multilingual-e5-small-adapted", 384, cache))
    await local.open()
    yield local
    await local.close()


def said(text: str) -> tuple[str | None, str]:
    speaker, colon, content = text.partition(": ")
    return (speaker, content) if colon else (None, text)


async def formed(embedder: E5Embedder, told: Sequence[str], standing: Sequence[ExistingSummary] = ()) -> list[Cluster]:
    turns = [said(each) for each in told]
    vectors = np.asarray(
        await embedder.embed([embedding_text(content, speaker) for speaker, content in turns], "document")
    )
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    episodes = [
        Episode(
            UUID(int=place),
            MOMENT + timedelta(hours=place),
            (None, None, speaker),
            content,
            frozenset(each.casefold() for each in encode(content, speaker=speaker).entities),
            tuple(encode(content, speaker=speaker).keywords),
            content,
        )
        for place, (speaker, content) in enumerate(turns)
        if rejection(content) is None
    ]
    ids = [each.memory_id for each in episodes]
    by_id = {each: vectors[each.int] for each in ids}
    return clusters(episodes, by_id, combinations(ids, 2), standing)


def pairs(groups: Sequence[Sequence[int]]) -> Pairs:
    return {pair for group in groups for pair in combinations(sorted(group), 2)}


def places(found: Sequence[Cluster]) -> list[list[int]]:
    return [[member.memory_id.int for member in each.members] for each in found]


@pytest.mark.parametrize(("name", "least_recall"), [("episodes.toml", 0.7), ("episodes_sealed.toml", 0.95)])
@pytest.mark.shows("issue4-3-clusters")
async def test_what_stands_together_belongs_together(embedder: E5Embedder, name: str, least_recall: float) -> None:
    right = wrong = wanted = 0
    for story in stories(name):
        found, expected = pairs(places(await formed(embedder, story["said"]))), pairs(story["clusters"])
        right, wrong = right + len(found & expected), wrong + len(found - expected)
        wanted += len(expected)
    assert right / (right + wrong) >= 0.98, (right, wrong)
    assert right / wanted >= least_recall, (right, wanted)


def all_told(name: str) -> Iterator[str]:
    for story in stories(name):
        yield from story["said"]


async def test_the_stories_stay_apart_when_they_are_told_together(embedder: E5Embedder) -> None:
    told = list(all_told("episodes.toml"))
    found = await formed(embedder, told)
    assert len(found) >= 10
    starts = np.cumsum([0, *(len(story["said"]) for story in stories("episodes.toml"))])
    for group in places(found):
        assert len({int(np.searchsorted(starts, place, side="right")) for place in group}) == 1, [
            told[place] for place in group
        ]


async def test_what_has_a_summary_gets_no_other_and_takes_in_what_belongs_to_it(embedder: E5Embedder) -> None:
    told = [
        "The boiler lost pressure again last night.",
        "I topped up the boiler pressure and it held for an hour.",
        "The boiler pressure has dropped once more, the valve must be leaking.",
    ]
    [first] = await formed(embedder, told)
    members = frozenset(each.memory_id for each in first.members)
    standing = ExistingSummary(UUID(int=99), members, first.digest)
    assert await formed(embedder, told, [standing]) == []
    fourth = "The boiler valve was replaced and the pressure holds."
    [grown] = await formed(embedder, [*told, fourth], [standing])
    assert (places([grown]), grown.replaces) == ([[0, 1, 2, 3]], UUID(int=99))
    [renewed] = await formed(embedder, [*told[:2], "The boiler pressure fell, the valve leaks."], [standing])
    assert renewed.replaces == UUID(int=99)
