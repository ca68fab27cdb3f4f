"""The labeled small stores: valid format, and figures that match their page."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from benchmarks.labelled import Conversation, conversations

DATA = Path(__file__).resolve().parents[2] / "benchmarks" / "data"
PAGE = (DATA / "small.md").read_text(encoding="utf-8")
AGENTS = list(conversations(DATA / "small.jsonl"))


def row_of(agent: Conversation) -> str:
    """Returns the agent's row on the page without its subject."""
    counts = (len(agent.memories), len(agent.answerable()), len(agent.unanswerable()))
    return " | ".join(map(str, counts)) + " |"


def test_each_store_is_small_and_asked_for_what_it_holds_and_what_it_never_held() -> None:
    for agent in AGENTS:
        assert 20 <= len(agent.memories) <= 30
        assert len(agent.unanswerable()) >= 5
        known = {each["id"] for each in agent.memories}
        assert all(known.issuperset(each["relevant_ids"]) for each in agent.questions)


def test_ids_stand_once_and_questions_come_after_all_facts() -> None:
    ids = [row["id"] for agent in AGENTS for row in (*agent.memories, *agent.questions)]
    assert len(ids) == len(set(ids))
    for agent in AGENTS:
        times = [each["timestamp"] for each in agent.memories]
        assert all(earlier < later for earlier, later in pairwise(times))
        assert all(each["asked_at"] > times[-1] for each in agent.questions)


def test_the_page_tells_the_counts() -> None:
    assert [row for row in map(row_of, AGENTS) if row not in PAGE] == []
