"""Whether of what is said there is one value at a time, so that another takes its place. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agentcore.memory.statements import statement_words as known
from agentcore.memory.statements.differences import Difference, are_names
from agentcore.memory.statements.statements import Statement
from agentcore.memory.statements.values import TYPED, Token, content, is_typed, kinds

# Between an attribute and its value these say nothing: "the host is set to ...".
_JOINING = known.CONNECTORS | {"set", "called", "named", "number", "room", "version", "level"}
# What one uses or ships by itself is one of many; "use X for the billing" speaks of one.
_ONE_OF_MANY = frozenset({"use", "ship", "get", "take"})


def is_label(now: Statement, come: Sequence[Token]) -> bool:
    """ "Note 1 of two" is another note than "note 0 of two"; "port 8081" and "Python 3.11" are values."""
    place = next(at for at, token in enumerate(now.tail) if token is come[0])
    if come[0].kind not in TYPED or place == 0:
        return False
    before = now.tail[place - 1]
    named = before.kind != "word" or before.canon in known.CONNECTORS | known.NUMBERED
    return not named and not (now.verb == "be" and before.canon in {"set", "called", "named", "of"})


def may_change(now: Statement, apart: Difference) -> bool:
    """Whether a word such as "now" means that one value went: not where there may be many at a time."""
    if now.request:
        return True
    if _is_of_uncounted_things(now) or _may_be_many(now, apart):
        return False
    if is_typed(apart.come):
        return True
    return _may_become(now, apart) if now.verb == "be" else _may_do_otherwise(now, apart)


def is_single(was: Statement, now: Statement, apart: Difference) -> bool:
    """Whether there is one such value at a time, though no word says that it changed."""
    if now.request or was.request:
        return False
    if _is_measured(now) or _is_another_thing(now, apart):
        return False
    if now.verb == "be" and now.attribute:
        return _is_value_of_attribute(now, apart)
    if _may_be_many(now, apart) or _is_on_some_days(now, apart):
        return False
    if is_typed(apart.come):
        return not _is_hour_among_others(now, apart)
    return _is_single_name(now, apart)


def _is_another_thing(now: Statement, apart: Difference) -> bool:
    return now.verb == "have" and not content(apart.shared)


def _is_measured(now: Statement) -> bool:
    return not known.MEASURED.isdisjoint(now.subject) and known.SETTLED.isdisjoint(now.subject)


def _is_of_uncounted_things(now: Statement) -> bool:
    return now.verb == "have" and not any(token.kind == "number" for token in now.tail)


def _may_be_many(now: Statement, apart: Difference) -> bool:
    return not known.MANY_VALUED.isdisjoint({now.verb, *apart.frame} - {"have"})


def _may_become(now: Statement, apart: Difference) -> bool:
    names = are_names(apart.gone, apart.come)
    placed = names and not {"in", "at", "by"}.isdisjoint(apart.frame)
    if placed or content(apart.shared):
        return True
    return now.attribute and (names or _has_words_for_values(now))


def _may_do_otherwise(now: Statement, apart: Difference) -> bool:
    if now.verb in _ONE_OF_MANY and not content(apart.shared):
        return False
    return now.verb in known.CHANGEABLE and not (now.verb == "ship" and "to" in apart.frame)


def _is_value_of_attribute(now: Statement, apart: Difference) -> bool:
    if is_typed(apart.come):
        return True
    named = are_names(apart.gone, apart.come) or _has_words_for_values(now)
    return named and apart.frame <= _JOINING


def _has_words_for_values(now: Statement) -> bool:
    return not now.subject.isdisjoint(known.WORDED | known.CHOSEN)


def _is_on_some_days(now: Statement, apart: Difference) -> bool:
    if all(token.kind != "weekday" for token in apart.come):
        return False
    return now.verb not in known.DAY_VERBS or not apart.frame.isdisjoint({"open", "closed"})


def _is_hour_among_others(now: Statement, apart: Difference) -> bool:
    """ "The bus to Graz is at 9" may go at 10 too; what leaves, opens or starts by the clock has a timetable.

    One that has a number of its own, such as a flight, goes once.
    """
    if "at" not in apart.frame or not kinds(apart.come) <= {"time", "number"}:
        return False
    if now.verb in known.TIMETABLED:
        return not any(char.isdigit() for word in now.subject for char in word)
    return kinds(apart.come) == {"time"} and now.verb == "be" and len(apart.frame) > 2


def _is_single_name(now: Statement, apart: Difference) -> bool:
    if now.verb in {"study", "drive"} or not apart.frame.isdisjoint(known.SINGLE_NAME):
        return _are_like_names(apart)
    rule = _SINGLE_BY_VERB.get(now.verb)
    return rule is not None and rule(apart)


def _are_like_names(apart: Difference) -> bool:
    plain = {token.kind for token in (*apart.gone, *apart.come)} <= {"name", "word"}
    return plain and apart.come[-1].kind == apart.gone[-1].kind and are_names(apart.gone, apart.come)


def _is_one_employer(apart: Difference) -> bool:
    named = all(token.kind == "name" for token in (*apart.gone, *apart.come))
    return named and not apart.frame.isdisjoint({"for", "at", "with"})


def _is_one_place(apart: Difference) -> bool:
    return not apart.frame.isdisjoint({"to", "place"}) and are_names(apart.gone, apart.come)


def _is_plain_preference(apart: Difference) -> bool:
    return bool(apart.frame) and apart.frame.isdisjoint(known.CONNECTORS)


_SINGLE_BY_VERB: Mapping[str, Callable[[Difference], bool]] = {
    "work": _is_one_employer,
    "go": _is_one_place,
    "take": _is_one_place,
    "prefer": _is_plain_preference,
}
