"""What a new memory means for an old one: the same, nearly the same, in its place, or nothing. Pure.

A wrong replacement hides what is true, so only what is plainly the same thing with another value takes a place:
whatever is asked, supposed, quoted, past, added, of another person, condition or unit, stands beside the old.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from typing import Literal

from agentcore.memory import statement_words as known
from agentcore.memory.statements import Reading, Statement, content, folded, plain, read
from agentcore.memory.text import STOP_WORDS, fold, normal_form, sentences
from agentcore.memory.values import TYPED, Token, canonical, kinds, read_tokens

Relation = Literal["same", "near", "superseding", "none"]

# How long ago what is put right may have been said.
CORRECTION_WINDOW = timedelta(minutes=30)
_LONGEST_VALUE_TOKENS = 6
_NEAR_SHARE = 0.75
_ALIKE_NAMES = 0.75
_OPENER = re.compile(known.CORRECTION, re.IGNORECASE)
_FRAGMENT = re.compile(r"[.:;!\u2013\u2014]\s+|,\s+(?=not\b)|\s+(?=not \S+$)")


@dataclass(frozen=True, slots=True)
class Told:
    """A memory as far as it says something: its words, when they were said, by whom, in which session."""

    content: str
    timestamp: datetime
    speaker: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    task_id: str | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the new memory means for the old one, and by which rule."""

    relation: Relation
    rule: str = ""


NOTHING = Verdict("none")


def states_something(text: str) -> bool:
    """Whether it is worth looking for what a text may replace: it is short, and states or corrects."""
    return corrects(text) or bool(read(text).statements)


def corrects(text: str) -> bool:
    """Whether it begins as one begins who puts right what was just said."""
    return len(text) <= 300 and _OPENER.match(text.strip()) is not None and not text.rstrip().endswith("?")


def judge(old: Told, new: Told) -> Verdict:
    """What `new` means for `old`. Never "superseding" for what was said later than `new`."""
    if normal_form(old.content) == normal_form(new.content):
        return Verdict("same")
    if new.timestamp >= old.timestamp and old.user_id == new.user_id:
        rule = _correction(old, new) or _replacement(old, new)
        if rule:
            return Verdict("superseding", rule)
    return Verdict("near") if _is_near(old, new) else NOTHING


def _same_speaker(old: Told, new: Told) -> bool:
    return (old.speaker or "").casefold() == (new.speaker or "").casefold()


def _replacement(old: Told, new: Told) -> str:
    """The rule by which one statement of the new text takes the place of the old text's only one; else empty."""
    before, after = read(old.content), read(new.content)
    if not before.whole or before.adds or after.adds or len(before.statements) != 1:
        return ""
    was = before.statements[0]
    for now in after.statements:
        if not _same_speaker(old, new) and (now.own or was.own or not now.marked):
            continue
        if now.generic and not now.marked and not _in_one_scope(old, new):
            continue
        rule = _takes_place(was, now)
        if rule:
            return rule
    return ""


def _in_one_scope(old: Told, new: Told) -> bool:
    """"The deadline" without a word of what is that of the session or the task."""
    sessions = old.session_id is not None and old.session_id == new.session_id
    return sessions or (old.task_id is not None and old.task_id == new.task_id)


def _takes_place(was: Statement, now: Statement) -> str:
    if was.changed and not now.marked and not now.changed and now.verb != "be":
        return ""
    if now.negated or was.negated:
        return "negated" if _ends(was, now) else ""
    if was.subject != now.subject:
        return _by_role(was, now) or _counted(was, now)
    if now.changed:
        return "changed" if _changes(was, now) else ""
    if was.verb != now.verb:
        return "state" if _other_state(was, now) and was.verb == "be" else ""
    return _same_frame(was, now)


def _same_frame(was: Statement, now: Statement) -> str:
    """Of one subject and verb: another state, or one value in the place of another."""
    if _other_state(was, now):
        return "state"
    difference = _difference(was.tail, now.tail)
    if difference is None:
        return ""
    gone, come, shared = difference
    if now.dropped and _tells(gone, now.dropped, shared):
        return "named"
    if not _comparable(gone, come):
        return ""
    if now.marked and _may_change(now, gone, come, shared):
        return "marked"
    return "value" if _is_single(was, now, gone, come, shared) else ""


