"""Splits long texts into passages that fit an embedding model's input. Pure."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from agentcore.memory.language.text import UNSPACED

# The local model truncates at 256 tokens, some of which its prefix and the speaker's name take.
# Later passages of half the length improve retrieval of single facts: decision 55.
MOST_TOKENS = 256
FIRST_TOKENS, PASSAGE_TOKENS, OVERLAP_TOKENS = 236, 118, 24
_WORD_CHARS = 16
# Combining marks that `re` does not match as letters: Hebrew, Arabic, Indian scripts.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0dff"
_PIECE = re.compile(
    rf"(?P<space>\s+)|(?P<latin>[A-Z]?[a-z\u00c0-\u024f]{{1,{_WORD_CHARS}}})|(?P<capitals>[A-Z]{{1,{_WORD_CHARS}}})"
    rf"|(?P<digits>\d{{1,2}})|(?P<unspaced>[{UNSPACED}]{{1,4}})"
    rf"|(?P<letters>(?:[^\W\d_]|[{_MARKS}]){{1,{_WORD_CHARS}}})|.",
    re.DOTALL,
)
# Lower bounds over all languages measured; a piece has at least one token.
_CHARS_PER_TOKEN = {"latin": 3.5, "capitals": 2.0, "unspaced": 1.0, "letters": 2.6}
_FULL_STOPS = frozenset("\u3002\uff01\uff1f")
_SENTENCE_END = re.compile("[.!?\u2026][\"'\u201d\u2019\u00bb)\\]*_]{0,4}$")
_TURN = re.compile(r"[^\n:]{1,40}: ")
# Grades of boundaries: none, a space, the end of a sentence or line, the end of a turn or paragraph.
_NONE, _SPACE, _SENTENCE, _TURN_END = range(4)


@dataclass(frozen=True)
class Passage:
    start: int
    end: int


def passages(text: str) -> list[Passage]:
    """Returns passages of at most MOST_TOKENS tokens that cover the text, in order; each overlaps the next.

    Token counts are upper estimates, which text in no language may exceed.
    """
    starts, grades, costs = _boundaries(text)
    found: list[Passage] = []
    first, last, tokens = 0, len(starts) - 1, FIRST_TOKENS
    while True:
        most = bisect_right(costs, costs[first] + tokens) - 1
        if most >= last:
            return [*found, Passage(starts[first], len(text))]
        least = bisect_right(costs, costs[first] + tokens // 2)
        end = _best(grades, range(most, least - 1, -1))
        found.append(Passage(starts[first], starts[end]))
        earliest = bisect_right(costs, costs[end] - OVERLAP_TOKENS - 1)
        first = _best(grades, range(earliest, end), most=_SENTENCE)
        tokens = PASSAGE_TOKENS


def is_long(text: str) -> bool:
    """Returns whether the text has more than one passage."""
    tokens = 0.0
    for piece in _PIECE.finditer(text):
        tokens += _tokens(piece)
        if tokens > FIRST_TOKENS:
            return True
    return False


def _boundaries(text: str) -> tuple[list[int], list[int], list[float]]:
    starts, grades, costs = [], [], []
    tokens, grade = 0.0, _TURN_END
    for piece in _PIECE.finditer(text):
        starts.append(piece.start())
        grades.append(grade)
        costs.append(tokens)
        tokens += _tokens(piece)
        grade = _grade_after(text, piece)
    return [*starts, len(text)], [*grades, _TURN_END], [*costs, tokens]


def _tokens(piece: re.Match[str]) -> float:
    kind = piece.lastgroup
    if kind == "space":
        return 0.0
    return max(1.0, (piece.end() - piece.start()) / _CHARS_PER_TOKEN.get(kind or "", _WORD_CHARS))


def _grade_after(text: str, piece: re.Match[str]) -> int:
    end = piece.end()
    if piece.lastgroup != "space":
        return _SENTENCE if text[end - 1] in _FULL_STOPS else _NONE
    lines = piece[0].count("\n")
    if lines:
        return _TURN_END if lines > 1 or _TURN.match(text, end) else _SENTENCE
    before = text[max(0, piece.start() - 5) : piece.start()]
    return _SENTENCE if _SENTENCE_END.search(before) else _SPACE


def _best(grades: Sequence[int], places: range, most: int = _TURN_END) -> int:
    """Returns the first place of the highest grade, at most `most`."""
    return max(places, key=lambda place: min(grades[place], most))
