"""What near-duplicates are known by: nearly the same words for the same thing, and nothing else."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agentcore.memory.language.gist import MOST_CHARS, gist, gist_hash, without_stamp

SAID_AT = datetime(2026, 5, 4, 12, tzinfo=UTC)
DAY = datetime(2026, 5, 3, tzinfo=UTC), datetime(2026, 5, 4, tzinfo=UTC)
PAIRS = tomllib.loads((Path(__file__).parents[1] / "data" / "near_duplicates.toml").read_text("utf-8"))


def alike(one: str, other: str) -> bool:
    return gist(without_stamp(one, SAID_AT)) == gist(without_stamp(other, SAID_AT))


def test_there_are_enough_pairs_of_both_kinds_and_none_stands_twice() -> None:
    pairs = [tuple(pair) for kind in PAIRS.values() for pair in kind]
    assert len(PAIRS["same"]) >= 30
    assert len(PAIRS["different"]) >= 30
    assert len(set(pairs)) == len(pairs)


@pytest.mark.parametrize(("one", "other"), PAIRS["same"])
def test_nearly_the_same_words_for_the_same_thing_are_alike(one: str, other: str) -> None:
    assert one != other
    assert alike(one, other)


@pytest.mark.parametrize(("one", "other"), PAIRS["different"])
def test_what_says_something_else_is_never_alike_however_near_its_words_are(one: str, other: str) -> None:
    assert not alike(one, other)


@pytest.mark.parametrize("text", ["...", "Hi!", "please", "\U0001F600", "?", "the", "", "'s", "n't"])
def test_what_holds_nothing_but_what_is_left_out_is_like_nothing_else(text: str) -> None:
    assert gist(text) != gist("The gate code is 8051")
    assert gist(text)
    assert gist("Hi!") != gist("Thanks!")


def test_of_a_long_text_only_the_normal_form_is_compared() -> None:
    long = "The gate is open. " * (MOST_CHARS // 18 + 1)
    assert gist(long) == gist(long.upper())
    assert gist(long) != gist(long.replace("The gate", "Gate"))


@pytest.mark.parametrize(("text", "expected"), [
    ("2026-05-04 10:00:00,123 INFO done", "INFO done"),
    ("[2026-05-04 10:00] done", "done"),
    ("[2026-05-01 10:00] dentist", "[2026-05-01 10:00] dentist"),
    ("2026-05-20T10:00:00Z launch", "2026-05-20T10:00:00Z launch"),
    ("2026-02-31 10:00:00 done", "2026-02-31 10:00:00 done"),
    ("2026-05-04 10:00 dentist", "2026-05-04 10:00 dentist"),
    ("[10:00] dentist", "[10:00] dentist"),
    ("10:00:05", "10:00:05"),
    ("[2026-05-04 10:00]", "[2026-05-04 10:00]"),
])
def test_only_the_stamp_of_a_log_is_taken_off(text: str, expected: str) -> None:
    assert without_stamp(text, SAID_AT) == expected


def test_the_same_words_about_another_day_have_another_digest() -> None:
    said = gist("I ran five miles yesterday")
    assert gist_hash(said, DAY) == gist_hash(said, DAY)
    assert gist_hash(said, DAY) != gist_hash(said, None)
    assert gist_hash(said, DAY) != gist_hash(said, (DAY[0], SAID_AT))
