"""Finds the span in which two token sequences differ, and whether one value replaces another there. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import takewhile
from typing import NamedTuple

from agentcore.memory.statements import statement_words as known
from agentcore.memory.statements.values import TYPED, Token, content, folded, kinds

_LONGEST_VALUE_TOKENS = 6
_ALIKE_NAMES = 0.75
_NAMING = frozenset({"identifier", "word", "name", "version", "number"})


class Difference(NamedTuple):
    """The old span, the new span, and the tokens that both share around it."""

    old: list[Token]
    new: list[Token]
    shared: list[Token]

    @property
    def frame(self) -> frozenset[str]:
        """The shared words, unordered."""
        return frozenset(token.canon for token in self.shared)


def difference(old: Sequence[Token], new: Sequence[Token]) -> Difference | None:
    """Returns the single span that differs; None if there is none, or it is too long or no value."""
    start = _alike_at_first(old, new)
    end = min(_alike_at_first(old[::-1], new[::-1]), min(len(old), len(new)) - start)
    old_span, new_span = list(old[start : len(old) - end]), list(new[start : len(new) - end])
    if not old_span or not new_span or max(len(old_span), len(new_span)) > _LONGEST_VALUE_TOKENS:
        return None
    both = {token.canon for token in old_span} & {token.canon for token in new_span}
    if both - {"to", "and"} or any(token.canon in known.FINITE for token in (*old_span, *new_span)):
        return None
    return Difference(old_span, new_span, [*old[:start], *old[len(old) - end :]])


def _alike_at_first(old: Sequence[Token], new: Sequence[Token]) -> int:
    same = takewhile(lambda pair: pair[0].canon == pair[1].canon, zip(old, new, strict=False))
    return sum(1 for _ in same)


def comparable(old: Sequence[Token], new: Sequence[Token]) -> bool:
    """Returns whether both are different values of one kind, not two spellings of one value."""
    if _of_two_relations(old, new) or _under_conditions(old, new):
        return False
    if _day_for_date(old, new) or is_part(old, new):
        return False
    were, are = kinds(old), kinds(new)
    if "name" in were & are or TYPED.isdisjoint(were | are):
        return not alike(old, new)
    return _measure_alike(old, new) and _of_one_kind(were, are)


def _of_two_relations(old: Sequence[Token], new: Sequence[Token]) -> bool:
    were, are = old[0].canon, new[0].canon
    return were != are and {were, are} <= known.RELATING and TYPED.isdisjoint(kinds(old) | kinds(new))


def _under_conditions(old: Sequence[Token], new: Sequence[Token]) -> bool:
    return any(token.canon in known.CONDITIONS for token in (*old[1:], *new[1:]))


def _day_for_date(old: Sequence[Token], new: Sequence[Token]) -> bool:
    return {token.kind for token in old} ^ {token.kind for token in new} == {"date", "weekday"}


def _of_one_kind(were: frozenset[str], are: frozenset[str]) -> bool:
    if "identifier" in were | are and were | are <= _NAMING:
        return True
    unit = {"word"} if "number" in were & are else set()
    return were - unit == are - unit


def _measure_alike(old: Sequence[Token], new: Sequence[Token]) -> bool:
    amounts = [_amount(tokens) for tokens in (old, new)]
    if amounts[0] is None or amounts[1] is None:
        return True
    (kind, value), (also_kind, other) = amounts[0], amounts[1]
    return kind == also_kind and value != other


def _amount(tokens: Sequence[Token]) -> tuple[str, float] | None:
    numbers = [token.canon for token in tokens if token.kind == "number"]
    units = [token.canon for token in tokens if token.kind in {"word", "name"}]
    if len(numbers) != 1 or len(units) != 1 or len(tokens) != 2:
        return None
    kind, size = known.UNITS.get(units[0], (units[0], 1.0))
    return kind, float(numbers[0]) * size


def is_part(old: Sequence[Token], new: Sequence[Token]) -> bool:
    """Returns whether one is the other in more detail."""
    were, are = content(old), content(new)
    if any(token.canon in known.COUNTRIES for token in old) != any(token.canon in known.COUNTRIES for token in new):
        return True
    return were <= are or are <= were or _one_day(old, new)


def _one_day(old: Sequence[Token], new: Sequence[Token]) -> bool:
    days = [[token.canon.split("-") for token in tokens if token.kind == "date"] for tokens in (old, new)]
    if [len(each) for each in days] != [1, 1]:
        return False
    [old_day], [new_day] = days
    same_day = old_day[1] == new_day[1] or "0" in (old_day[1], new_day[1])
    same_year = old_day[2:] == new_day[2:] or not old_day[2:] or not new_day[2:]
    return old_day[0] == new_day[0] and same_day and same_year


def alike(old: Sequence[Token], new: Sequence[Token]) -> bool:
    """Returns whether both are probably spellings of one name."""
    were = folded("".join(token.canon for token in old))
    are = folded("".join(token.canon for token in new))
    if were.startswith(are) or are.startswith(were):
        return True
    return SequenceMatcher(None, were, are, autojunk=False).ratio() > _ALIKE_NAMES


def are_names(old: Sequence[Token], new: Sequence[Token]) -> bool:
    return all(any(token.kind == "name" for token in tokens) for tokens in (old, new))
