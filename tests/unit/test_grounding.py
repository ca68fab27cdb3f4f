"""A model's text against its sources: unsupported claims, lost evidence, and sources that are gone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

import pytest

from agentcore.memory.summaries import grounding
from agentcore.memory.summaries.grounding import (
    LOST,
    UNGROUNDED,
    Checked,
    SourceTexts,
    Spoken,
    numbers_of,
    remnants,
    tokens_of_text,
    without_stale,
)
from agentcore.memory.summaries.summarizing import Source


def heard(*texts: str, speaker: str | None = "user") -> SourceTexts:
    """Returns sources of 1 June 2026."""
    noon = datetime(2026, 6, 1, 12, tzinfo=UTC)
    sources = [Source(UUID(int=place), noon, speaker, text, 0.5) for place, text in enumerate(texts, 1)]
    return SourceTexts(sources)


@pytest.mark.parametrize(
    ("claim", "said", "holds"),
    [
        ("It cost 40,000 euros.", "about 40000 euros", True),
        ("It cost 40,000 euros.", "about 40 euros", False),
        ("They take 15 mg.", "i take 1.5 mg", False),
        ("They take 1,5 mg.", "i take 1.5 mg", True),
        ("Policy HX-2210.", "the policy is HX-2210", True),
        ("They have 2 dogs.", "we have two dogs", True),
        ("They have 12 children.", "we have children", False),
        ("That was in 1999.", "that was then", False),
        ("No numbers at all.", "nothing", True),
        ("Call 007.", "agent 7", True),
    ],
)
@pytest.mark.shows("issue5-2-quality")
def test_numbers_must_have_been_said(claim: str, said: str, holds: bool) -> None:
    assert heard(said).holds(claim) is holds


@pytest.mark.parametrize(
    ("claim", "said", "holds"),
    [
        ("On 2026-06-01 they moved.", "we moved", True),
        ("They moved on 1 June 2026.", "we moved today", True),
        ("They move on June 2nd, 2026.", "we move tomorrow", True),
        ("They move on 9 June 2026.", "we move tomorrow", False),
        ("They moved on 14 May 2025.", "we moved on 14 May 2025", True),
    ],
)
def test_a_date_may_be_that_of_the_day_or_of_the_time_spoken_of(claim: str, said: str, holds: bool) -> None:
    assert heard(said).holds(claim) is holds


@pytest.mark.parametrize(
    ("claim", "said", "holds"),
    [
        ("The owner of Atlas is Priya.", "Priya took over Atlas.", True),
        ("The owner of Atlas is Mallory.", "We talked about Atlas over lunch.", False),
        ("Mallory set fire to the warehouse.", "The warehouse burned down.", False),
        ("Mallory Stone was paid.", "Stone was paid.", False),
        ("The user lives in Ghent.", "I moved to Ghent.", True),
        ("They bought a German car.", "We bought a car from Germany.", True),
        ("Maren's sister came.", "My sister Maren came.", True),
        ("Discussion of the flood and the claim.", "The flood came, the claim is filed.", True),
        ("On Monday they will call.", "We call next week.", True),
        ("They use GitHub.", "we use github for it", True),
    ],
)
@pytest.mark.shows("issue5-2-quality")
def test_names_must_have_been_said(claim: str, said: str, holds: bool) -> None:
    assert heard(said).holds(claim) is holds


def test_who_spoke_is_a_name_that_was_said() -> None:
    assert heard("I moved to Ghent.", speaker="Ada").holds("Ada moved to Ghent.")


def test_where_capitals_tell_no_names_only_numbers_must_have_been_said() -> None:
    talk = heard(
        "Der Vertrag mit der Versicherung wurde gestern im Hafen unterschrieben.",
        "Die Pumpe im Keller hat den Schaden am Boden nicht verhindert.",
        "Unser Makler bringt die Unterlagen zum Termin am Freitag.",
    )
    assert talk.holds("Es gab eine Vereinbarung mit dem Versicherer.")
    assert not talk.holds("Der Schaden betrug 7000 Euro.")


def test_a_short_text_full_of_names_still_tells_which_are_made_up() -> None:
    talk = heard("I moved from Bristol to Ghent in 2021, and my sister Maren Holt helped me.")
    assert talk.holds("Maren Holt is the sister of the user.")
    assert not talk.holds("The owner of the boat is Mallory now.")


def test_only_sentences_with_what_nobody_said_are_left_out() -> None:
    text = "They met in Ghent. It cost 900 euros. It cost 901 euros. Mallory was there."
    kept = "They met in Ghent. It cost 900 euros.", 2
    assert heard("We met in Ghent for 900 euros.").sentences(text) == kept
    assert heard("nothing").sentences("It cost 5 euros.") == ("", 1)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1.5 and 15 and 1,5", {"1.5", "15"}),
        ("40,000 or 40.000 or 40000", {"40000"}),
        ("2026-06-01", {"2026", "6", "1"}),
        ("at 12:30", {"12:30"}),
        ("none", set()),
    ],
)
def test_numbers_are_told_apart(text: str, numbers: set[str]) -> None:
    assert numbers_of(text) == numbers


TRIP = (
    "Maren and Jonas fly to Lisbon on 14 March 2027 with the ferry tickets in the bag.",
    "The hotel by the river costs 480 euros for the whole week, breakfast is extra.",
    "We should pack light this time, the stairs there are steep.",
)
MOVED = "I moved to Ghent for the new job."


def count(text: str) -> int:
    """One token a word."""
    return len(text.split())


def checked(text: str, facts: Sequence[str], sources: Sequence[Source], max_tokens: int) -> Checked:
    return grounding.checked(text, facts, SourceTexts(sources), sources, max_tokens, count)


def told(*texts: str, speaker: str | None = None) -> list[Source]:
    return [
        Source(UUID(int=place), datetime(2026, 6, 1, 12, place, tzinfo=UTC), speaker, text, 0.5)
        for place, text in enumerate(texts, 1)
    ]


def test_words_that_hold_every_name_number_and_date_stand_alone() -> None:
    said = "Maren and Jonas go to Lisbon on March 14th, 2027; the hotel is 480 euros a week."
    found = checked(said, (), told(*TRIP), 120)
    assert (found.content, found.degraded) == (said, None)


@pytest.mark.shows("issue5-2-quality")
def test_what_the_words_lost_stands_below_them_as_it_was_said() -> None:
    found = checked("Maren and Jonas fly to Lisbon on 14 March 2027.", (), told(*TRIP), 120)
    assert found.degraded is None
    assert found.facts == [TRIP[1]]
    assert found.content.endswith(f"\n- {TRIP[1]}")


def test_a_fact_of_the_models_own_keeps_what_its_summary_lost() -> None:
    fact = "The hotel costs 480 euros."
    found = checked("Maren and Jonas fly to Lisbon on 14 March 2027.", [fact], told(*TRIP), 120)
    assert found.facts == [fact]


@pytest.mark.parametrize(("other", "said"), [("480 euros", TRIP[1]), ("14 March 2027", TRIP[0])])
def test_a_sentence_with_another_number_or_date_gives_way_to_the_one_that_was_said(other: str, said: str) -> None:
    whole = "Maren and Jonas fly to Lisbon on 14 March 2027. The hotel costs 480 euros."
    found = checked(whole.replace(other, other.replace("4", "5")), (), told(*TRIP), 120)
    assert found.facts == [said]
    assert found.text in whole
    assert found.degraded == UNGROUNDED


def test_words_that_kept_nothing_of_it_are_of_no_use() -> None:
    found = checked("They spoke of this and that.", (), told(*TRIP), 120)
    assert (found.text, found.degraded) == ("", LOST)


def test_where_nothing_has_a_name_or_a_number_nothing_can_be_lost() -> None:
    found = checked("They will pack light.", (), told(TRIP[2]), 60)
    assert (found.content, found.degraded) == ("They will pack light.", None)


def test_who_said_it_is_a_name_too() -> None:
    assert checked("Somebody moved to Ghent", (), told(MOVED, speaker="Ada"), 60).facts == [f"Ada: {MOVED}"]
    assert checked("Ada moved to Ghent.", (), told(MOVED, speaker="Ada"), 60).facts == []


@pytest.mark.parametrize("room", [12, 30, 60, 120, 200])
def test_all_of_it_keeps_within_its_room_and_the_evidence_goes_before_the_models_facts(room: int) -> None:
    facts = [f"They will also look at the {each} boats of the harbour." for each in ("red", "green", "blue")]
    found = checked("Maren and Jonas fly to Lisbon on 14 March 2027. " * 9, facts, told(*TRIP), room)
    assert count(found.content) <= room
    assert count(found.text) <= tokens_of_text(room)
    lost = [each for each in found.facts if each not in facts]
    assert found.facts == [*facts[: len(found.facts) - len(lost)], *lost]
    assert TRIP[1] in lost or room < 120


SUMMARY = "Ada: The ship left at dawn.\nBen: It carries salt.\nAda: The crew is nine."


def test_lines_of_none_of_those_who_are_there_are_kept() -> None:
    there = [Spoken("Ben", "It carries salt. It is heavy.", []), Spoken("Ada", "The crew is nine.", [])]
    assert remnants(SUMMARY, there) == "Ada: The ship left at dawn."


def test_what_was_said_before_is_no_remnant() -> None:
    there = [Spoken("Ben", "It is heavy.", ["It carries salt."]), Spoken("Ada", "", ["The crew is nine."])]
    assert remnants(SUMMARY, there) == "Ada: The ship left at dawn."


def test_the_same_words_of_another_speaker_are_another_line() -> None:
    assert remnants(SUMMARY, [Spoken("Cid", "It carries salt.", [])]) == SUMMARY


def test_without_a_speaker_a_sentence_stands_by_itself() -> None:
    told = "The ship left at dawn.\n- The crew is nine."
    assert remnants(told, [Spoken(None, "The crew is nine.", [])]) == "The ship left at dawn."


def test_stale_is_what_was_said_and_is_no_more() -> None:
    there = [Spoken("Ben", "It is heavy.", ["It carries salt."]), Spoken("Ada", "The crew is nine.", [])]
    assert without_stale(SUMMARY, there) == "Ada: The ship left at dawn.\nAda: The crew is nine."


def test_what_another_still_says_is_not_stale() -> None:
    there = [Spoken("Ben", "", ["It carries salt."]), Spoken("Ben", "It carries salt.", [])]
    assert without_stale(SUMMARY, there) == SUMMARY
