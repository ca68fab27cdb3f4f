"""Where two runs of words differ, and whether what differs is one value in the place of another. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from agentcore.memory import statement_words as known
from agentcore.memory.values import TYPED, Token, content, folded, kinds

_LONGEST_VALUE_TOKENS = 6
_ALIKE_NAMES = 0.75


def difference(
    was: Sequence[Token], now: Sequence[Token]
) -> tuple[list[Token], list[Token], list[Token]] | None:
    """What went, what came, and what both share: one stretch each; None where they differ otherwise."""
    start = 0
    while start < min(len(was), len(now)) and was[start].canon == now[start].canon:
        start += 1
    end = 0
    while end < min(len(was), len(now)) - start and was[-1 - end].canon == now[-1 - end].canon:
        end += 1
    gone, come = list(was[start : len(was) - end]), list(now[start : len(now) - end])
    if not gone or not come or max(len(gone), len(come)) > _LONGEST_VALUE_TOKENS:
        return None
    both = {token.canon for token in gone} & {token.canon for token in come}
    if both - {"to", "and"} or any(token.canon in known.FINITE for token in (*gone, *come)):
        return None
    return gone, come, [*was[:start], *was[len(was) - end :]]


def comparable(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """Whether both are values of one kind, and not one thing written in two ways."""
    were, are = kinds(gone), kinds(come)
    if any(token.canon in known.CONDITIONS for token in (*gone[1:], *come[1:])):
        return False
    if {token.kind for token in gone} ^ {token.kind for token in come} == {"date", "weekday"}:
        return False
    if "name" in were & are:
        return not is_part(gone, come) and not alike(gone, come)
    if were & TYPED or are & TYPED or "date" in were | are:
        if not _measure_alike(gone, come):
            return False
        if "identifier" in were | are and not (were | are) - {
            "identifier",
            "word",
            "name",
            "version",
            "number",
        }:
            return not is_part(gone, come)
        if "number" in were & are and "word" in were ^ are:
            were, are = were - {"word"}, are - {"word"}
        return were == are and not is_part(gone, come)
    return not is_part(gone, come) and not alike(gone, come)


def _measure_alike(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """In one unit, or two of one kind and another sum: 300 seconds are 5 minutes, miles no kilometres."""
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
    """One is the other with more detail."""
    were, are = content(gone), content(come)
    if any(token.canon in known.COUNTRIES for token in gone) != any(
        token.canon in known.COUNTRIES for token in come
    ):
        return True
    return were <= are or are <= were or _one_day(gone, come)


def _one_day(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """June and June 12, 3 May and 3 May 1990."""
    days = [[token.canon.split("-") for token in tokens if token.kind == "date"] for tokens in (gone, come)]
    if [len(each) for each in days] != [1, 1]:
        return False
    [was], [now] = days
    same_day = was[1] == now[1] or "0" in (was[1], now[1])
    same_year = was[2:] == now[2:] or not was[2:] or not now[2:]
    return was[0] == now[0] and same_day and same_year


def alike(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """One name in two spellings, as far as letters tell."""
    were = folded("".join(token.canon for token in gone))
    are = folded("".join(token.canon for token in come))
    if were.startswith(are) or are.startswith(were):
        return True
    return SequenceMatcher(None, were, are, autojunk=False).ratio() > _ALIKE_NAMES


def are_names(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    return all(any(token.kind == "name" for token in tokens) for tokens in (gone, come))
