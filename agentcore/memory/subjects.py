"""Of what a sentence speaks: the words before its verb, whose they are, whether there may be many. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentcore.memory import statement_words as known
from agentcore.memory.values import canonical

_PREPOSITIONS = frozenset(["of", "for", "in", "on", "at", "with", "from", "to", "by"])


@dataclass(frozen=True, slots=True)
class Subject:
    words: frozenset[str]
    own: bool
    attribute: bool
    generic: bool


def read_subject(said: Sequence[str]) -> Subject | None:
    """The subject's words; None for one that is of many, or that other words must tell."""
    lowered = [word.lower().strip(",") for word in said]
    if (
        not lowered
        or lowered[0] in known.INDEFINITE
        or lowered[0] in known.UNKNOWN_SUBJECTS
        or len(lowered) > 14
    ):
        return None
    own = any(word in known.POSSESSORS or word in {"i", "we"} for word in lowered)
    first_part = next((at for at, word in enumerate(lowered) if word in _PREPOSITIONS), len(lowered))
    head = canonical(lowered[first_part - 1]) if first_part else ""
    attribute = head in known.ATTRIBUTES or not known.CHOSEN.isdisjoint(lowered)
    words = {
        canonical(known.POSSESSORS.get(word, word))
        for word in lowered
        if word not in known.DETERMINERS and word not in _PREPOSITIONS and word not in known.FILLERS
    }
    if attribute:
        words -= {"new", "current"}
    words = {word for word in words if word}
    if not words:
        return None
    return Subject(frozenset(words), own, attribute, _is_generic(said, words, head, own=own))


def _is_generic(said: Sequence[str], words: set[str], head: str, *, own: bool) -> bool:
    """Whether there may be many such: an event without a number, a common noun by itself."""
    if any(char.isdigit() or char in "_-./" for word in said for char in word):
        return False
    if head in known.EVENTS or head in known.RELATED:
        return True
    if not known.RELATED.isdisjoint(words) and not any(word[:1].isupper() for word in said[1:]):
        return True
    named = said[-1][:1].isupper() and said[-1].lower() not in known.ATTRIBUTES
    return len(words) == 1 and not own and not named and words.isdisjoint(known.KNOWN_BY_ROLE)
