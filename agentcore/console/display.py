"""Formats values for pages: times, untrusted text, differences, score bars. Pure."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agentcore.memory.models import MemorySummary, Receipt, ScoreTerm
from agentcore.memory.params.changes import HistoryEntry

LISTED_CHARS = 280
# Pairs of tokens that a comparison may examine: it is quadratic for repetitive texts.
MAX_COMPARED_PAIRS = 250_000
# Control and format characters but joiners, which emoji and many scripts need.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
)
_PICTURES = {**{code: chr(0x2400 + code) for code in range(0x20)}, 0x7F: "\u2421"}
_TOKENS = re.compile(r"\s+|\w+|[^\w\s]")
# The number of a memory in a context.
_NUMBERED = re.compile(r"(\d+)\. ")
_DATE_LINE = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?$")


def when(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment.astimezone(UTC):%Y-%m-%d %H:%M}"


def visible(text: str) -> str:
    """Replaces control characters and direction overrides, which can disguise a text, with visible symbols."""
    return _CONTROL.sub(lambda found: _PICTURES.get(ord(found[0]), f"\u27e8U+{ord(found[0]):04X}\u27e9"), text)


def shortened(text: str, chars: int = LISTED_CHARS) -> str:
    joined = " ".join(text[: 4 * chars].split())
    return visible(joined if len(joined) <= chars else f"{joined[:chars].rstrip()}\u2026")


def count(number: float) -> str:
    return f"{number:,}"


def share(number: float | None, digits: int = 3) -> str:
    return "" if number is None else f"{number:.{digits}f}"


OUTCOMES = {
    "returned": "It was returned.",
    "beyond_k": "It was ranked, but below the number of results asked for.",
    "far_below_the_best": "It was ranked, but its score is far below the best: it probably does not answer the query.",
    "nothing_fits": "It was ranked, but nothing was returned: the query is probably about nothing that is stored.",
    "contradicted": "A newer result contradicts it and was returned instead.",
    "same_text": "A newer memory with the same text is ranked instead.",
    "below_min_score": "Its similarity is below the least similarity asked for.",
    "query_or_summary": "It is the query itself, or a summary of a memory that was found.",
    "not_found": "No retriever found it: other memories are nearer to the query, and it has none of its rarer words.",
    "filtered": "It does not match the filters.",
    "superseded": "It is superseded. Searches of the present leave it out; ask about the past, or set a time.",
    "expired": "It has expired.",
    "unknown": "This agent has no such memory: it may be deleted or archived.",
}


@dataclass(frozen=True)
class Piece:
    """A part of a difference: `kind` is same, removed or added."""

    kind: str
    text: str


def difference(before: str, after: str) -> list[Piece]:
    """Compares two texts by words. Large changes become one removed and one added piece."""
    one, other = _TOKENS.findall(before), _TOKENS.findall(after)
    start = _shared(one, other)
    end = _shared(one[start:][::-1], other[start:][::-1])
    old, new = one[start : len(one) - end], other[start : len(other) - end]
    pieces = [Piece("same", "".join(one[:start])), *_changes(old, new), Piece("same", "".join(one[len(one) - end :]))]
    return [piece for piece in pieces if piece.text]


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Returns the number of equal tokens at the start."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[Piece]:
    if len(old) * len(new) > MAX_COMPARED_PAIRS:
        yield from (Piece("removed", "".join(old)), Piece("added", "".join(new)))
        return
    for tag, start, end, to_start, to_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            yield Piece("same", "".join(old[start:end]))
        else:
            yield from (Piece("removed", "".join(old[start:end])), Piece("added", "".join(new[to_start:to_end])))


def differences(entry: HistoryEntry) -> Iterator[tuple[str, list[Piece]]]:
    """Yields each changed field of a history entry with the difference of its values."""
    before, after = entry.before or {}, entry.after or {}
    for name in sorted(before.keys() | after.keys()):
        yield name, difference(as_text(before.get(name)), as_text(after.get(name)))


def as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True)


@dataclass(frozen=True)
class Bar:
    """A segment of a horizontal bar; `start` and `width` in per cent of the whole."""

    name: str
    value: float
    start: float
    width: float


def score_bars(terms: Mapping[str, ScoreTerm] | None) -> list[Bar]:
    """Stacks the positive contributions of a score, largest first; a score is at most 1."""
    positive = sorted(
        ((name, term.contribution) for name, term in (terms or {}).items() if term.contribution > 0),
        key=lambda each: -each[1],
    )
    return _stacked(positive, max(1.0, sum(value for _, value in positive)))


def waterfall(receipt: Receipt) -> list[Bar]:
    """The steps of a call one after another, in milliseconds."""
    steps = [(name, value) for name, value in receipt.timings_ms.items() if name != "total"]
    return _stacked(steps, sum(value for _, value in steps) or 1.0)


def _stacked(parts: Sequence[tuple[str, float]], whole: float) -> list[Bar]:
    bars, start = [], 0.0
    for name, value in parts:
        width = 100 * value / whole
        bars.append(Bar(name, value, round(start, 3), round(width, 3)))
        start += width
    return bars


@dataclass(frozen=True)
class ContextLine:
    """A line of a context; `memory`: the place of its memory in `memory_ids`, None for headings and text between."""

    text: str
    memory: int | None


def context_lines(context: str, memories: int) -> list[ContextLine]:
    """Assigns each line to the memory whose number precedes it; a heading, a date or an empty line ends a memory.

    Memories are numbered in order: a list within a text seldom continues with the next number.
    """
    lines: list[ContextLine] = []
    current: int | None = None
    shown = 0
    for text in context.split("\n"):
        numbered = _NUMBERED.match(text)
        if numbered is not None and int(numbered[1]) == shown + 1 <= memories:
            current = shown
            shown += 1
        elif not text.strip() or text.startswith("#") or _DATE_LINE.match(text):
            current = None
        lines.append(ContextLine(text, current))
    return lines


def context_sections(context: str, token_count: int) -> list[tuple[str, int]]:
    """Returns each section's heading and its share of the tokens, by its share of the characters."""
    parts = [part for part in re.split(r"^(?=#)", context, flags=re.MULTILINE) if part.strip()]
    return [(part.partition("\n")[0].lstrip("# "), round(token_count * len(part) / len(context))) for part in parts]


def moved(first: Sequence[MemorySummary], second: Sequence[MemorySummary]) -> dict[str, str]:
    """Returns for each hit of the second search how its rank changed: "new", "=", or "+2" for two places up."""
    ranks = {each.memory_id: rank for rank, each in enumerate(first)}
    changes: dict[str, str] = {}
    for rank, each in enumerate(second):
        before = ranks.get(each.memory_id)
        changes[str(each.memory_id)] = "new" if before is None else "=" if before == rank else f"{before - rank:+d}"
    return changes
