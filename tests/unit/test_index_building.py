"""The memory needed for an index build."""

from __future__ import annotations

import pytest

from agentcore.maintenance.index_keeper import building_memory_kb


@pytest.mark.parametrize(("dimensions", "megabytes"), [(768, 275), (1_536, 354)])
def test_a_build_may_take_what_pgvector_asks_for_to_train_the_most_lists(dimensions: int, megabytes: int) -> None:
    # As pgvector 0.8.5 reported for 1,000 lists ("memory required is 275 MB").
    assert building_memory_kb("ivfflat", dimensions, 1_000_000) > megabytes * 1_024


def test_lists_over_the_default_model_take_no_more_than_a_quarter_of_a_gigabyte() -> None:
    assert building_memory_kb("ivfflat", 384, 1_000_000) <= 262_144


@pytest.mark.parametrize(("rows", "megabytes"), [(2_000, 64), (100_000, 170), (1_000_000, 1_702), (10_000_000, 2_048)])
def test_a_graph_is_built_in_memory_up_to_two_gigabytes(rows: int, megabytes: int) -> None:
    assert building_memory_kb("hnsw", 384, rows) // 1_024 == megabytes