def _difference(
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


def _comparable(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """Whether both are values of one kind, and not one thing written in two ways."""
    were, are = kinds(gone), kinds(come)
    if any(token.canon in known.CONDITIONS for token in (*gone[1:], *come[1:])):
        return False
    if {token.kind for token in gone} ^ {token.kind for token in come} == {"date", "weekday"}:
        return False
    if "name" in were & are:
        return not _is_part(gone, come) and not _alike(gone, come)
    if were & TYPED or are & TYPED or "date" in were | are:
        if not _measure_alike(gone, come):
            return False
        if "identifier" in were | are and not (were | are) - {"identifier", "word", "name", "version", "number"}:
            return not _is_part(gone, come)
        if "number" in were & are and "word" in were ^ are:
            were, are = were - {"word"}, are - {"word"}
        return were == are and not _is_part(gone, come)
    return not _is_part(gone, come) and not _alike(gone, come)


def _measure_alike(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """In one unit, or in two of one kind with another sum: 300 seconds are 5 minutes, miles are no kilometres."""
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


def _is_part(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """One is the other with more detail."""
    were, are = content(gone), content(come)
    if any(token.canon in known.COUNTRIES for token in gone) != any(token.canon in known.COUNTRIES for token in come):
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


def _alike(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    """One name in two spellings, as far as letters tell."""
    were = folded("".join(token.canon for token in gone))
    are = folded("".join(token.canon for token in come))
    if were.startswith(are) or are.startswith(were):
        return True
    return SequenceMatcher(None, were, are, autojunk=False).ratio() > _ALIKE_NAMES


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
    names = _are_names(gone, come)
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
        plain_value = words <= known.CONNECTORS | {"set", "called", "named", "number", "room", "version", "level"}
        return typed or (plain_value and (_are_names(gone, come) or _has_words_for_values(now)))
    if measured or not known.MANY_VALUED.isdisjoint({now.verb, *words} - {"have"}):
        return False
    days = any(token.kind == "weekday" for token in come)
    if days and (now.verb not in known.DAY_VERBS or not words.isdisjoint({"open", "closed"})):
        return False
    if typed:
        return not (kinds(come) == {"time"} and "at" in words and now.verb == "be" and len(words) > 2)
    names = {token.kind for token in (*gone, *come)} <= {"name", "word"} and come[-1].kind == gone[-1].kind
    if now.verb in {"study", "drive"} or not words.isdisjoint(known.SINGLE_NAME):
        return names and _are_names(gone, come)
    if now.verb == "work":
        return bool(words & {"for", "at", "with"}) and all(token.kind == "name" for token in (*gone, *come))
    if now.verb in {"go", "take"}:
        return bool(words & {"to", "place"}) and _are_names(gone, come)
    return now.verb == "prefer" and bool(words) and not words & known.CONNECTORS


def _has_words_for_values(now: Statement) -> bool:
    return not now.subject.isdisjoint(known.WORDED | known.CHOSEN)


def _are_names(gone: Sequence[Token], come: Sequence[Token]) -> bool:
    return all(any(token.kind == "name" for token in tokens) for tokens in (gone, come))


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
    """"I no longer play the guitar" ends "I play the guitar"; a bare "not" is not the same as "no longer"."""
    if was.negated or not now.negated or not now.marked:
        return False
    same = was.subject == now.subject and was.verb == now.verb
    return same and content(was.tail) == content(now.tail)


def _changes(was: Statement, now: Statement) -> bool:
    """"The limit was raised to 100 MB" goes for "the limit is 25 MB": what was the value, of the same kind."""
    if now.dropped and not _tells(was.tail, now.dropped):
        return False
    if was.verb in {"like", "love", "have", "speak", "play", "know"}:
        return False
    if now.dropped:
        return True
    gone = [token for token in was.tail if token.canon not in known.CONNECTORS]
    come = [token for token in now.tail if token.canon not in known.CONNECTORS]
    if not gone or not come or content(gone) == content(come) or _is_part(gone, come):
        return False
    if was.verb == "live" and not {token.canon for token in come}.isdisjoint(known.ATTRIBUTES):
        return False
    if was.verb == "live" or not (kinds(gone) | kinds(come)) & (TYPED | {"date"}):
        return was.verb in {"live", "be", "take"} and not _alike(gone, come) and _are_names(gone, come)
    units = [{token.canon for token in tokens if token.kind == "word"} for tokens in (gone, come)]
    same_unit = units[0] == units[1] or not units[1] or not units[0]
    return same_unit and bool(kinds(gone) & kinds(come) & (TYPED | {"date"}))


def _by_role(was: Statement, now: Statement) -> str:
    """"Jonah leads the redesign now" goes for "Amira leads the redesign"."""
    if not now.marked or was.verb != now.verb or content(was.tail) != content(now.tail) or not was.tail:
        return ""
    said = " ".join(token.canon for token in now.tail)
    role = now.verb in known.ROLE_VERBS or (
        now.verb == "be" and any(said.startswith(each) for each in known.ROLES)
    )
    return "role" if role and not was.own and not now.own else ""


def _counted(was: Statement, now: Statement) -> str:
    """"The number of shards of the index is 24" goes for "the index has 12 shards"."""
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


def _correction(old: Told, new: Told) -> str:
    """An explicit correction of what the same speaker said in the same session a moment ago."""
    recent = new.timestamp - old.timestamp <= CORRECTION_WINDOW
    same = old.session_id is not None and old.session_id == new.session_id and _same_speaker(old, new)
    if not recent or not same or not corrects(new.content) or len(sentences(old.content)) > 1:
        return ""
    if old.content.rstrip().endswith("?"):
        return ""
    was = read_tokens(plain(old.content))
    rest = new.content.strip()
    while (opener := _OPENER.match(rest)) and opener.end() and opener.end() < len(rest):
        rest = rest[opener.end() :].strip(" ,.:!;-\u2013\u2014")
    pieces = [piece for piece in _FRAGMENT.split(plain(rest)) if piece.strip()]
    dropped = [read_tokens(piece[4:]) for piece in pieces if piece.lower().startswith("not ")]
    said = [read_tokens(piece) for piece in pieces if not piece.lower().startswith("not ")]
    return "correction" if any(_puts_right(was, each, dropped) for each in said) else ""


def _puts_right(was: Sequence[Token], said: Sequence[Token], dropped: Sequence[Sequence[Token]]) -> bool:
    """The old words with one value in the place of another, or such a value alone."""
    said = [token for token in said if token.canon not in known.FILLERS]
    was = [token for token in was if token.canon not in known.FILLERS]
    if said and said[0].canon in known.UNKNOWN_SUBJECTS:
        said = said[1:]
        same_verb = [at for at, token in enumerate(was) if said and token.canon == said[0].canon]
        was = was[same_verb[0] :] if same_verb else was
    difference = _difference(was, said)
    if difference is not None:
        gone, come, shared = difference
        typed = bool((kinds(come) | kinds(gone)) & (TYPED | {"date"}))
        enough = len(content(shared)) >= 1 + (not typed) and _is_no_subject(was, gone)
        if enough and (_comparable(gone, come) if typed else True):
            return True
    return _is_value_of(was, said, dropped)


def _is_no_subject(was: Sequence[Token], gone: Sequence[Token]) -> bool:
    """What went stands behind the verb, or where none stands at the end."""
    verbs = [at for at, token in enumerate(was) if token.canon in known.VERBS]
    place = next((at for at, token in enumerate(was) if token is gone[0]), 0)
    return place > (verbs[0] if verbs else 0)


def _is_value_of(was: Sequence[Token], said: Sequence[Token], dropped: Sequence[Sequence[Token]]) -> bool:
    values = [token for token in said if token.kind in TYPED]
    if len(values) != 1 or not content(said) - {values[0].canon} <= content(was):
        return False
    held = [token for token in was if token.kind == values[0].kind]
    if any(token.canon == values[0].canon for token in held):
        return False
    if dropped:
        return any(content(each) <= {token.canon for token in held} for each in dropped)
    return len(held) == 1


def _is_near(old: Told, new: Told) -> bool:
    """The same values and names in nearly the same words."""
    if not _same_speaker(old, new) or old.user_id != new.user_id:
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
    if all(only) and not (folded("".join(sorted(only[0]))) and _alike_words(only[0], only[1])):
        return False
    return least > 0 and len(said[0] & said[1]) >= _NEAR_SHARE * least - 1


def _telling(tokens: Sequence[Token]) -> set[str]:
    """What is said apart from words that only join, verbs of state and courtesies."""
    said = {token.canon for token in tokens if fold(token.canon).replace("'", "") not in STOP_WORDS}
    return {word for word in said if word not in known.VERBS} - known.FILLERS


def _alike_words(ones: set[str], others: set[str]) -> bool:
    return len(ones) == len(others) == 1 and _alike([Token("word", *ones)], [Token("word", *others)])


def _negations(tokens: Sequence[Token]) -> int:
    return sum(token.canon in {"not", "no", "never"} for token in tokens)


def subject_keys(reading: Reading) -> list[str]:
    """What two statements must have in common for one to take the other's place, as texts."""
    found: dict[str, None] = {}
    for said in reading.statements:
        own = " ".join(sorted(said.subject))
        if said.subject <= {"i", "we", "you", "!"}:
            found.update(dict.fromkeys(f"{own}|{verb}" for verb in (known.MOVED if said.changed else (said.verb,))))
        else:
            found[own] = None
        if not said.own and (said.verb in known.ROLE_VERBS or said.verb == "be") and said.tail:
            found[f"{said.verb}|" + " ".join(sorted(content(said.tail)))] = None
        counted = _count(said)
        if counted is not None:
            found[" ".join(sorted(counted[0]))] = None
    return list(found)
