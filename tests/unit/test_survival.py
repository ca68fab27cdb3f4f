"""Survival of sources' content in a model's summary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest

from agentcore.memory.summaries.grounding import LOST, UNGROUNDED, Checked, SourceTexts, tokens_of_text
from agentcore.memory.summaries.grounding import checked as checked_by
from agentcore.memory.summaries.summarizing import Source

TRIP = (
    "Maren and Jonas fly to Lisbon on 14 March 2027 with the ferry tickets in the bag.",
    "The hotel by the river costs 480 euros for the whole week, breakfast is extra.",
    "We should pack light this time, the stairs there are steep.",
)
MOVED = "I moved to Ghent for the new job."


def count(text: str) -> int:
    """One token a word."""
    return len(text.split())


def checked(
    text: str, facts: Sequence[str], sources: Sequence[Source], max_tokens: int, count: Callable[[str], int]
) -> Checked:
    return checked_by(text, facts, SourceTexts(sources), sources, max_tokens, count)


def told(*texts: str, speaker: str | None = None) -> list[Source]:
    return [
        Source(UUID(int=place), datetime(2026, 6, 1, 12, place, tzinfo=UTC), speaker, text, 0.5)
        for place, text in enumerate(texts, 1)
    ]


def test_words_that_hold_every_name_number_and_date_stand_alone() -> None:
    said = "Maren and Jonas go to Lisbon on March 14th, 2027; the hotel is 480 euros a week."
    found = checked(said, (), told(*TRIP), 120, count)
    assert (found.content, found.degraded) == (said, None)


@pytest.mark.shows("issue5-2-quality")
def test_what_the_words_lost_stands_below_them_as_it_was_said() -> None:
    found = checked("Maren and Jonas fly to Lisbon on 14 March 2027.", (), told(*TRIP), 120, count)
    assert found.degraded is None
    assert found.facts == [TRIP[1]]
    assert found.content.endswith(f"\n- {TRIP[1]}")


def test_a_fact_of_the_models_own_keeps_what_its_summary_lost() -> None:
    fact = "The hotel costs 480 euros."
    found = checked("Maren and Jonas fly to Lisbon on 14 March 2027.", [fact], told(*TRIP), 120, count)
    assert found.facts == [fact]


@pytest.mark.parametrize(("other", "said"), [("480 euros", TRIP[1]), ("14 March 2027", TRIP[0])])
def test_a_sentence_with_another_number_or_date_gives_way_to_the_one_that_was_said(other: str, said: str) -> None:
    whole = "Maren and Jonas fly to Lisbon on 14 March 2027. The hotel costs 480 euros."
    found = checked(whole.replace(other, other.replace("4", "5")), (), told(*TRIP), 120, count)
    assert found.facts == [said]
    assert found.text in whole
    assert found.degraded == UNGROUNDED


def test_words_that_kept_nothing_of_it_are_of_no_use() -> None:
    found = checked("They spoke of this and that.", (), told(*TRIP), 120, count)
    assert (found.text, found.degraded) == ("", LOST)


def test_where_nothing_has_a_name_or_a_number_nothing_can_be_lost() -> None:
    found = checked("They will pack light.", (), told(TRIP[2]), 60, count)
    assert (found.content, found.degraded) == ("They will pack light.", None)


def test_who_said_it_is_a_name_too() -> None:
    assert checked("Somebody moved to Ghent", (), told(MOVED, speaker="Ada"), 60, count).facts == [f"Ada: {MOVED}"]
    assert checked("Ada moved to Ghent.", (), told(MOVED, speaker="Ada"), 60, count).facts == []


@pytest.mark.parametrize("room", [12, 30, 60, 120, 200])
def test_all_of_it_keeps_within_its_room_and_the_evidence_goes_before_the_models_facts(room: int) -> None:
    facts = [f"They will also look at the {each} boats of the harbour." for each in ("red", "green", "blue")]
    found = checked("Maren and Jonas fly to Lisbon on 14 March 2027. " * 9, facts, told(*TRIP), room, count)
    assert count(found.content) <= room
    assert count(found.text) <= tokens_of_text(room)
    lost = [each for each in found.facts if each not in facts]
    assert found.facts == [*facts[: len(found.facts) - len(lost)], *lost]
    assert TRIP[1] in lost or room < 120
