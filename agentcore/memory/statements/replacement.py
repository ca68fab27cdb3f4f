"""Decides whether one statement supersedes another, and by which rule. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agentcore.memory.statements import statement_words as known
from agentcore.memory.statements.differences import Difference, alike, are_names, comparable, difference, is_part
from agentcore.memory.statements.statements import Statement
from agentcore.memory.statements.values import TYPED, Token, canonical, content, is_typed, kinds

# Carry no meaning between an attribute and its value: "the host is set to ...".
_JOINING = known.CONNECTORS | {"set", "called", "named", "number", "room", "version", "level"}
# Alone, one uses or ships several things; "use X for the billing" is single-valued.
_ONE_OF_MANY = frozenset({"use", "ship", "get", "take"})
# Another value of an attribute that may have several: left to a language model, no rule decides it.
POSSIBLE = "possible"
# State by its spelling, raw and canonical.
_STATES = {
    written: state
    for group in known.STATES
    for state in group
    for written in (state, " ".join(canonical(word) for word in state.split()))
}
# Multi-valued: a new value is added and does not replace one.
_NEVER_MOVED = frozenset({"like", "love", "have", "speak", "play", "know"})


def takes_place(was: Statement, now: Statement) -> str:
    """Returns the rule by which the later statement supersedes the earlier one, POSSIBLE, or "" for none."""
    if now.negated or was.negated:
        return _ended(was, now)
    if was.subject != now.subject:
        return _by_role(was, now) or _counted(was, now)
    if now.changed or was.changed:
        return "changed" if _changes(was, now) else ""
    if was.verb != now.verb:
        return _left_state(was, now)
    return _same_frame(was, now)


def _left_state(was: Statement, now: Statement) -> str:
    return "state" if was.verb == "be" and _other_state(was, now) else ""


def _same_frame(was: Statement, now: Statement) -> str:
    if _other_state(was, now):
        return "state"
    apart = difference(was.tail, now.tail)
    if apart is None:
        return ""
    if now.dropped and _tells(apart.gone, now.dropped, apart.shared):
        return "named"
    if not comparable(apart.gone, apart.come):
        return ""
    if is_label(now, apart.come):
        return POSSIBLE
    if now.marked and may_change(now, apart):
        return "marked"
    return "value" if is_single(was, now, apart) else POSSIBLE


def _tells(gone: Sequence[Token], dropped: Sequence[Token], shared: Sequence[Token] = ()) -> bool:
    said = content(dropped)
    return bool(said & content(gone)) and said <= content(gone) | content(shared)


def _state(tail: Sequence[Token]) -> str | None:
    return _STATES.get(" ".join(token.canon for token in tail))


def _other_state(was: Statement, now: Statement) -> bool:
    before, after = _state(was.tail), _state(now.tail)
    if before is None or after is None or before == after:
        return False
    return any(before in group and after in group for group in known.STATES)


def _ended(was: Statement, now: Statement) -> str:
    if was.negated or not now.negated or not now.marked:
        return ""
    same = was.subject == now.subject and was.verb == now.verb
    return "negated" if same and content(was.tail) == content(now.tail) else ""


def _changes(was: Statement, now: Statement) -> bool:
    if not _NEVER_MOVED.isdisjoint({was.verb, now.verb}):
        return False
    if now.dropped:
        return _tells(was.tail, now.dropped)
    if was.changed and not _may_follow_change(now):
        return False
    gone, come = _values(was), _values(now)
    if not _are_two_values(gone, come):
        return False
    if "live" in {was.verb, now.verb}:
        return not _are_of_work(come) and _is_other_name(was, now, gone, come)
    if is_typed((*gone, *come)):
        return _is_other_amount(was, now, gone, come)
    return _is_other_name(was, now, gone, come)


def _may_follow_change(now: Statement) -> bool:
    return now.changed or now.marked or (now.verb == "be" and now.attribute)


def _values(said: Statement) -> list[Token]:
    return [token for token in said.tail if token.canon not in known.CONNECTORS]


def _are_two_values(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    if not gone or not come:
        return False
    return content(gone) != content(come) and not is_part(gone, come)


def _are_of_work(come: Sequence[Token]) -> bool:
    return any(token.canon in known.ATTRIBUTES for token in come)


def _is_other_name(was: Statement, now: Statement, gone: Sequence[Token], come: Sequence[Token]) -> bool:
    named = {was.verb, now.verb} <= {"live", "take", "change"} or (was.attribute and now.attribute)
    return named and not alike(gone, come) and are_names(gone, come)


def _is_other_amount(was: Statement, now: Statement, gone: Sequence[Token], come: Sequence[Token]) -> bool:
    told = {was.verb, now.verb} <= {"change", "alter", "be"} or now.changed or now.marked
    before, after = _units(gone), _units(come)
    same_unit = not before or not after or before == after
    return told and same_unit and not TYPED.isdisjoint(kinds(gone) & kinds(come))


def _units(tokens: Sequence[Token]) -> set[str]:
    return {token.canon for token in tokens if token.kind == "word"}


def _by_role(was: Statement, now: Statement) -> str:
    if was.own or now.own or not now.marked or not was.tail:
        return ""
    same = was.verb == now.verb and content(was.tail) == content(now.tail)
    return "role" if same and _is_role(now) else ""


def _is_role(said: Statement) -> bool:
    words = " ".join(token.canon for token in said.tail)
    return said.verb in known.ROLE_VERBS or (said.verb == "be" and words.startswith(known.ROLES))


def _counted(was: Statement, now: Statement) -> str:
    before, after = count(was), count(now)
    if before is None or after is None:
        return ""
    (of, number), (also_of, other) = before, after
    return "count" if of == also_of and number != other else ""


def count(said: Statement) -> tuple[frozenset[str], str] | None:
    """Returns the counted thing and its number; None for other statements."""
    numbers = [token.canon for token in said.tail if token.kind == "number"]
    words = [token.canon for token in said.tail if token.kind == "word"]
    if len(numbers) != 1 or len(words) > 2 or len(said.tail) != 1 + len(words):
        return None
    if said.verb == "have" and words:
        return said.subject | set(words), numbers[0]
    return (said.subject, numbers[0]) if said.verb == "be" and not words else None


def is_label(now: Statement, come: Sequence[Token]) -> bool:
    """Returns whether a number is a label ("note 1"), not a value ("port 8081", "Python 3.11")."""
    place = next(at for at, token in enumerate(now.tail) if token is come[0])
    if come[0].kind not in TYPED or place == 0:
        return False
    before = now.tail[place - 1]
    named = before.kind != "word" or before.canon in known.CONNECTORS | known.NUMBERED
    return not named and not (now.verb == "be" and before.canon in {"set", "called", "named", "of"})


def may_change(now: Statement, apart: Difference) -> bool:
    """Returns whether a marker such as "now" means that the old value ended; not if multi-valued."""
    if now.request:
        return True
    if _is_of_uncounted_things(now) or _may_be_many(now, apart):
        return False
    if is_typed(apart.come):
        return True
    return _may_become(now, apart) if now.verb == "be" else _may_do_otherwise(now, apart)


def is_single(was: Statement, now: Statement, apart: Difference) -> bool:
    """Returns whether the value is single-valued without any change marker."""
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
    """Returns whether a time is one of several ("the bus to Graz is at 9"); a numbered thing has only one."""
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
