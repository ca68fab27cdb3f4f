"""What a new memory means for an old one: the same, nearly the same, in its place, or nothing. Pure.

A wrong replacement hides what is true, so only what is plainly the same thing with another value takes a
place: whatever is asked, supposed, quoted, past, added, of another person or condition stands beside the old.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentcore.memory import statement_words as known
from agentcore.memory.corrections import correction
from agentcore.memory.differences import alike, are_names, comparable, difference, is_part
from agentcore.memory.statements import Reading, Statement, Told, plain, read, same_speaker
from agentcore.memory.text import STOP_WORDS, fold, normal_form
from agentcore.memory.values import TYPED, Token, canonical, content, kinds, read_tokens

Relation = Literal["same", "near", "possible", "superseding", "none"]

# What a language model may decide, and no rule does: one value for another, of which there may be several.
POSSIBLE = "possible"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the new memory means for the old one, and by which rule."""

    relation: Relation
    rule: str = ""


_NEAR_SHARE = 0.75
_ASKED, _ANSWERED, _ACTED = "User: ", "\nAgent: ", re.compile(r"\n(?:Action|Outcome): ")
_ANSWER_CHARS = 300
NOTHING = Verdict("none")


def told(row: Mapping[str, Any]) -> Told:
    """A memory's columns as what was told: of an exchange what the user said, with the answer beside it."""
    text, reply = row["content"], ""
    if text.startswith(_ASKED) and _ANSWERED in text and not _ACTED.search(text):
        text, _, reply = text.removeprefix(_ASKED).partition(_ANSWERED)
    spoken_by, user_id = row["speaker"], row["user_id"]
    return Told(text, row["timestamp"], spoken_by, user_id, row["session_id"], row["task_id"], reply)


def judge(old: Told, new: Told) -> Verdict:
    """What `new` means for `old`. Never "superseding" for what was said later than `new`."""
    if normal_form(old.content) == normal_form(new.content):
        return Verdict("same")
    if new.timestamp >= old.timestamp and old.user_id == new.user_id:
        rule = correction(old, new) or _replacement(old, new)
        if rule:
            return Verdict("possible" if rule == POSSIBLE else "superseding", rule)
    return Verdict("near") if _is_near(old, new) else NOTHING


def _replacement(old: Told, new: Told) -> str:
    """The rule by which the new text takes the place of what alone the old one states; else empty."""
    before, after = read(old.content), read(new.content)
    if not before.whole or before.adds or after.adds or len(before.statements) != 1:
        return ""
    was = before.statements[0]
    if _answers_more(old.reply, was):
        return ""
    found = ""
    for now in after.statements:
        if not same_speaker(old, new) and (now.own or was.own or not now.marked):
            continue
        rule = _takes_place(was, now)
        if now.generic and _of_other_tasks(old, new):
            continue
        if rule and now.generic and not now.marked and not _in_one_scope(old, new):
            rule = POSSIBLE
        if rule and rule != POSSIBLE:
            return rule
        found = found or rule
    return found


def _answers_more(reply: str, was: Statement) -> bool:
    """Whether an answer says what would be hidden with the statement it answers."""
    said = read(reply).statements
    other = (each.subject - {"you", "i", "we"} for each in said)
    return len(reply) > _ANSWER_CHARS or any(subject and subject != was.subject - {"i"} for subject in other)


def _of_other_tasks(old: Told, new: Told) -> bool:
    return old.task_id is not None and new.task_id is not None and old.task_id != new.task_id


def _in_one_scope(old: Told, new: Told) -> bool:
    """ "The deadline" without a word of what is that of the session or the task."""
    sessions = old.session_id is not None and old.session_id == new.session_id
    return sessions or (old.task_id is not None and old.task_id == new.task_id)


def _takes_place(was: Statement, now: Statement) -> str:
    if now.negated or was.negated:
        return "negated" if _ends(was, now) else ""
    if was.subject != now.subject:
        return _by_role(was, now) or _counted(was, now)
    if now.changed or was.changed:
        return "changed" if _changes(was, now) else ""
    if was.verb != now.verb:
        return "state" if _other_state(was, now) and was.verb == "be" else ""
    return _same_frame(was, now)


def _same_frame(was: Statement, now: Statement) -> str:
    """Of one subject and verb: another state, or one value in the place of another."""
    if _other_state(was, now):
        return "state"
    apart = difference(was.tail, now.tail)
    if apart is None:
        return ""
    gone, come, shared = apart
    if now.dropped and _tells(gone, now.dropped, shared):
        return "named"
    if not comparable(gone, come):
        return ""
    if _is_label(now, come):
        return POSSIBLE
    if now.marked and _may_change(now, gone, come, shared):
        return "marked"
    return "value" if _is_single(was, now, gone, come, shared) else POSSIBLE


