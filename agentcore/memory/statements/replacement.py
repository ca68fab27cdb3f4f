"""Whether one statement takes the place of another, and by which rule. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from agentcore.memory.statements import statement_words as known
from agentcore.memory.statements.differences import alike, are_names, comparable, difference, is_part
from agentcore.memory.statements.single_values import is_label, is_single, may_change
from agentcore.memory.statements.statements import Statement
from agentcore.memory.statements.values import TYPED, Token, canonical, content, is_typed, kinds

# What a language model may decide, and no rule does: one value for another, of which there may be several.
POSSIBLE = "possible"
# Each state as it is written, by its words as tokens give them.
_STATES = {
    written: state
    for group in known.STATES
    for state in group
    for written in (state, " ".join(canonical(word) for word in state.split()))
}
# What is of these may be joined by another, and is not moved from one to the other.
_NEVER_MOVED = frozenset({"like", "love", "have", "speak", "play", "know"})


def takes_place(was: Statement, now: Statement) -> str:
    """The rule by which the later one takes the place of the earlier; else empty."""
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
    """Of what how many there are; None for what counts nothing."""
    numbers = [token.canon for token in said.tail if token.kind == "number"]
    words = [token.canon for token in said.tail if token.kind == "word"]
    if len(numbers) != 1 or len(words) > 2 or len(said.tail) != 1 + len(words):
        return None
    if said.verb == "have" and words:
        return said.subject | set(words), numbers[0]
    return (said.subject, numbers[0]) if said.verb == "be" and not words else None
