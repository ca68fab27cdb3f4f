"""Hostile ids as segments of keys and paths."""

from __future__ import annotations

from uuid import UUID

import pytest

from agentcore.memory.archival import object_key
from agentcore.memory.keys import MAX_SEGMENT_CHARS, encode_segment


@pytest.mark.parametrize("hostile", ["../x", ".", "..", "a:b", "a/b", "\\", "~", "%2E", "é", "a b", "\x00", "*", "?"])
def test_a_segment_holds_nothing_with_a_meaning(hostile: str) -> None:
    segment = encode_segment(hostile)
    assert not set(segment) & set("./:\\ \x00*?")
    assert segment != hostile


@pytest.mark.parametrize(
    ("first", "second"),
    [("casey", "Casey"), ("a", "%41"), ("A", "%41"), ("é", "É"), ("A" * 255, "a" * 255), ("%c3", "%C3")],
)
@pytest.mark.shows("A8")
def test_archive_folders_differ_in_more_than_case(first: str, second: str) -> None:
    keys = {object_key(each, UUID(int=7)).casefold() for each in (first, second)}
    assert len(keys) == 2


def test_agent_and_task_never_meet_across_their_border() -> None:
    assert (encode_segment("a:b"), encode_segment("c")) != (encode_segment("a"), encode_segment("b:c"))
    assert f"{encode_segment('a:b')}:{encode_segment('c')}" != f"{encode_segment('a')}:{encode_segment('b:c')}"


def test_long_ids_stay_apart_and_inside_a_file_name() -> None:
    first, second = encode_segment("é" * 254 + "1"), encode_segment("é" * 254 + "2")
    assert first != second
    assert max(len(first), len(second)) <= MAX_SEGMENT_CHARS


def test_an_object_key_is_two_segments() -> None:
    assert object_key("agent/../x", UUID(int=7)).count("/") == 1
