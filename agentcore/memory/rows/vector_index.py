"""Describes vector indexes and their search width (probes, ef_search), stored in the index's comment."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

IndexKind = Literal["ivfflat", "hnsw"]

ROWS_A_LIST = 50
MIN_LISTS, MAX_LISTS = 32, 1_000
HNSW_CONNECTIONS, HNSW_CONSTRUCTION = 16, 64
# pgvector takes no larger ef_search.
HNSW_MOST_REACH = 1_000
# Before anything is measured: enough for 100,000 memories, docs/decisions/0017.
FIRST_SHARE = 0.12
HNSW_FIRST_REACH = 120
# However little a sample asks for: so much costs two milliseconds, and finds also what is unlike the sample.
LEAST_ROWS_READ, HNSW_LEAST_REACH = 5_000, 80
# A filter's matches lie further apart: to find as many of them, so many times as many lists are probed.
FILTERED_REACH = 3
_STEP = 1.05


@dataclass(frozen=True)
class IndexPolicy:
    """Which kind of index is kept, and the recall at 50 its reach is chosen for."""

    kind: IndexKind = "ivfflat"
    recall: float = 0.95


@dataclass(frozen=True)
class VectorIndex:
    """One index: what it was built on, and what was measured of it last (None: nothing yet).

    `shape` is the number of lists of an ivfflat index, the connections of an HNSW one.
    """

    name: str
    kind: IndexKind
    model: str
    shape: int
    built_rows: int
    built_at: float
    reach: int
    recall: float | None = None
    measured_at: float | None = None
    measured_rows: int | None = None
    bytes: int = 0

    def comment(self) -> str:
        """What is remembered of it in the database."""
        facts = dataclasses.asdict(self)
        return json.dumps({name: fact for name, fact in facts.items() if name not in {"name", "bytes"}})


def described(name: str, comment: str | None, size_bytes: int = 0) -> VectorIndex | None:
    """The index of that name and comment; None where the comment that ends its making is missing."""
    try:
        facts: Any = json.loads(comment or "null")
        return VectorIndex(**facts, name=name, bytes=size_bytes)
    except (TypeError, ValueError):
        return None


def shape_for(kind: IndexKind, rows: int) -> int:
    """The lists of an ivfflat index over so many rows, small for recall at a low price; HNSW's connections.

    More than MAX_LISTS would need far over 256 MB to train (it grows with their square).
    """
    if kind == "hnsw":
        return HNSW_CONNECTIONS
    return min(MAX_LISTS, max(MIN_LISTS, math.ceil(rows / ROWS_A_LIST)))


def first_reach(kind: IndexKind, shape: int, rows: int) -> int:
    """How far is looked before anything is measured."""
    if kind == "hnsw":
        return HNSW_FIRST_REACH
    return max(least_reach(kind, shape, rows), math.ceil(FIRST_SHARE * shape))


def least_reach(kind: IndexKind, shape: int, rows: int) -> int:
    """How far is looked in any case, in an index over so many rows."""
    if kind == "hnsw":
        return HNSW_LEAST_REACH
    return min(shape, math.ceil(shape * LEAST_ROWS_READ / max(1, rows)))


def most_reach(kind: IndexKind, shape: int) -> int:
    """How far can be looked at most: an ivfflat index then gives exact answers."""
    return HNSW_MOST_REACH if kind == "hnsw" else shape


def reaches(kind: IndexKind, shape: int, rows: int) -> Sequence[int]:
    """The reaches to choose from, each a twentieth more than the one before."""
    least, most = least_reach(kind, shape, rows), most_reach(kind, shape)
    steps = range(math.ceil(math.log(most / least, _STEP)) + 1)
    return sorted({min(most, math.ceil(least * _STEP**step)) for step in steps})


@dataclass(frozen=True)
class ServingIndex:
    """How an agent's searches go through its partition's indexes.

    `probes` and `ef_search` are both set: while one kind takes the place of the other, either may be used.
    `iterative`: pgvector reads on until enough rows pass the filters (0.8 and newer).
    """

    probes: int
    most_probes: int
    ef_search: int
    hnsw: bool
    iterative: bool

    def probes_for(self, *, filtered: bool) -> int:
        """How many lists a search looks into."""
        return min(self.most_probes, self.probes * FILTERED_REACH) if filtered else self.probes

    def ef_search_for(self, *, filtered: bool) -> int:
        """How far a search follows the graph; an iterative scan goes on from there by itself."""
        if filtered and not self.iterative:
            return min(HNSW_MOST_REACH, self.ef_search * FILTERED_REACH)
        return self.ef_search

    @property
    def may_come_short(self) -> bool:
        """Whether fewer rows than asked for may be fewer than there are."""
        return self.hnsw or not self.iterative


def together(one: ServingIndex | None, other: ServingIndex | None) -> ServingIndex | None:
    """Returns the settings of a transaction that searches both."""
    if one is None or other is None:
        return one or other
    return ServingIndex(
        probes=max(one.probes, other.probes),
        most_probes=max(one.most_probes, other.most_probes),
        ef_search=max(one.ef_search, other.ef_search),
        hnsw=one.hnsw or other.hnsw,
        iterative=one.iterative and other.iterative,
    )


def serving(indexes: Sequence[VectorIndex], *, iterative: bool) -> ServingIndex | None:
    """How these indexes of one partition and model are searched; None where there is none.

    Of several of one kind the largest reach holds for all: the planner may take any.
    """
    if not indexes:
        return None
    lists = [index for index in indexes if index.kind == "ivfflat"]
    graphs = [index for index in indexes if index.kind == "hnsw"]
    rows = max(index.built_rows for index in indexes)
    coming = shape_for("ivfflat", rows)
    return ServingIndex(
        probes=max((index.reach for index in lists), default=first_reach("ivfflat", coming, rows)),
        most_probes=max((index.shape for index in lists), default=coming),
        ef_search=max((index.reach for index in graphs), default=HNSW_FIRST_REACH),
        hnsw=bool(graphs),
        iterative=iterative,
    )
