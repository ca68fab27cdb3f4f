"""Text on its way to a language model and back: capped, cut, without thoughts. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator

from agentcore.memory.language.text import sentences

# What one request holds of memories at most, and of one memory.
REQUEST_BYTES, MEMORY_BYTES = 16_384, 8_192

_TAG = "(?:think|thinking|thought|reasoning)"
_MARK = re.compile(rf"<(?P<closes>/?)(?P<tag>{_TAG})>", re.IGNORECASE | re.ASCII)


def without_thoughts(text: str) -> str:
    """What a model says without what it thought aloud, whole or cut off at either end."""
    said = _without(text, _whole_thoughts(text))
    first = _MARK.search(said)
    # A model whose template opens the tag itself closes it alone; one that is cut off never does.
    if first is not None and first["closes"]:
        said = said[first.end() :]
    said = said.strip()
    opened = _MARK.match(said)
    return "" if opened is not None and not opened["closes"] else said


def without_thought_lines(text: str) -> str:
    """What people may have said too, who speak of such tags: only whole thoughts that begin a line go."""
    found = _whole_thoughts(text, begin_lines=True)
    return _without(text, ((start, _past_blanks(text, end)) for start, end in found)).strip()


def _whole_thoughts(text: str, *, begin_lines: bool = False) -> Iterator[tuple[int, int]]:
    """Where thoughts that are closed start and end, in order.

    A text may be made of such tags: each is looked at once.
    """
    ends: dict[str, int] = {}
    closed: list[tuple[int, int]] = []
    for mark in reversed([*_MARK.finditer(text)]):
        tag, start = mark["tag"].lower(), mark.start()
        if mark["closes"]:
            ends[tag] = mark.end()
        elif tag in ends and (not begin_lines or start == 0 or text[start - 1] == "\n"):
            closed.append((start, ends[tag]))
    past = 0
    for start, end in reversed(closed):
        if start >= past:
            yield start, end
            past = end


def _without(text: str, places: Iterable[tuple[int, int]]) -> str:
    kept, past = [], 0
    for start, end in places:
        kept.append(text[past:start])
        past = end
    return "".join([*kept, text[past:]])


def _past_blanks(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at


def capped(text: str, most_bytes: int = MEMORY_BYTES) -> str:
    """At most so many bytes of the text in UTF-8, at the end of a character."""
    return text.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")


def size_bytes(text: str) -> int:
    """The length of the text in UTF-8."""
    return len(text.encode("utf-8", "replace"))


def within(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """The first sentences that fit, and of a first one that does not its beginning."""
    kept = ""
    for sentence in sentences(text):
        longer = f"{kept} {sentence}".strip()
        if count(longer) > max_tokens:
            break
        kept = longer
    return kept or beginning(text, max_tokens, count)


def beginning(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """As much of a text's beginning as fits, found by halving."""
    fits, too_long = 0, len(text) + 1
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if count(text[:middle]) <= max_tokens:
            fits = middle
        else:
            too_long = middle
    return text[:fits].rstrip()
