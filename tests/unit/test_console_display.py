"""Values on pages of the console: differences, hidden characters, bars and the lines of a context."""

from __future__ import annotations

import pytest

from agentcore.console.display import Piece, context_lines, difference, moved, score_bars, visible
from agentcore.memory.models import ScoreTerm


def test_a_change_of_one_word_is_shown_alone() -> None:
    assert difference("Ada lives in Porto now", "Ada lives in Faro now") == [
        Piece("same", "Ada lives in "),
        Piece("removed", "Porto"),
        Piece("added", "Faro"),
        Piece("same", " now"),
    ]


@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("a", ""), ("", "b"), ("a a", "a"), ("x y", "y x"), ("a\nb", "b")]
)
def test_the_pieces_are_both_texts(before: str, after: str) -> None:
    pieces = difference(before, after)
    assert "".join(each.text for each in pieces if each.kind != "added") == before
    assert "".join(each.text for each in pieces if each.kind != "removed") == after


def test_large_repetitive_changes_are_not_compared_token_by_token() -> None:
    long = "a\n" * 131_072
    assert difference(f"x\n{long}y", f"z\n{long}w") == [Piece("removed", f"x\n{long}y"), Piece("added", f"z\n{long}w")]


@pytest.mark.parametrize("hidden", ["\u202e", "\u200b", "\u2066", "\u00ad", "\U000e0041", "\x07", "\ufeff", "\x7f"])
def test_characters_that_hide_text_are_shown(hidden: str) -> None:
    assert hidden not in visible(f"pay{hidden}ment")
    assert visible("line\n\ttab 👩‍👩‍👧") == "line\n\ttab 👩‍👩‍👧"


def test_bars_fill_no_more_than_the_whole() -> None:
    terms = {
        name: ScoreTerm(value=1, weight=each, contribution=each) for name, each in (("a", 0.7), ("b", 0.6), ("c", -0.2))
    }
    bars = score_bars(terms)
    assert [each.name for each in bars] == ["a", "b"]
    assert bars[-1].start + bars[-1].width == pytest.approx(100, abs=0.01)


def test_lines_belong_to_the_memory_whose_number_precedes_them() -> None:
    context = "## Past\n2026-05-01 10:00\n1. user: first\n5. not a number of a memory\n\n2. second"
    assert [line.memory for line in context_lines(context, 2)] == [None, None, 0, 0, None, 1]


def test_nothing_moves_between_empty_results() -> None:
    assert moved([], []) == {}
