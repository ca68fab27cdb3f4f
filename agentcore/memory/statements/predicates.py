"""The verb of a sentence: where it stands, whether it is denied, what stands behind it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from agentcore.memory.statements import statement_words as known

_DENYING = frozenset({"not", "no", "longer"})
_BEFORE_VERB = known.MODALS | _DENYING


@dataclass(frozen=True, slots=True)
class Predicate:
    """A verb in its first form and the words behind it. `marked`: "no longer" stands before it."""

    verb: str
    behind: list[str]
    negated: bool
    marked: bool


def read_predicate(said: Sequence[str]) -> Predicate | None:
    """The predicate whose verb, or what goes before the verb, is the first word; None without a verb."""
    lowered = [word.lower() for word in said]
    leading = list(takewhile(_BEFORE_VERB.__contains__, lowered))
    at = len(leading)
    if at == len(said) or lowered[at] not in known.VERBS:
        return None
    verb, behind = _compound(known.VERBS[lowered[at]], list(said[at + 1 :]))
    negated = "not" in leading or "no" in leading
    return Predicate(verb, behind, negated, "longer" in leading)


def denials(behind: Sequence[str]) -> list[str]:
    """The words with which what stands behind a verb begins and is denied, in small letters."""
    return list(takewhile(_DENYING.__contains__, (word.lower() for word in behind)))


def verb_place(said: Sequence[str]) -> int | None:
    """Where the finite verb stands: in number it goes with what stands before it."""
    for at in range(1, min(len(said), 16)):
        word, before = said[at].lower(), said[at - 1].lower()
        if word in known.MODALS or (word == "no" and said[at + 1 : at + 2] == ["longer"]):
            return at
        if word not in known.VERBS or before in known.DETERMINERS or before in known.POSSESSORS:
            continue
        if _agrees(word, before, at):
            return at
    return None


def _agrees(verb: str, before: str, at: int) -> bool:
    base = known.VERBS[verb]
    if base in {"be", "have", "decide"}:
        return True
    pronoun = at == 1 and before in {"i", "we", "you"}
    if verb == base:
        return pronoun or (before.endswith("s") and not before.endswith(("ss", "'s")))
    return not pronoun


def _compound(verb: str, behind: list[str]) -> tuple[str, list[str]]:
    if verb == "have" and behind[:1] == ["been"]:
        return "be", behind[1:]
    if verb == "be" and behind and behind[0].lower() in known.VERBS and behind[0].endswith("ing"):
        return known.VERBS[behind[0].lower()], behind[1:]
    return verb, behind
