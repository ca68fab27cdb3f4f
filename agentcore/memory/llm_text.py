"""Text on its way to a language model and back: capped, without thoughts, checked by what was said. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from agentcore.memory.text import collapse, sentences

# What one request holds of memories at most, and of one memory.
REQUEST_BYTES, MEMORY_BYTES = 16_384, 8_192

_THOUGHT = re.compile(r"<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
# A model whose template opens the tag itself closes it alone; one that is cut off never does.
_BEFORE = re.compile(r"\A.*?</(?:think|thinking|thought|reasoning)>", re.DOTALL | re.IGNORECASE)
_AFTER = re.compile(r"<(?:think|thinking|thought|reasoning)>.*\Z", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_SEPARATORS = re.compile(r"[.,:]")


def without_thoughts(text: str) -> str:
    """The text without what a model thought aloud, whole or cut off at either end."""
    return _AFTER.sub("", _BEFORE.sub("", _THOUGHT.sub("", text))).strip()


def capped(text: str, most_bytes: int = MEMORY_BYTES) -> str:
    """At most so many bytes of the text in UTF-8, at the end of a character."""
    return text.encode("utf-8", "replace")[:most_bytes].decode("utf-8", "ignore")


def size_bytes(text: str) -> int:
    """The length of the text in UTF-8."""
    return len(text.encode("utf-8", "replace"))


def grounded(claim: str, said: str) -> bool:
    """Whether every number of the claim stands in what was said: models make up none so often as those."""
    return numbers_of(claim) <= numbers_of(said)


def grounded_sentences(text: str, said: str) -> tuple[str, int]:
    """The sentences of a text whose numbers were said, and how many were left out."""
    found: Sequence[str] = [collapse(each) for each in sentences(text)]
    kept = [each for each in found if grounded(each, said)]
    return " ".join(kept), len(found) - len(kept)


def within(text: str, max_tokens: int, count: Callable[[str], int]) -> str:
    """The first sentences that fit, and of a first one that does not its beginning."""
    kept = ""
    for sentence in sentences(text):
        longer = f"{kept} {sentence}".strip()
        if count(longer) > max_tokens:
            break
        kept = longer
    # Two characters a token are few enough in most scripts.
    return kept or text[: 2 * max_tokens]


def numbers_of(text: str) -> set[str]:
    """The numbers of a text, 40,000 and 40000 the same; with the parts of each: 2026-06-01 tells of 2026."""
    found: Iterable[str] = _NUMBER.findall(text)
    return {_SEPARATORS.sub("", each).lstrip("0") or "0" for each in found}
