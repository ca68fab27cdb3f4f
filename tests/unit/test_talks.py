"""The labeled conversations: valid format, and figures that match their page."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

DATA = Path(__file__).resolve().parents[2] / "benchmarks" / "data"
PAGE = (DATA / "README.md").read_text(encoding="utf-8").split("\n# ")[0]
TALKS = [json.loads(line) for line in (DATA / "talks.jsonl").read_text(encoding="utf-8").splitlines()]
MEMORY_FIELDS = {"id", "timestamp", "speaker", "text", "session_id"}
QUERY_FIELDS = {
    "id",
    "text",
    "asked_at",
    "category",
    "relevant_ids",
    "relevant_session_ids",
    "answer",
    "answerable",
    "label_complete",
}
CATEGORIES = {
    "single-fact",
    "follow-up",
    "changed-plan",
    "who",
    "time",
    "multi-evidence",
    "preference",
    "time-bounded",
    "unanswerable",
}
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
LONG_WORDS = 8

Row = dict[str, Any]
of_each_talk = pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk["conversation_id"])


def all_of(part: str) -> list[Row]:
    """Returns the memories or the queries of all conversations."""
    return [row for talk in TALKS for row in talk[part]]


def test_an_id_stands_once_in_the_whole_set() -> None:
    for ids in (
        [talk["conversation_id"] for talk in TALKS],
        [row["id"] for row in all_of("memories")],
        [row["id"] for row in all_of("queries")],
    ):
        assert [each for each, times in Counter(ids).items() if times > 1] == []


@of_each_talk
def test_every_row_has_the_shared_form_and_no_blank_text(talk: Row) -> None:
    assert set(talk) == {"dataset", "conversation_id", "memories", "queries"}
    assert talk["dataset"] == "talks"
    assert {frozenset(row) for row in talk["memories"]} == {frozenset(MEMORY_FIELDS)}
    assert {frozenset(row) for row in talk["queries"]} == {frozenset(QUERY_FIELDS)}
    assert all(row["text"] == row["text"].strip() != "" for row in [*talk["memories"], *talk["queries"]])


@of_each_talk
def test_times_rise_sessions_stay_together_and_questions_come_last(talk: Row) -> None:
    times = [row["timestamp"] for row in talk["memories"]]
    assert all(MOMENT.fullmatch(each) for each in [*times, *(row["asked_at"] for row in talk["queries"])])
    assert all(earlier < later for earlier, later in pairwise(times))
    sessions = [row["session_id"] for row in talk["memories"]]
    assert sum(one != other for one, other in pairwise(sessions)) == len(set(sessions)) - 1
    assert all(row["asked_at"] > times[-1] for row in talk["queries"])


@of_each_talk
def test_labels_name_turns_of_the_same_talk_and_the_sessions_of_these(talk: Row) -> None:
    session_of = {row["id"]: row["session_id"] for row in talk["memories"]}
    for row in talk["queries"]:
        relevant = set(row["relevant_ids"])
        assert relevant <= set(session_of), row["id"]
        assert len(relevant) == len(row["relevant_ids"]), row["id"]
        assert row["relevant_session_ids"] == sorted({session_of[each] for each in relevant}), row["id"]


@of_each_talk
def test_only_an_unanswerable_question_lacks_evidence_and_answer(talk: Row) -> None:
    for row in talk["queries"]:
        assert row["category"] in CATEGORIES, row["id"]
        silent = row["category"] == "unanswerable"
        lacks = (not row["answerable"], not row["relevant_ids"], not row["answer"])
        assert lacks == (silent, silent, silent), row["id"]


def test_questions_of_several_turns_have_several() -> None:
    joined = [row for row in all_of("queries") if row["category"] == "multi-evidence"]
    assert [row["id"] for row in joined if len(row["relevant_ids"]) < 2] == []


@of_each_talk
def test_no_question_is_asked_twice_of_a_talk(talk: Row) -> None:
    asked = Counter(row["text"].casefold() for row in talk["queries"])
    assert [text for text, times in asked.items() if times > 1] == []


def test_no_long_turn_stands_twice() -> None:
    said = Counter(
        " ".join(words).casefold()
        for row in all_of("memories")
        if len(words := re.findall(r"\w+", row["text"])) >= LONG_WORDS
    )
    assert [text for text, times in said.items() if times > 1] == []


def test_one_question_in_eight_or_so_has_no_answer() -> None:
    queries = all_of("queries")
    assert 0.10 <= sum(not row["answerable"] for row in queries) / len(queries) <= 0.15


def test_the_page_tells_the_figures_of_each_talk_and_category() -> None:
    told = re.findall(r"^\| `([\w-]+)` \|.*?\| ([\d| to-]*\d) \|$", PAGE, re.MULTILINE)
    counted = {
        category: str(times) for category, times in Counter(row["category"] for row in all_of("queries")).items()
    }
    for talk in TALKS:
        memories = talk["memories"]
        figures = (
            len(memories),
            len({row["session_id"] for row in memories}),
            f"{memories[0]['timestamp'][:7]} to {memories[-1]['timestamp'][:7]}",
            len(talk["queries"]),
        )
        counted[talk["conversation_id"]] = " | ".join(map(str, figures))
    assert dict(told) == counted
