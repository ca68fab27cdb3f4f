"""The text inventory as data: names, prefixes and folders neither overlap nor have gaps."""

from __future__ import annotations

from uuid import uuid4

import pytest

from agentcore.memory.archival import object_key
from agentcore.memory.embedding_cache import CACHE_KEY_PREFIX
from agentcore.memory.forgetting.inventory import (
    ARCHIVE,
    INVENTORY,
    SHARED_EMBEDDINGS,
    TABLES,
    WORKING_MEMORY,
    RedisKeys,
)

HOSTILE = ["a", "a:b", "A", "..", ".", "../x", "*", "[a]", "?", "%", "a%3Ab", "x" * 255, "é", "e\u0301"]


def test_each_place_stands_once_and_says_what_clears_it() -> None:
    names = [place.name for place in INVENTORY]
    assert len(set(names)) == len(names)
    assert all(place.cleared_by for place in INVENTORY)


def test_a_column_is_of_one_kind() -> None:
    for table in TABLES:
        columns = [*table.text, *table.vectors, *table.digests, *table.labels]
        assert len(set(columns)) == len(columns), table.name


def test_the_record_itself_and_the_archive_are_not_derived() -> None:
    lasting = {place.name for place in INVENTORY if not place.derived}
    assert {"memories", "memory_history", "archive"} <= lasting
    assert not {"working memory", "lexical_terms", SHARED_EMBEDDINGS.name} & lasting


def test_no_redis_prefix_lies_below_another() -> None:
    prefixes = [place.prefix for place in INVENTORY if isinstance(place, RedisKeys)]
    assert CACHE_KEY_PREFIX in prefixes
    assert not [(a, b) for a in prefixes for b in prefixes if a is not b and a.startswith(b)]


@pytest.mark.parametrize("place", [WORKING_MEMORY, SHARED_EMBEDDINGS], ids=lambda place: str(place.name))
@pytest.mark.parametrize("agent_id", HOSTILE)
def test_a_pattern_matches_nothing_but_its_own_agents_keys(agent_id: str, place: RedisKeys) -> None:
    pattern = place.pattern(agent_id)
    # A single star after the final separator: no other wildcard of SCAN.
    assert pattern.endswith(":*")
    assert not set("*?[]\\") & set(pattern.removesuffix("*"))
    others = {place.pattern(other) for other in HOSTILE if other != agent_id}
    assert not [other for other in others if other.startswith(pattern.removesuffix("*"))]


@pytest.mark.parametrize("agent_id", HOSTILE)
def test_an_archive_folder_begins_its_own_agents_keys_and_nobody_elses(agent_id: str) -> None:
    keys = {other: object_key(other, uuid4()) for other in HOSTILE}
    assert [other for other, key in keys.items() if key.startswith(ARCHIVE.folder(agent_id))] == [agent_id]
