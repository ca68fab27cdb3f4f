"""Everyday words, and words that are not."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from agentcore.memory.everyday import everyday_share
from agentcore.memory.lexical import terms

TALKS = Path(__file__).resolve().parents[2] / "benchmarks" / "data" / "talks.jsonl"


def share(word: str) -> float:
    """Returns the share of everyday memories that contain the word."""
    [term] = terms(word)
    return everyday_share(term)


@pytest.mark.parametrize("word", ["take", "took", "run", "running", "uses", "works", "got", "needs", "lives"])
def test_light_verbs_are_everyday_words_in_each_inflection(word: str) -> None:
    assert share(word) > 0.005


@pytest.mark.parametrize("word", ["metformin", "kubernetes", "lasagne", "Hartmann", "Priya"])
def test_what_tells_something_is_none(word: str) -> None:
    assert share(word) == 0.0


def test_a_share_never_passes_one_in_twenty() -> None:
    assert 0 < max(map(share, ["take", "use", "day", "people", "teacher"])) <= 0.05


def test_words_of_most_talks_are_everyday_words() -> None:
    talks = [json.loads(line) for line in TALKS.read_text(encoding="utf-8").splitlines()]
    held = Counter(
        term for talk in talks for term in {each for row in talk["memories"] for each in terms(row["text"])}
    )
    common = [term for term, count in held.items() if count >= 7 and term.isalpha()]
    unknown = [term for term in common if not everyday_share(term)]
    assert len(unknown) <= 0.05 * len(common), unknown
