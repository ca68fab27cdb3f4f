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

    gone: list[Token]
    come: list[Token]
    shared: list[Token]

    @property
    def frame(self) -> frozenset[str]:
        """The shared words, unordered."""
        return frozenset(token.canon for token in self.shared)


def difference(was: Sequence[Token], now: Sequence[Token]) -> Difference | None:
    """Returns the single span that differs; None if there is none, or it is too long or no value."""
    start = _alike_at_first(was, now)
    end = min(_alike_at_first(was[::-1], now[::-1]), min(len(was), len(now)) - start)
    gone, come = list(was[start : len(was) - end]), list(now[start : len(now) - end])
    if not gone or not come or max(len(gone), len(come)) > _LONGEST_VALUE_TOKENS:
        return None
    both = {token.canon for token in gone} & {token.canon for token in come}
    if both - {"to", "and"} or any(token.canon in known.FINITE for token in (*gone, *come)):
        return None
    return Difference(gone, come, [*was[:start], *was[len(was) - end :]])


def _alike_at_first(was: Sequence[Token], now: Sequence[Token]) -> int:
    same = takewhile(lambda pair: pair[0].canon == pair[1].canon, zip(was, now, strict=False))
    return sum(1 for _ in same)


def comparable(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """Returns whether both are different values of one kind, not two spellings of one value."""
    if _of_two_relations(gone, come) or _under_conditions(gone, come):
        return False
    if _day_for_date(gone, come) or is_part(gone, come):
        return False
    were, are = kinds(gone), kinds(come)
    if "name" in were & are or TYPED.isdisjoint(were | are):
        return not alike(gone, come)
    return _measure_alike(gone, come) and _of_one_kind(were, are)


def _of_two_relations(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    were, are = gone[0].canon, come[0].canon
    return were != are and {were, are} <= known.RELATING and TYPED.isdisjoint(kinds(gone) | kinds(come))


def _under_conditions(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    return any(token.canon in known.CONDITIONS for token in (*gone[1:], *come[1:]))


def _day_for_date(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    return {token.kind for token in gone} ^ {token.kind for token in come} == {"date", "weekday"}


def _of_one_kind(were: frozenset[str], are: frozenset[str]) -> bool:
    if "identifier" in were | are and were | are <= _NAMING:
        return True
    unit = {"word"} if "number" in were & are else set()
    return were - unit == are - unit


def _measure_alike(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    amounts = [_amount(tokens) for tokens in (gone, come)]
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


def is_part(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """Returns whether one is the other in more detail."""
    were, are = content(gone), content(come)
    if any(token.canon in known.COUNTRIES for token in gone) != any(token.canon in known.COUNTRIES for token in come):
        return True
    return were <= are or are <= were or _one_day(gone, come)


def _one_day(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    days = [[token.canon.split("-") for token in tokens if token.kind == "date"] for tokens in (gone, come)]
    if [len(each) for each in days] != [1, 1]:
        return False
    [was], [now] = days
    same_day = was[1] == now[1] or "0" in (was[1], now[1])
    same_year = was[2:] == now[2:] or not was[2:] or not now[2:]
    return was[0] == now[0] and same_day and same_year


def alike(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """Returns whether both are probably spellings of one name."""
    were = folded("".join(token.canon for token in gone))
    are = folded("".join(token.canon for token in come))
    if were.startswith(are) or are.startswith(were):
        return True
    return SequenceMatcher(None, were, are, autojunk=False).ratio() > _ALIKE_NAMES


def are_names(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    return all(any(token.kind == "name" for token in tokens) for tokens in (gone, come))
