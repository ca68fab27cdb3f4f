"""Tests the labeled retrieval set: reproducible from its generator, valid, storable, with enough near
misses."""

from __future__ import annotations

import gzip
import json
import runpy
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from agentcore.memory.lexical import terms
from agentcore.memory.models import Interaction

ROOT = Path(__file__).resolve().parents[2]
SET = ROOT / "benchmarks" / "data" / "ac2.jsonl.gz"
TEXT = gzip.decompress(SET.read_bytes()).decode()
CONVERSATIONS: list[dict[str, Any]] = [json.loads(line) for line in TEXT.splitlines()]
CATEGORIES = {"paraphrase", "identifier", "scoped", "time", "outcome", "preference", "multi"}
# A word in at most this share of an agent's memories counts as rare.
RARE_SHARE = 0.05
NEAR_MISSES = 4

every_agent = pytest.mark.parametrize(
    "conversation", CONVERSATIONS, ids=[each["conversation_id"] for each in CONVERSATIONS]
)


def near_misses(conversation: dict[str, Any]) -> dict[str, int]:
    """Counts, for each query, the irrelevant memories that share two of its words or one rare word."""
    words = {memory["id"]: set(terms(f"{memory['speaker']} {memory['text']}")) for memory in conversation["memories"]}
    frequency = Counter(word for of_memory in words.values() for word in of_memory)
    found = {}
    for query in conversation["queries"]:
        asked = set(terms(query["text"]))
        rare = {word for word in asked if frequency[word] <= RARE_SHARE * len(words)}
        found[query["id"]] = sum(
            len(asked & of_memory) >= 2 or bool(rare & of_memory)
            for memory_id, of_memory in words.items()
            if memory_id not in query["relevant_ids"]
        )
    return found


def test_the_file_is_what_its_generator_writes() -> None:
    assert runpy.run_path(str(ROOT / "benchmarks" / "data" / "ac2" / "write.py"))["lines"]() == TEXT


def test_the_file_carries_no_time_of_writing() -> None:
    assert SET.read_bytes()[4:8] == b"\0\0\0\0"


@pytest.mark.shows("AC-2")
def test_the_set_has_the_size_that_the_requirement_asks_for() -> None:
    queries = [query for each in CONVERSATIONS for query in each["queries"]]
    relevant = {memory_id for query in queries for memory_id in query["relevant_ids"]}
    by_category = Counter(query["category"] for query in queries)
    assert sum(query["answerable"] for query in queries) >= 110
    assert by_category.pop("unanswerable") >= 20
    assert by_category.keys() == CATEGORIES
    assert max(by_category.values()) - min(by_category.values()) <= 2
    assert sum(len(each["memories"]) for each in CONVERSATIONS) - len(relevant) >= 2_000


def test_words_alone_find_less_than_three_quarters() -> None:
    bm25 = runpy.run_path(str(ROOT / "benchmarks" / "data" / "ac2" / "baselines.py"))["bm25"]
    shares = []
    for conversation in CONVERSATIONS:
        memories, queries = conversation["memories"], conversation["queries"]
        scores = bm25([memory["text"] for memory in memories], [query["text"] for query in queries])
        for row, query in zip(scores, queries, strict=True):
            best = {memories[each]["id"] for each in (-row).argsort(kind="stable")[:5]}
            if relevant := set(query["relevant_ids"]):
                shares.append(len(best & relevant) / min(5, len(relevant)))
    assert sum(shares) / len(shares) < 0.75


@every_agent
def test_memories_stand_in_time_order_and_none_is_doubled(conversation: dict[str, Any]) -> None:
    memories = conversation["memories"]
    moments = [datetime.fromisoformat(memory["timestamp"]) for memory in memories]
    assert moments == sorted(set(moments))
    assert all(len({memory[name] for memory in memories}) == len(memories) for name in ("id", "text"))


@every_agent
def test_a_session_is_several_interactions_of_one_person_on_one_day(conversation: dict[str, Any]) -> None:
    sessions: dict[str, list[dict[str, Any]]] = {}
    for memory in conversation["memories"]:
        sessions.setdefault(memory["session_id"], []).append(memory)
    assert min(map(len, sessions.values())) >= 3
    for told in sessions.values():
        assert len({(memory["speaker"], memory["timestamp"][:10]) for memory in told}) == 1


@every_agent
def test_each_memory_is_an_interaction_that_the_service_takes(conversation: dict[str, Any]) -> None:
    for memory in conversation["memories"]:
        taken = Interaction(**memory["interaction"])
        assert memory["text"] == f"{taken.query}\n{taken.response}"
        assert "{" not in memory["text"] and "|" not in memory["text"]


@every_agent
def test_labels_name_three_memories_or_more_from_before_the_question(conversation: dict[str, Any]) -> None:
    told = {memory["id"]: memory["timestamp"] for memory in conversation["memories"]}
    for query in conversation["queries"]:
        assert query["answerable"] == bool(query["relevant_ids"]) == (query["category"] != "unanswerable")
        assert len(set(query["relevant_ids"])) == len(query["relevant_ids"])
        assert len(query["relevant_ids"]) in ((3, 4, 5, 6, 7) if query["answerable"] else (0,))
        assert all(told[memory_id] < query["asked_at"] for memory_id in query["relevant_ids"])


@every_agent
def test_each_query_has_irrelevant_memories_that_share_its_words(conversation: dict[str, Any]) -> None:
    assert {name: count for name, count in near_misses(conversation).items() if count < NEAR_MISSES} == {}
