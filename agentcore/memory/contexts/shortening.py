"""Shortens texts of a context: extracts sentences, and drops those that other lines contain. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from uuid import UUID

from agentcore.memory.contexts.fencing import quoted
from agentcore.memory.contexts.rendering import TASK, ContextEntry, ContextLine
from agentcore.memory.language.text import normal_form, sentences, words
from agentcore.memory.lexical import terms

# Limits of a longer text: only its beginning is parsed, or the part around the matched passage.
READ_CHARS = 16_000
READ_SENTENCES = 300
# A token has 4 to 5 characters on average: longer texts are not counted.
MOST_CHARACTERS_PER_TOKEN = 6
LEFT_OUT = " \u2026 "
_LEFT_OUT_TOKENS = 2
_START = 2
# Weights of adjacent sentences, of the first sentence, of digits and of names.
_BESIDE, _FIRST, _NUMBERED, _NAMED = 0.25, 0.05, 0.03, 0.02
# Bonus of a sentence in the matched passage: higher than any other score.
_MATCHED = 2.0


def extract(
    text: str,
    query_terms: Set[str],
    max_tokens: int,
    count: Callable[[str], int],
    passage: tuple[int, int] | None = None,
) -> str:
    """Returns the sentences with the query's rarest terms, in text order, with an ellipsis at each gap.

    Those of `passage` (start and end offset) rank before all others. Empty if no sentence fits.
    """
    pieces, matched = _pieces(text, passage)
    scores = [score + _MATCHED * (place in matched) for place, score in enumerate(_scores(pieces, query_terms))]
    chosen: list[int] = []
    room = max_tokens
    for place in sorted(range(len(pieces)), key=lambda each: (-scores[each], each)):
        if len(pieces[place]) > room * MOST_CHARACTERS_PER_TOKEN:
            continue
        taken = count(pieces[place]) + _LEFT_OUT_TOKENS
        if taken <= room:
            chosen.append(place)
            room -= taken
    return _joined(pieces, sorted(chosen))


def _pieces(text: str, passage: tuple[int, int] | None) -> tuple[list[str], range]:
    if passage is None:
        return sentences(text[:READ_CHARS])[:READ_SENTENCES], range(0)
    start, end = passage
    beside = max(0, READ_CHARS - (end - start)) // 2
    most = READ_SENTENCES // 3
    before = sentences(text[max(0, start - beside) : start])[-most:]
    matched = sentences(text[start:end])[:most]
    behind = sentences(text[end : end + beside])[:most]
    return [*before, *matched, *behind], range(len(before), len(before) + len(matched))


def _scores(pieces: Sequence[str], query_terms: Set[str]) -> list[float]:
    starts = {term[:_START] for term in query_terms}
    held = [_held(piece, query_terms, starts) for piece in pieces]
    found = Counter(term for each in held for term in each)
    rarity = {term: math.log(1 + len(pieces) / found[term]) for term in found}
    whole = sum(rarity.values()) or 1.0
    told = [sum(rarity[term] for term in each) / whole for each in held]
    return [
        score + _BESIDE * _around(told, place) + _by_itself(pieces[place], place) for place, score in enumerate(told)
    ]


def _held(piece: str, query_terms: Set[str], starts: Set[str]) -> Set[str]:
    # Stemming is slow and keeps the first letters.
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


# Shorter texts ("Yes.", "Thanks a lot!") depend on the line before them.
LEAST_WORDS = 3
_SET_OFF = ".,;:!'\"()\u2026\u2018\u2019\u201c\u201d"
_CODE = "```"

TokensOf = Callable[[ContextEntry, str], int]
Words = tuple[str, ...]


@dataclass(frozen=True)
class _Sentence:
    row: int
    speaker: str
    text: str
    words: Words


class Reading:
    """Splits lines into sentences, normalized for comparison, with their speakers."""

    def __init__(self, entries: Iterable[ContextEntry]) -> None:
        self.speakers = {_speaker(entry): entry.speaker or "" for entry in entries}
        self._split = cache(_split)

    def sentences(self, line: ContextLine) -> list[_Sentence]:
        found: list[_Sentence] = []
        for row, said in enumerate(self._rows(line)):
            speaker = _speaker(line.entry)
            for text, normalized in self._split(said):
                name, colon, rest = text.partition(": ")
                named = normal_form(name) if colon else ""
                if named and named in self.speakers:
                    speaker, text, normalized = named, rest, _words(rest)
                found.append(_Sentence(row, speaker, text, normalized))
        return found

    def _rows(self, line: ContextLine) -> list[str]:
        if _CODE in line.unquoted_text:
            # A code block is one sentence of several rows.
            return [line.unquoted_text]
        if not line.shortened or not line.entry.sources:
            return line.unquoted_text.split("\n")
        # A shortened summary has its rows joined: split it at speakers' names.
        names = "|".join([r"\w+", *(re.escape(name) for name in self.speakers.values() if name)])
        return re.split(rf"(?<=[.!?\u2026\"\u201d)]) (?=(?:{names}): )", line.unquoted_text)


def without_repetitions(lines: Sequence[ContextLine], tokens_of: TokensOf, reading: Reading) -> list[ContextLine]:
    """Removes from summaries the sentences that other lines contain; drops lines that become empty.

    Lines are in order of score: of two summaries the later one loses a sentence. Sentences that an earlier call
    removed are restored if no line contains them any more: the result may exceed the input.
    """
    whole = [_whole(line, tokens_of) for line in lines]
    repeats = _Repeats(whole, reading)
    left: dict[int, ContextLine | None] = {}
    last_first = range(len(whole) - 1, -1, -1)
    for place in last_first:
        if whole[place].entry.sources:
            left[place] = repeats.without_told(place, tokens_of)
    for place in last_first:
        if not whole[place].entry.sources and repeats.is_contained(place):
            left[place] = None
    kept = (left.get(place, line) for place, line in enumerate(whole))
    return [line for line in kept if line is not None]


def told_by_others(entries: Sequence[ContextEntry], lines: Sequence[ContextLine], reading: Reading) -> set[UUID]:
    """Returns the memories, none of them among the lines, whose sentences the lines all contain."""
    missing = [ContextLine(each, "", 0, shortened=False, unquoted_text=each.content) for each in entries]
    repeats = _Repeats([*lines, *missing], reading)
    places = range(len(lines), len(lines) + len(missing))
    for place in places:
        repeats.forget(place, ())
    return {entry.memory_id for entry, place in zip(entries, places, strict=True) if repeats.is_told(place)}


class _Repeats:
    """The lines that contain each sentence, with its speakers."""

    def __init__(self, lines: Sequence[ContextLine], reading: Reading) -> None:
        self._lines = lines
        self._speakers = reading.speakers
        self._sentences = [reading.sentences(line) for line in lines]
        self._tellers: dict[Words, dict[int, set[str]]] = {}
        for place, sentences_of_line in enumerate(self._sentences):
            for each in sentences_of_line:
                self._tellers.setdefault(each.words, {}).setdefault(place, set()).add(each.speaker)

    def without_told(self, place: int, tokens_of: TokensOf) -> ContextLine | None:
        """Returns a summary without sentences that other lines contain; None if no sentence remains."""
        line, read = self._lines[place], self._sentences[place]
        left = [each for each in read if not self._told(each, place)]
        if len(left) == len(read):
            return line
        self.forget(place, left)
        if not left:
            return None
        text = quoted(self._joined(read, {*left}, _speaker(line.entry)))
        tokens = line.tokens - tokens_of(line.entry, line.text) + tokens_of(line.entry, text)
        return replace(line, text=text, tokens=tokens, has_duplicates_removed=True)

    def _joined(self, read: Sequence[_Sentence], left: Set[_Sentence], own: str) -> str:
        text, before = "", _Sentence(-1, own, "", ())
        gap = False
        for each in read:
            if each not in left:
                gap = True
                continue
            goes_on = each.row == before.row
            text += (LEFT_OUT if gap else " ") if goes_on else "\n" * bool(text)
            if each.speaker != (before.speaker if goes_on else own):
                text += f"{self._speakers[each.speaker]}: "
            text += each.text
            before, gap = each, False
        return text

    def is_told(self, place: int) -> bool:
        """Returns whether other lines contain all sentences of this line, summary or not."""
        read = self._sentences[place]
        if not self._lines[place].entry.sources:
            return self.is_contained(place)
        return bool(read) and all(self._told(each, place) for each in read)

    def _told(self, sentence: _Sentence, place: int) -> bool:
        """Returns whether another line contains the sentence, by the same speaker unless it has none."""
        tellers = self._tellers.get(sentence.words, {})
        return any(
            other != place and (not sentence.speaker or sentence.speaker in speakers)
            for other, speakers in tellers.items()
        )

    def is_contained(self, place: int) -> bool:
        """Returns whether one other line, no older, contains all sentences; if so, forgets this line."""
        entry, read = self._lines[place].entry, self._sentences[place]
        of_window = entry.section == TASK and not entry.outside_window
        if of_window or sum(len(each.words) for each in read) < LEAST_WORDS:
            return False
        for other in self._tellers.get(read[0].words, {}).keys() - {place}:
            teller = self._lines[other].entry
            later = teller.timestamp >= entry.timestamp and not teller.sources
            if later and all(each.speaker in self._tellers.get(each.words, {}).get(other, ()) for each in read):
                self.forget(place, ())
                return True
        return False

    def forget(self, place: int, left: Iterable[_Sentence]) -> None:
        """Removes this line's sentences, except for those that are left."""
        kept = {each.words for each in left}
        for each in self._sentences[place]:
            if each.words not in kept:
                self._tellers.get(each.words, {}).pop(place, None)


def _whole(line: ContextLine, tokens_of: TokensOf) -> ContextLine:
    if not line.has_duplicates_removed:
        return line
    text = quoted(line.unquoted_text)
    tokens = line.tokens - tokens_of(line.entry, line.text) + tokens_of(line.entry, text)
    return replace(line, text=text, tokens=tokens, has_duplicates_removed=False)


def _speaker(entry: ContextEntry) -> str:
    return normal_form(entry.speaker or "")


def _split(text: str) -> list[tuple[str, Words]]:
    return [(each, words) for each in sentences(text) if (words := _words(each))]


def _words(text: str) -> Words:
    return tuple([word for each in normal_form(text).split() if (word := each.strip(_SET_OFF))])
