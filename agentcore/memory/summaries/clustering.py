"""Clusters episodic memories about one thing. Pure.

Average linkage over cosines (Sokal and Michener, 1958), with forbidden pairs: "Anna is allergic" and "Boris
is allergic" are similar, too. A false cluster is worse than a missed one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.language.text import normal_form
from agentcore.memory.lexical import terms

FEWEST, MOST = 3, 50
# Maximum size of a component that is compared pairwise; the oldest are kept.
MOST_COMPARED = 400
# Chosen for the local model on tests/data/episodes.toml: no false pair.
LEAST_COSINE, LEAST_MEAN_COSINE = 0.6, 0.65
# Minimum share of the shorter one's keywords that the other has, too.
LEAST_OVERLAP = 0.2
MOST_FACTS = 32
_NUMBERED = re.compile(r"\S*\d\S*")

Scope = tuple[str | None, ...]


@dataclass(frozen=True)
class Episode:
    """A memory. `scope`: user, namespace, speaker; `names`: its entities; `digest`: of its content."""

    memory_id: UUID
    timestamp: datetime
    scope: Scope
    content: str
    names: frozenset[str]
    keywords: tuple[str, ...]
    digest: str


@dataclass(frozen=True)
class ExistingSummary:
    """A cluster summary with its existing sources. `digest`: of their contents."""

    summary_id: UUID
    member_ids: frozenset[UUID]
    digest: str


@dataclass(frozen=True)
class Cluster:
    members: tuple[Episode, ...]
    digest: str
    replaces: UUID | None


def clusters(
    episodes: Sequence[Episode],
    vectors: Mapping[UUID, NDArray[np.float32]],
    pairs: Iterable[tuple[UUID, UUID]],
    standing: Sequence[ExistingSummary],
) -> list[Cluster]:
    """Returns the clusters without a summary or with a stale one. `vectors` are normalized."""
    ordered = sorted(episodes, key=lambda each: (each.timestamp, each.memory_id))
    by_id = {each.memory_id: place for place, each in enumerate(ordered)}
    kept = [_Group([by_id[each] for each in sorted(held.member_ids) if each in by_id], held) for held in standing]
    found: list[Cluster] = []
    edges = [(by_id[one], by_id[other]) for one, other in pairs if one in by_id and other in by_id]
    for component in _components(len(ordered), edges, kept):
        found += _clusters_of([ordered[place] for place in component], vectors, standing)
    return found


def cluster_digest(members: Iterable[Episode]) -> str:
    told = sorted(f"{each.memory_id}:{each.digest}" for each in members)
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def facts_of(facts: Iterable[str]) -> list[str]:
    """Deduplicates facts by their words; the first one wins."""
    told: dict[str, str] = {}
    for fact in facts:
        told.setdefault(normal_form(fact), fact)
    return list(told.values())[:MOST_FACTS]


@dataclass
class _Group:
    places: list[int]
    standing: ExistingSummary | None = None


def _components(size: int, edges: Iterable[tuple[int, int]], kept: Sequence[_Group]) -> list[list[int]]:
    root = list(range(size))

    def root_of(place: int) -> int:
        while root[place] != place:
            root[place] = root[root[place]]
            place = root[place]
        return place

    tied = [(group.places[0], place) for group in kept for place in group.places[1:]]
    for one, other in (*edges, *tied):
        low, high = sorted((root_of(one), root_of(other)))
        root[high] = low
    gathered: dict[int, list[int]] = {}
    for place in range(size):
        gathered.setdefault(root_of(place), []).append(place)
    return [places[:MOST_COMPARED] for places in gathered.values() if len(places) >= FEWEST]


def _clusters_of(
    episodes: Sequence[Episode], vectors: Mapping[UUID, NDArray[np.float32]], standing: Sequence[ExistingSummary]
) -> list[Cluster]:
    found: list[Cluster] = []
    for group in _grouped(episodes, vectors, standing):
        members = tuple(episodes[place] for place in sorted(group.places))
        digest, old = cluster_digest(members), group.standing
        if len(members) >= FEWEST and (old is None or old.digest != digest):
            found.append(Cluster(members, digest, None if old is None else old.summary_id))
    return found


def _grouped(
    episodes: Sequence[Episode], vectors: Mapping[UUID, NDArray[np.float32]], standing: Sequence[ExistingSummary]
) -> list[_Group]:
    groups = _first_groups(episodes, standing)
    matrix = np.stack([vectors[each.memory_id] for each in episodes])
    cosines, apart = matrix @ matrix.T, _apart(episodes, matrix @ matrix.T)
    belongs = np.zeros((len(groups), len(episodes)))
    for number, group in enumerate(groups):
        belongs[number, group.places] = 1.0
    sums, forbidden = belongs @ cosines @ belongs.T, belongs @ apart @ belongs.T > 0
    stands = np.array([group.standing is not None for group in groups])
    sizes = belongs.sum(axis=1)
    forbidden |= np.outer(stands, stands) | np.eye(len(groups), dtype=bool)
    while True:
        full = forbidden | (np.add.outer(sizes, sizes) > MOST)
        means = np.where(full, -1.0, sums / np.outer(sizes, sizes))
        one, other = sorted(divmod(int(np.argmax(means)), len(groups)))
        if means[one, other] < LEAST_MEAN_COSINE:
            return [group for group in groups if group.places]
        groups[one].places += groups[other].places
        groups[one].standing = groups[one].standing or groups[other].standing
        groups[other].places = []
        sums[one] += sums[other]
        sums[:, one] += sums[:, other]
        forbidden[one] |= forbidden[other]
        forbidden[:, one] |= forbidden[:, other]
        forbidden[other], forbidden[:, other] = True, True
        sizes[one] += sizes[other]


def _first_groups(episodes: Sequence[Episode], standing: Sequence[ExistingSummary]) -> list[_Group]:
    places = {each.memory_id: place for place, each in enumerate(episodes)}
    held = [_Group(sorted(places[each] for each in group.member_ids if each in places), group) for group in standing]
    held = [group for group in held if group.places]
    taken = {place for group in held for place in group.places}
    return [*held, *(_Group([place]) for place in range(len(episodes)) if place not in taken)]


def _apart(episodes: Sequence[Episode], cosines: NDArray[np.float32]) -> NDArray[np.float64]:
    numbers, topics = [_numbers(each) for each in episodes], [_topics(each) for each in episodes]
    apart = np.zeros((len(episodes), len(episodes)))
    for one, other in combinations(range(len(episodes)), 2):
        if (
            episodes[one].scope != episodes[other].scope
            or cosines[one, other] < LEAST_COSINE
            or _tell_of_others(episodes[one].names, episodes[other].names)
            or _tell_of_others(numbers[one], numbers[other])
            or not _overlap(topics[one], topics[other])
        ):
            apart[one, other] = apart[other, one] = 1.0
    return apart


def _numbers(episode: Episode) -> frozenset[str]:
    return frozenset(each.strip(".,;:!?") for each in _NUMBERED.findall(episode.content.casefold()))


def _topics(episode: Episode) -> frozenset[str]:
    return frozenset(terms(" ".join(each for each in episode.keywords if not _NUMBERED.fullmatch(each))))


def _tell_of_others(one: frozenset[str], other: frozenset[str]) -> bool:
    return bool(one) and bool(other) and not one & other


def _overlap(one: frozenset[str], other: frozenset[str]) -> bool:
    shared = len(one & other)
    return shared > 0 and shared >= LEAST_OVERLAP * min(len(one), len(other))
