"""Parsing of the benchmarks' labeled sets."""

from __future__ import annotations

from benchmarks.labelled import OWN_SETS, conversations, files


def test_every_set_of_this_repository_is_read_where_none_is_named() -> None:
    own = [each for path in files([OWN_SETS]) for each in conversations(path)]
    assert {each.set_name for each in own} == {"ac2", "small", "talks"}
    assert all(each.answerable() for each in own)
