"""Describes vector indexes and their search width (probes, ef_search), stored in comments. Pure."""

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
# The maximum of pgvector.
HNSW_MAX_WIDTH = 1_000
# The default before a measurement: enough for 100,000 memories (decision 69).
DEFAULT_PROBED_SHARE = 0.12
HNSW_FIRST_WIDTH = 120
# The minimum: costs 2 ms, and keeps the recall of queries unlike the sample.
LEAST_ROWS_READ, HNSW_MIN_WIDTH = 5_000, 80
# A graph search visits 60 * rows / count rows for 60 candidates of an agent with `count` of the partition's rows, and a
# visit costs about as much as 8 comparisons (an estimate). So exact search is faster up to count ** 2 = 8 * 60 * rows.
CANDIDATES, COMPARISONS_A_VISIT = 60, 8
# Multiplies the lists probed under a filter, as matching rows are sparser.
FILTERED_FACTOR = 3
_STEP = 1.05


@dataclass(frozen=True)
class IndexPolicy:
    """Kind of index, and target recall at 50."""

    kind: IndexKind = "hnsw"
    recall: float = 0.95


@dataclass(frozen=True)
class VectorIndex:
    """What an index was built on, and its last measurement (None: not measured).

    `shape`: number of lists (ivfflat) or connections per node (HNSW).
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
        facts = dataclasses.asdict(self)
        return json.dumps({name: fact for name, fact in facts.items() if name not in {"name", "bytes"}})


def described(name: str, comment: str | None, size_bytes: int = 0) -> VectorIndex | None:
    """Returns the index by its comment; None without a valid one, as after an unfinished build."""
    try:
        facts: Any = json.loads(comment or "null")
        return VectorIndex(**facts, name=name, bytes=size_bytes)
    except (TypeError, ValueError):
        return None


def shape_for(kind: IndexKind, rows: int) -> int:
    """Returns the number of lists (at most MAX_LISTS: training more needs over 256 MB), or connections per node."""
    if kind == "hnsw":
        return HNSW_CONNECTIONS
    return min(MAX_LISTS, max(MIN_LISTS, math.ceil(rows / ROWS_A_LIST)))


def default_width(kind: IndexKind, shape: int, rows: int) -> int:
    if kind == "hnsw":
        return HNSW_FIRST_WIDTH
    return max(min_width(kind, shape, rows), math.ceil(DEFAULT_PROBED_SHARE * shape))


def min_width(kind: IndexKind, shape: int, rows: int) -> int:
    if kind == "hnsw":
        return HNSW_MIN_WIDTH
    return min(shape, math.ceil(shape * LEAST_ROWS_READ / max(1, rows)))


def max_width(kind: IndexKind, shape: int) -> int:
    """Returns the maximum search width; an ivfflat search is then exact."""
    return HNSW_MAX_WIDTH if kind == "hnsw" else shape


def reaches(kind: IndexKind, shape: int, rows: int) -> Sequence[int]:
    """Returns search widths to choose from, each 5 % larger."""
    least, most = min_width(kind, shape, rows), max_width(kind, shape)
    steps = range(math.ceil(math.log(most / least, _STEP)) + 1)
    return sorted({min(most, math.ceil(least * _STEP**step)) for step in steps})


def fastest_exact(rows: int) -> int:
    """Returns the number of memories up to which exact search is faster than a graph."""
    return math.isqrt(COMPARISONS_A_VISIT * CANDIDATES * rows)


@dataclass(frozen=True)
class ServingIndex:
    """How an agent's searches use the indexes of its partition.

    Both widths are set: while one kind replaces the other, the planner may use either.
    """

    probes: int
    most_probes: int
    ef_search: int
    hnsw: bool
    rows: int
    partition: str = ""

    def is_faster_for(self, count: int) -> bool:
        """Returns whether the index is faster than an exact search of `count` memories."""
        return not self.hnsw or count > fastest_exact(self.rows)

    def probes_for(self, *, filtered: bool) -> int:
        return min(self.most_probes, self.probes * FILTERED_FACTOR) if filtered else self.probes


def widest(one: ServingIndex | None, other: ServingIndex | None) -> ServingIndex | None:
    """Returns both with the larger widths, without a partition: no generic plan."""
    if one is None or other is None:
        return one or other
    return ServingIndex(
        probes=max(one.probes, other.probes),
        most_probes=max(one.most_probes, other.most_probes),
        ef_search=max(one.ef_search, other.ef_search),
        hnsw=one.hnsw or other.hnsw,
        rows=max(one.rows, other.rows),
    )


def serving(indexes: Sequence[VectorIndex], partition: str = "") -> ServingIndex | None:
    """Returns how the indexes of one partition and model are searched, by the widest of a kind."""
    if not indexes:
        return None
    lists = [index for index in indexes if index.kind == "ivfflat"]
    graphs = [index for index in indexes if index.kind == "hnsw"]
    rows = max(max(index.built_rows, index.measured_rows or 0) for index in indexes)
    coming = shape_for("ivfflat", rows)
    return ServingIndex(
        probes=max((index.reach for index in lists), default=default_width("ivfflat", coming, rows)),
        most_probes=max((index.shape for index in lists), default=coming),
        ef_search=max((index.reach for index in graphs), default=HNSW_FIRST_WIDTH),
        hnsw=bool(graphs),
        rows=rows,
        partition=partition,
    )
