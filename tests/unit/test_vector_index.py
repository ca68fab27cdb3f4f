"""Vector indexes: parameters, search width, and the comment that stores them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentcore.memory.rows.vector_index import (
    HNSW_FIRST_WIDTH,
    MAX_LISTS,
    MIN_LISTS,
    IndexKind,
    ServingIndex,
    VectorIndex,
    default_width,
    described,
    max_width,
    min_width,
    reaches,
    serving,
    shape_for,
)

LISTS = VectorIndex("ann_a", "ivfflat", "m", 200, 10_000, 1_000.0, 24)
GRAPH = VectorIndex("ann_b", "hnsw", "m", 16, 10_000, 1_000.0, 90)


def served(*indexes: VectorIndex) -> ServingIndex:
    found = serving(indexes)
    assert found is not None
    return found


def test_what_an_index_remembers_is_read_back_from_its_comment() -> None:
    measured = replace(LISTS, recall=0.957, measured_at=2_000.0, measured_rows=14_000, bytes=8_192)
    assert described("ann_a", measured.comment(), 8_192) == measured


@pytest.mark.parametrize(
    "comment", [None, "", "null", "[]", "made by hand", '{"model": "m", "rows": 10000}', '{"unknown": 1}']
)
def test_an_index_without_a_whole_comment_was_never_finished(comment: str | None) -> None:
    assert described("ann_a", comment) is None


@pytest.mark.parametrize(("rows", "lists"), [(1, MIN_LISTS), (10_000, 200), (10_001, 201), (10**7, MAX_LISTS)])
def test_lists_grow_with_the_rows_within_bounds(rows: int, lists: int) -> None:
    assert shape_for("ivfflat", rows) == lists
    assert shape_for("hnsw", rows) == 16


@pytest.mark.parametrize(("kind", "shape"), [("ivfflat", 32), ("ivfflat", 1_000), ("hnsw", 16)])
def test_the_reaches_rise_to_the_most_there_is_and_hold_the_first(kind: IndexKind, shape: int) -> None:
    rows = shape * 50
    ladder = list(reaches(kind, shape, rows))
    assert ladder == sorted(set(ladder))
    assert ladder[-1] == max_width(kind, shape)
    assert ladder[0] <= default_width(kind, shape, rows) <= ladder[-1]


@pytest.mark.parametrize(
    ("shape", "rows", "lists"), [(32, 100, 32), (200, 10_000, 100), (1_000, 100_000, 50), (1_000, 1_000_000, 5)]
)
def test_so_many_rows_are_read_in_any_case(shape: int, rows: int, lists: int) -> None:
    assert min_width("ivfflat", shape, rows) == lists
    assert reaches("ivfflat", shape, rows)[0] == lists


def test_nothing_serves_where_no_index_is() -> None:
    assert serving([]) is None


def test_of_two_indexes_of_one_kind_the_larger_reach_holds() -> None:
    found = served(LISTS, replace(LISTS, name="ann_c", shape=400, reach=48))
    assert (found.probes, found.most_probes, found.ef_search) == (48, 400, HNSW_FIRST_WIDTH)
    assert not found.hnsw


def test_while_one_kind_replaces_the_other_both_have_a_reach() -> None:
    found = served(LISTS, GRAPH)
    assert (found.probes, found.ef_search) == (24, 90)
    assert served(GRAPH).probes == default_width("ivfflat", 200, 10_000)


def test_a_filtered_search_looks_further_but_not_beyond_the_index() -> None:
    found = served(LISTS)
    assert (found.probes_for(filtered=False), found.probes_for(filtered=True)) == (24, 72)
    assert served(replace(LISTS, reach=150)).probes_for(filtered=True) == 200


@pytest.mark.parametrize(
    ("rows", "count", "faster"),
    [
        (2_000, 979, False),
        (2_000, 980, True),
        (100_000, 6_928, False),
        (100_000, 6_929, True),
        (1_000_000, 21_909, True),
    ],
)
def test_a_graph_is_faster_than_exact_search_for_an_agent_with_enough_of_its_rows(
    rows: int, count: int, faster: bool
) -> None:
    assert served(replace(GRAPH, built_rows=rows, measured_rows=None)).is_faster_for(count) == faster
    assert served(replace(LISTS, built_rows=rows)).is_faster_for(count)
