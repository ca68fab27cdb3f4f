"""The sentences of a text that tell most of what is asked, verbatim: shortening without a model. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence, Set

from agentcore.memory.language.text import sentences, words
from agentcore.memory.lexical import terms

# Of a longer text only the beginning is read, or what is around the passage that matched.
READ_CHARS = 16_000
READ_SENTENCES = 300
# A token has 4 to 5 characters on average; what has more than this for each token of room is not counted.
MOST_CHARACTERS_PER_TOKEN = 6
LEFT_OUT = " \u2026 "
_LEFT_OUT_TOKENS = 2
_START = 2
# What a sentence gets of what the one before or behind it tells, and for what it is by itself.
_BESIDE, _FIRST, _NUMBERED, _NAMED = 0.25, 0.05, 0.03, 0.02
# A sentence of the passage that matched is worth more than any other.
_MATCHED = 2.0


def extract(
    text: str,
    query_terms: Set[str],
    max_tokens: int,
    count: Callable[[str], int],
    passage: tuple[int, int] | None = None,
) -> str:
    """Returns the sentences that fit, those first that contain the query's rarest terms, in the text's order.

    Those of a passage, given by its offsets, come before all others. An ellipsis marks what is left out in
    between. Empty if no sentence fits.
    """
    pieces, matched = _pieces(text, passage)
    worths = [
        worth + _MATCHED * (place in matched) for place, worth in enumerate(_worths(pieces, query_terms))
    ]
    chosen: list[int] = []
    room = max_tokens
    for place in sorted(range(len(pieces)), key=lambda each: (-worths[each], each)):
        if len(pieces[place]) > room * MOST_CHARACTERS_PER_TOKEN:
            continue
        taken = count(pieces[place]) + _LEFT_OUT_TOKENS
        if taken <= room:
            chosen.append(place)
            room -= taken
    return _joined(pieces, sorted(chosen))


def _pieces(text: str, passage: tuple[int, int] | None) -> tuple[list[str], range]:
    """Returns the sentences that are read, and which of them are the passage's."""
    if passage is None:
        return sentences(text[:READ_CHARS])[:READ_SENTENCES], range(0)
    start, end = passage
    beside = max(0, READ_CHARS - (end - start)) // 2
    most = READ_SENTENCES // 3
    before = sentences(text[max(0, start - beside) : start])[-most:]
    matched = sentences(text[start:end])[:most]
    behind = sentences(text[end : end + beside])[:most]
    return [*before, *matched, *behind], range(len(before), len(before) + len(matched))


def _worths(pieces: Sequence[str], query_terms: Set[str]) -> list[float]:
    starts = {term[:_START] for term in query_terms}
    held = [_held(piece, query_terms, starts) for piece in pieces]
    found = Counter(term for each in held for term in each)
    rarity = {term: math.log(1 + len(pieces) / found[term]) for term in found}
    whole = sum(rarity.values()) or 1.0
    told = [sum(rarity[term] for term in each) / whole for each in held]
    return [
        worth + _BESIDE * _around(told, place) + _by_itself(pieces[place], place)
        for place, worth in enumerate(told)
    ]


def _held(piece: str, query_terms: Set[str], starts: Set[str]) -> Set[str]:
    # Stemming takes time, and changes no start.
    near = [word for word in words(piece) if word[:_START] in starts]
    return query_terms & set(terms(" ".join(near)))


def _around(told: Sequence[float], place: int) -> float:
    return sum(told[beside] for beside in (place - 1, place + 1) if 0 <= beside < len(told))


def _by_itself(piece: str, place: int) -> float:
    numbered = any(sign.isdigit() for sign in piece)
    named = any(word[:1].isupper() for word in piece.split()[1:])
    return _FIRST * (place == 0) + _NUMBERED * numbered + _NAMED * named


def _joined(pieces: Sequence[str], places: Sequence[int]) -> str:
    said = ""
    for number, place in enumerate(places):
        follows = number > 0 and places[number - 1] == place - 1
        said += (" " if follows else LEFT_OUT if number else "") + pieces[place]
    return said
