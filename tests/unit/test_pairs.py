"""The labeled pairs of memories: format, figures on their page, and accuracy of the rules."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from pathlib import Path

import pytest

from benchmarks.changing_facts import HALVES
from benchmarks.contradictions import judged, pairs

DATA = Path(__file__).resolve().parents[2] / "benchmarks" / "data"
PAGE = (DATA / "README.md").read_text(encoding="utf-8")
LABELS = ("contradicting", "similar", "near", "same")
FIELDS = {
    "id",
    "old",
    "new",
    "old_at",
    "new_at",
    "old_speaker",
    "new_speaker",
    "same_session",
    "label",
    "entity",
    "attribute",
    "old_value",
    "new_value",
    "note",
}


def test_each_pair_has_every_field_and_an_id_of_its_own() -> None:
    assert {frozenset(pair) for pair in pairs()} == {frozenset(FIELDS)}
    assert len({pair["id"] for pair in pairs()}) == len(pairs()) >= 300
    assert {json.dumps(pair["label"]) for pair in pairs()} == {json.dumps(label) for label in LABELS}


def test_contradicting_pairs_name_what_changed() -> None:
    for pair in pairs():
        named = [pair[name] for name in ("entity", "attribute", "old_value", "new_value")]
        assert all(named) == (pair["label"] == "contradicting"), pair["id"]


def test_most_pairs_are_told_in_order_and_those_that_are_not_replace_nothing() -> None:
    late = [pair for pair in pairs() if datetime.fromisoformat(pair["new_at"]) < datetime.fromisoformat(pair["old_at"])]
    assert late
    assert {pair["label"] for pair in late} == {"similar"}


def test_the_page_tells_how_many_pairs_there_are() -> None:
    counts = Counter(pair["label"] for pair in pairs())
    for label in LABELS:
        [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{label}` |")]
        assert row.endswith(f"| {counts[label]} |")


@pytest.mark.parametrize("half", HALVES)
@pytest.mark.shows("issue4-2-pairs")
def test_facts_are_superseded_rightly_and_nothing_is_merged(half: str) -> None:
    found = judged(half)
    assert found["precision"] >= 0.98
    assert found["recall"] >= 0.70
    assert found["false_merges"] == 0
