"""Text on its way to a language model and back: capped, cut, without thoughts. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from agentcore.memory.text import sentences

# What one request holds of memories at most, and of one memory.
REQUEST_BYTES, MEMORY_BYTES = 16_384, 8_192

_TAG = "(?:think|thinking|thought|reasoning)"
_THOUGHT = re.compile(rf"<({_TAG})>.*?</\1>", re.DOTALL | re.IGNORECASE)
# A model whose template opens the tag itself closes it alone; one that is cut off never does.
_BEFORE = re.compile(rf"\A(?:(?!<{_TAG}>).)*?</{_TAG}>", re.DOTALL | re.IGNORECASE)
_OF_LINES = re.compile(rf"^<({_TAG})>.*?</\1>\s*", re.DOTALL | re.IGNORECASE | re.MULTILINE)
_OPEN = re.compile(rf"\A\s*<{_TAG}>.*\Z", re.DOTALL | re.IGNORECASE)


def without_thoughts(text: str) -> str:
    """What a model says without what it thought aloud, whole or cut off at either end."""
    return _OPEN.sub("", _BEFORE.sub("", _THOUGHT.sub("", text))).strip()


def without_thought_lines(text: str) -> str:
    """What people may have said too, who speak of such tags: only whole thoughts that begin a line go."""
    return _OF_LINES.sub("", text).strip()


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
