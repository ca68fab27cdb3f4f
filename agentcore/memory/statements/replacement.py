"""Decides whether one statement supersedes another, and by which rule. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from agentcore.memory.statements import statement_words as known
from agentcore.memory.statements.differences import Difference, alike, are_names, comparable, difference, is_part
from agentcore.memory.statements.statements import Statement
from agentcore.memory.statements.values import TYPED, Token, canonical, content, is_typed, kinds

# Carry no meaning between an attribute and its value: "the host is set to ...".
_JOINING = known.CONNECTORS | {"set", "called", "named", "number", "room", "version", "level"}
# Multi-valued without a purpose ("we use X"); single-valued with one ("we use X for billing").
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
_MULTI_VALUED_VERBS = frozenset({"like", "love", "have", "speak", "play", "know"})


def superseding_rule(old: Statement, new: Statement) -> str:
    """Returns the rule by which the later statement supersedes the earlier one, POSSIBLE, or "" for none."""
    if new.negated or old.negated:
        return _negation_rule(old, new)
    if old.subject != new.subject:
        return _role_rule(old, new) or _count_rule(old, new)
    if new.changed or old.changed:
        return "changed" if _changes(old, new) else ""
    if old.verb != new.verb:
        return _state_after_verb_change(old, new)
    return _same_frame(old, new)


def _state_after_verb_change(old: Statement, new: Statement) -> str:
    return "state" if old.verb == "be" and _is_other_state(old, new) else ""


def _same_frame(old: Statement, new: Statement) -> str:
    if _is_other_state(old, new):
        return "state"
    diff = difference(old.tail, new.tail)
    if diff is None:
        return ""
    if new.dropped and _names_dropped_value(diff.old, new.dropped, diff.shared):
        return "named"
    if not comparable(diff.old, diff.new):
        return ""
    if is_label(new, diff.new):
        return POSSIBLE
    if new.marked and may_change(new, diff):
        return "marked"
    return "value" if is_single(old, new, diff) else POSSIBLE


def _names_dropped_value(old_values: Sequence[Token], dropped: Sequence[Token], shared: Sequence[Token] = ()) -> bool:
    said = content(dropped)
    return bool(said & content(old_values)) and said <= content(old_values) | content(shared)


def _state(tail: Sequence[Token]) -> str | None:
    return _STATES.get(" ".join(token.canon for token in tail))


def _is_other_state(old: Statement, new: Statement) -> bool:
    before, after = _state(old.tail), _state(new.tail)
    if before is None or after is None or before == after:
        return False
    return any(before in group and after in group for group in known.STATES)


def _negation_rule(old: Statement, new: Statement) -> str:
    if old.negated or not new.negated or not new.marked:
        return ""
    same = old.subject == new.subject and old.verb == new.verb
    return "negated" if same and content(old.tail) == content(new.tail) else ""


def _changes(old: Statement, new: Statement) -> bool:
    if not _MULTI_VALUED_VERBS.isdisjoint({old.verb, new.verb}):
        return False
    if new.dropped:
        return _names_dropped_value(old.tail, new.dropped)
    if old.changed and not _may_follow_change(new):
        return False
    old_values, new_values = _values(old), _values(new)
    if not _are_two_values(old_values, new_values):
        return False
    if "live" in {old.verb, new.verb}:
        return not _mentions_attribute(new_values) and _is_other_name(old, new, old_values, new_values)
    if is_typed((*old_values, *new_values)):
        return _is_other_amount(old, new, old_values, new_values)
    return _is_other_name(old, new, old_values, new_values)


def _may_follow_change(new: Statement) -> bool:
    return new.changed or new.marked or (new.verb == "be" and new.attribute)


def _values(said: Statement) -> list[Token]:
    return [token for token in said.tail if token.canon not in known.CONNECTORS]


def _are_two_values(old_values: Sequence[Token], new_values: Sequence[Token]) -> bool:
    if not old_values or not new_values:
        return False
    return content(old_values) != content(new_values) and not is_part(old_values, new_values)


def _mentions_attribute(new_values: Sequence[Token]) -> bool:
    return any(token.canon in known.ATTRIBUTES for token in new_values)


def _is_other_name(old: Statement, new: Statement, old_values: Sequence[Token], new_values: Sequence[Token]) -> bool:
    named = {old.verb, new.verb} <= {"live", "take", "change"} or (old.attribute and new.attribute)
    return named and not alike(old_values, new_values) and are_names(old_values, new_values)


def _is_other_amount(old: Statement, new: Statement, old_values: Sequence[Token], new_values: Sequence[Token]) -> bool:
    told = {old.verb, new.verb} <= {"change", "alter", "be"} or new.changed or new.marked
    before, after = _units(old_values), _units(new_values)
    same_unit = not before or not after or before == after
    return told and same_unit and not TYPED.isdisjoint(kinds(old_values) & kinds(new_values))


def _units(tokens: Sequence[Token]) -> set[str]:
    return {token.canon for token in tokens if token.kind == "word"}


def _role_rule(old: Statement, new: Statement) -> str:
    if old.own or new.own or not new.marked or not old.tail:
        return ""
    same = old.verb == new.verb and content(old.tail) == content(new.tail)
    return "role" if same and _is_role(new) else ""


def _is_role(said: Statement) -> bool:
    words = " ".join(token.canon for token in said.tail)
    return said.verb in known.ROLE_VERBS or (said.verb == "be" and words.startswith(known.ROLES))


def _count_rule(old: Statement, new: Statement) -> str:
    before, after = count(old), count(new)
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


def is_label(new: Statement, new_values: Sequence[Token]) -> bool:
    """Returns whether a number is a label ("note 1"), not a value ("port 8081", "Python 3.11")."""
    place = next(at for at, token in enumerate(new.tail) if token is new_values[0])
    if new_values[0].kind not in TYPED or place == 0:
        return False
    before = new.tail[place - 1]
    named = before.kind != "word" or before.canon in known.CONNECTORS | known.NUMBERED
    return not named and not (new.verb == "be" and before.canon in {"set", "called", "named", "of"})


def may_change(new: Statement, diff: Difference) -> bool:
    """Returns whether a marker such as "now" means that the old value ended; not if multi-valued."""
    if new.request:
        return True
    if _is_possession_without_count(new) or _may_be_many(new, diff):
        return False
    if is_typed(diff.new):
        return True
    return _may_change_with_be(new, diff) if new.verb == "be" else _may_change_with_verb(new, diff)


def is_single(old: Statement, new: Statement, diff: Difference) -> bool:
    """Returns whether the value is single-valued without any change marker."""
    if new.request or old.request:
        return False
    if _is_measured(new) or _is_another_thing(new, diff):
        return False
    if new.verb == "be" and new.attribute:
        return _is_value_of_attribute(new, diff)
    if _may_be_many(new, diff) or _is_on_some_days(new, diff):
        return False
    if is_typed(diff.new):
        return not _is_hour_among_others(new, diff)
    return _is_single_name(new, diff)


def _is_another_thing(new: Statement, diff: Difference) -> bool:
    return new.verb == "have" and not content(diff.shared)


def _is_measured(new: Statement) -> bool:
    return not known.MEASURED.isdisjoint(new.subject) and known.SETTLED.isdisjoint(new.subject)


def _is_possession_without_count(new: Statement) -> bool:
    return new.verb == "have" and not any(token.kind == "number" for token in new.tail)


def _may_be_many(new: Statement, diff: Difference) -> bool:
    return not known.MANY_VALUED.isdisjoint({new.verb, *diff.frame} - {"have"})


def _may_change_with_be(new: Statement, diff: Difference) -> bool:
    names = are_names(diff.old, diff.new)
    placed = names and not {"in", "at", "by"}.isdisjoint(diff.frame)
    if placed or content(diff.shared):
        return True
    return new.attribute and (names or _has_words_for_values(new))


def _may_change_with_verb(new: Statement, diff: Difference) -> bool:
    if new.verb in _ONE_OF_MANY and not content(diff.shared):
        return False
    return new.verb in known.CHANGEABLE and not (new.verb == "ship" and "to" in diff.frame)


def _is_value_of_attribute(new: Statement, diff: Difference) -> bool:
    if is_typed(diff.new):
        return True
    named = are_names(diff.old, diff.new) or _has_words_for_values(new)
    return named and diff.frame <= _JOINING


def _has_words_for_values(new: Statement) -> bool:
    return not new.subject.isdisjoint(known.WORDED | known.CHOSEN)


def _is_on_some_days(new: Statement, diff: Difference) -> bool:
    if all(token.kind != "weekday" for token in diff.new):
        return False
    return new.verb not in known.DAY_VERBS or not diff.frame.isdisjoint({"open", "closed"})


def _is_hour_among_others(new: Statement, diff: Difference) -> bool:
    """Returns whether a time is one of several ("the bus to Graz is at 9"); a numbered thing has only one."""
    if "at" not in diff.frame or not kinds(diff.new) <= {"time", "number"}:
        return False
    if new.verb in known.TIMETABLED:
        return not any(char.isdigit() for word in new.subject for char in word)
    return kinds(diff.new) == {"time"} and new.verb == "be" and len(diff.frame) > 2


def _is_single_name(new: Statement, diff: Difference) -> bool:
    if new.verb in {"study", "drive"} or not diff.frame.isdisjoint(known.SINGLE_NAME):
        return _are_same_kind_of_names(diff)
    rule = _SINGLE_BY_VERB.get(new.verb)
    return rule is not None and rule(diff)


def _are_same_kind_of_names(diff: Difference) -> bool:
    plain = {token.kind for token in (*diff.old, *diff.new)} <= {"name", "word"}
    return plain and diff.new[-1].kind == diff.old[-1].kind and are_names(diff.old, diff.new)


def _is_one_employer(diff: Difference) -> bool:
    named = all(token.kind == "name" for token in (*diff.old, *diff.new))
    return named and not diff.frame.isdisjoint({"for", "at", "with"})


def _is_one_place(diff: Difference) -> bool:
    return not diff.frame.isdisjoint({"to", "place"}) and are_names(diff.old, diff.new)


def _is_plain_preference(diff: Difference) -> bool:
    return bool(diff.frame) and diff.frame.isdisjoint(known.CONNECTORS)


_SINGLE_BY_VERB: Mapping[str, Callable[[Difference], bool]] = {
    "work": _is_one_employer,
    "go": _is_one_place,
    "take": _is_one_place,
    "prefer": _is_plain_preference,
}