def _is_label(now: Statement, come: Sequence[Token]) -> bool:
    """ "Note 1 of two" is another note than "note 0 of two"; "port 8081" and "Python 3.11" are values."""
    place = next(at for at, token in enumerate(now.tail) if token is come[0])
    if come[0].kind not in TYPED or place == 0:
        return False
    before = now.tail[place - 1]
    named = before.kind != "word" or before.canon in known.CONNECTORS | known.NUMBERED
    return not named and not (now.verb == "be" and before.canon in {"set", "called", "named", "of"})


def _tells(gone: Sequence[Token], dropped: Sequence[Token], shared: Sequence[Token] = ()) -> bool:
    """Whether what went is what the new words say no longer holds."""
    said = content(dropped)
    return bool(said & content(gone)) and said <= content(gone) | content(shared)


def _may_change(
    now: Statement, gone: Sequence[Token], come: Sequence[Token], shared: Sequence[Token]
) -> bool:
    """Whether a word such as "now" means that one value went: not where there may be many at a time."""
    said = {now.verb, *(token.canon for token in shared)}
    if now.request:
        return True
    if now.verb == "have" and not any(token.kind == "number" for token in now.tail):
        return False
    if not known.MANY_VALUED.isdisjoint(said - {"have"}):
        return False
    if kinds(come) & (TYPED | {"date"}):
        return True
    names = are_names(gone, come)
    if now.verb == "be":
        placed = bool(content(shared)) or (names and not said.isdisjoint({"in", "at", "by"}))
        return placed or (now.attribute and (names or _has_words_for_values(now)))
    if now.verb in {"use", "ship", "get", "take"} and not content(shared):
        return False
    return now.verb in known.CHANGEABLE and not (now.verb == "ship" and "to" in said)


def _is_single(
    was: Statement, now: Statement, gone: Sequence[Token], come: Sequence[Token], shared: Sequence[Token]
) -> bool:
    """Whether there is one such value at a time, though no word says that it changed."""
    if now.request or was.request:
        return False
    typed = bool(kinds(come) & (TYPED | {"date"}))
    words = {token.canon for token in shared}
    measured = not known.MEASURED.isdisjoint(now.subject) and known.SETTLED.isdisjoint(now.subject)
    if now.verb == "be" and now.attribute and not measured:
        plain_value = words <= known.CONNECTORS | {
            "set",
            "called",
            "named",
            "number",
            "room",
            "version",
            "level",
        }
        return typed or (plain_value and (are_names(gone, come) or _has_words_for_values(now)))
    if measured or not known.MANY_VALUED.isdisjoint({now.verb, *words} - {"have"}):
        return False
    days = any(token.kind == "weekday" for token in come)
    if days and (now.verb not in known.DAY_VERBS or not words.isdisjoint({"open", "closed"})):
        return False
    if typed:
        return not (kinds(come) == {"time"} and "at" in words and now.verb == "be" and len(words) > 2)
    names = {token.kind for token in (*gone, *come)} <= {"name", "word"} and come[-1].kind == gone[-1].kind
    if now.verb in {"study", "drive"} or not words.isdisjoint(known.SINGLE_NAME):
        return names and are_names(gone, come)
    if now.verb == "work":
        return bool(words & {"for", "at", "with"}) and all(token.kind == "name" for token in (*gone, *come))
    if now.verb in {"go", "take"}:
        return bool(words & {"to", "place"}) and are_names(gone, come)
    return now.verb == "prefer" and bool(words) and not words & known.CONNECTORS


def _has_words_for_values(now: Statement) -> bool:
    return not now.subject.isdisjoint(known.WORDED | known.CHOSEN)


def _state(tail: Sequence[Token]) -> tuple[int, str] | None:
    """Which of the states that exclude each other it names."""
    said = " ".join(token.canon for token in tail)
    for index, group in enumerate(known.STATES):
        for state in group:
            if said == state or said == " ".join(canonical(word) for word in state.split()):
                return index, state
    return None


def _other_state(was: Statement, now: Statement) -> bool:
    before, after = _state(was.tail), _state(now.tail)
    if before is None or after is None or before == after:
        return False
    return any(before[1] in group and after[1] in group for group in known.STATES)


def _ends(was: Statement, now: Statement) -> bool:
    """ "I no longer play the guitar" ends "I play the guitar"; a bare "not" is less than "no longer"."""
    if was.negated or not now.negated or not now.marked:
        return False
    same = was.subject == now.subject and was.verb == now.verb
    return same and content(was.tail) == content(now.tail)


