"""Of what a sentence speaks: the words before its verb, whose they are, whether there may be many. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentcore.memory.statements import statement_words as known
from agentcore.memory.statements.values import canonical

_PREPOSITIONS = frozenset(["of", "for", "in", "on", "at", "with", "from", "to", "by"])
_JOINING = known.DETERMINERS | _PREPOSITIONS | known.FILLERS
_OWN = frozenset({*known.POSSESSORS, "i", "we"})
_LONGEST_WORDS = 14


@dataclass(frozen=True, slots=True)
class Subject:
    words: frozenset[str]
    own: bool
    attribute: bool
    generic: bool


def read_subject(said: Sequence[str]) -> Subject | None:
    """The subject's words; None for one that is of many, or that other words must tell."""
    lowered = [word.lower().strip(",") for word in said]
    if not _is_definite(lowered):
        return None
    own = any(word in _OWN for word in lowered)
    head = _head(lowered)
    attribute = head in known.ATTRIBUTES or not known.CHOSEN.isdisjoint(lowered)
    words = {canonical(known.POSSESSORS.get(word, word)) for word in lowered if word not in _JOINING}
    words -= {"", "new", "current"} if attribute else {""}
    if not words:
        return None
    return Subject(frozenset(words), own, attribute, _is_generic(said, words, head, own=own))


def _is_definite(lowered: Sequence[str]) -> bool:
    if not lowered or len(lowered) > _LONGEST_WORDS:
        return False
    return lowered[0] not in known.INDEFINITE and lowered[0] not in known.UNKNOWN_SUBJECTS


def _head(lowered: Sequence[str]) -> str:
    first_part = next((at for at, word in enumerate(lowered) if word in _PREPOSITIONS), len(lowered))
    return canonical(lowered[first_part - 1]) if first_part else ""


def _is_generic(said: Sequence[str], words: set[str], head: str, *, own: bool) -> bool:
    if any(_is_numbered(word) for word in said):
        return False
    if head in known.EVENTS or head in known.RELATED:
        return True
    if not known.RELATED.isdisjoint(words) and not any(word[:1].isupper() for word in said[1:]):
        return True
    return len(words) == 1 and not own and not _names_one(said, words)


def _is_numbered(word: str) -> bool:
    return any(char.isdigit() or char in "_-./" for char in word)


def _names_one(said: Sequence[str], words: set[str]) -> bool:
    named = said[-1][:1].isupper() and said[-1].lower() not in known.ATTRIBUTES
    return named or not words.isdisjoint(known.KNOWN_BY_ROLE)
