"""Grounding of a model's claims in its sources: names, numbers, dates."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest

from agentcore.memory.summaries.grounding import SourceTexts, numbers_of
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