def _changes(was: Statement, now: Statement) -> bool:
    """ "The limit was raised to 100 MB" goes for "the limit is 25 MB", and the other way round."""
    if now.dropped and not _tells(was.tail, now.dropped):
        return False
    if {was.verb, now.verb} & {"like", "love", "have", "speak", "play", "know"}:
        return False
    if now.dropped:
        return True
    if was.changed and not (now.changed or now.marked or (now.verb == "be" and now.attribute)):
        return False
    gone, come = _values(was), _values(now)
    if not gone or not come or content(gone) == content(come) or is_part(gone, come):
        return False
    if "live" in (was.verb, now.verb) and not {token.canon for token in come}.isdisjoint(known.ATTRIBUTES):
        return False
    if "live" in (was.verb, now.verb) or not (kinds(gone) | kinds(come)) & (TYPED | {"date"}):
        verbs = {was.verb, now.verb} <= {"live", "take", "change"} or (was.attribute and now.attribute)
        return verbs and not alike(gone, come) and are_names(gone, come)
    if not {was.verb, now.verb} <= {"change", "be"} and not now.changed and not now.marked:
        return False
    units = [{token.canon for token in tokens if token.kind == "word"} for tokens in (gone, come)]
    same_unit = units[0] == units[1] or not units[1] or not units[0]
    return same_unit and bool(kinds(gone) & kinds(come) & (TYPED | {"date"}))


def _values(said: Statement) -> list[Token]:
    return [token for token in said.tail if token.canon not in known.CONNECTORS]


def _by_role(was: Statement, now: Statement) -> str:
    """ "Jonah leads the redesign now" goes for "Amira leads the redesign"."""
    if not now.marked or was.verb != now.verb or content(was.tail) != content(now.tail) or not was.tail:
        return ""
    said = " ".join(token.canon for token in now.tail)
    role = now.verb in known.ROLE_VERBS or (
        now.verb == "be" and any(said.startswith(each) for each in known.ROLES)
    )
    return "role" if role and not was.own and not now.own else ""


def _counted(was: Statement, now: Statement) -> str:
    """ "The number of shards of the index is 24" goes for "the index has 12 shards"."""
    counts = [_count(each) for each in (was, now)]
    if counts[0] is None or counts[1] is None:
        return ""
    (of, number), (also_of, other) = counts[0], counts[1]
    return "count" if of == also_of and number != other else ""


def _count(said: Statement) -> tuple[frozenset[str], str] | None:
    numbers = [token for token in said.tail if token.kind == "number"]
    rest = [token for token in said.tail if token.kind != "number"]
    if len(numbers) != 1 or any(token.kind not in {"word"} for token in rest) or len(rest) > 2:
        return None
    if said.verb == "have" and rest:
        return said.subject | {token.canon for token in rest}, numbers[0].canon
    if said.verb == "be" and not rest:
        return said.subject, numbers[0].canon
    return None


def _is_near(old: Told, new: Told) -> bool:
    """The same values and names in nearly the same words."""
    if not same_speaker(old, new) or old.user_id != new.user_id:
        return False
    if old.content.rstrip().endswith("?") != new.content.rstrip().endswith("?"):
        return False
    before, after = read_tokens(plain(old.content)), read_tokens(plain(new.content))
    values = [{token.canon for token in tokens if token.kind in TYPED} for tokens in (before, after)]
    if not values[0] <= values[1] or _negations(before) != _negations(after):
        return False
    said = [_telling(tokens) for tokens in (before, after)]
    least = min(len(said[0]), len(said[1]))
    only = [said[0] - said[1], said[1] - said[0]]
    if all(only) and not _alike_words(only[0], only[1]):
        return False
    return least > 0 and len(said[0] & said[1]) >= _NEAR_SHARE * least - 1


def _telling(tokens: Sequence[Token]) -> set[str]:
    """What is said apart from words that only join, verbs of state and courtesies."""
    said = {token.canon for token in tokens if fold(token.canon).replace("'", "") not in STOP_WORDS}
    return {word for word in said if word not in known.VERBS} - known.FILLERS


def _alike_words(ones: set[str], others: set[str]) -> bool:
    return len(ones) == len(others) == 1 and alike([Token("word", *ones)], [Token("word", *others)])


def _negations(tokens: Sequence[Token]) -> int:
    return sum(token.canon in {"not", "no", "never"} for token in tokens)


def subject_keys(reading: Reading, speaker: str | None = None) -> list[str]:
    """What two statements must have in common for one to take the other's place, as texts."""
    found: dict[str, None] = {}
    for said in reading.statements:
        own = " ".join(sorted(said.subject)) + (f"|{(speaker or '').casefold()}" if said.own else "")
        if said.subject <= {"i", "we", "you", "!"}:
            found.update(
                dict.fromkeys(f"{own}|{verb}" for verb in (known.MOVED if said.changed else (said.verb,)))
            )
        else:
            found[own] = None
        if not said.own and (said.verb in known.ROLE_VERBS or said.verb == "be") and said.tail:
            found[f"{said.verb}|" + " ".join(sorted(content(said.tail)))] = None
        counted = _count(said)
        if counted is not None:
            found[" ".join(sorted(counted[0]))] = None
    return list(found)
