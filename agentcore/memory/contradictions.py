"""Compares a new memory with an old one. Pure.

A wrong supersession hides a valid memory, so it requires the same subject and attribute with another value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from agentcore.memory.columns import RuleColumns
from agentcore.memory.language.text import STOP_WORDS, fold, normal_form
from agentcore.memory.models import MemoryRecord, MemorySummary
from agentcore.memory.statements import statement_words as known
from agentcore.memory.statements.differences import alike
from agentcore.memory.statements.facts import fact, is_plain, speaks_against
from agentcore.memory.statements.replacement import POSSIBLE, count, superseding_rule
from agentcore.memory.statements.statements import READ_CHARS, Reading, RuleInput, Statement, plain, read, same_speaker
from agentcore.memory.statements.values import TYPED, Token, content, read_tokens

Relation = Literal["same", "near", "possible", "superseding", "none"]


@dataclass(frozen=True, slots=True)
class Verdict:
    relation: Relation
    rule: str = ""


# Longer texts state more than one thing, and their comparison would take quadratic time.
JUDGED_CHARS = 2 * READ_CHARS
_NEAR_SHARE = 0.75
_ASKED, _ANSWERED, _ACTED = "User: ", "\nAgent: ", re.compile(r"\n(?:Action|Outcome): ")
_ANSWER_CHARS = 300
NOTHING = Verdict("none")


def rule_input(memory: RuleColumns | MemoryRecord | MemorySummary) -> RuleInput:
    """Returns the input of the rules; of an exchange, the user's text with the answer as `reply`."""
    text, reply = memory.content, ""
    if text.startswith(_ASKED) and _ANSWERED in text and not _ACTED.search(text):
        text, _, reply = text.removeprefix(_ASKED).partition(_ANSWERED)
    spoken_by, user_id = memory.speaker, memory.user_id
    return RuleInput(text, memory.timestamp, spoken_by, user_id, memory.session_id, memory.task_id, reply)


def judge(old: RuleInput, new: RuleInput) -> Verdict:
    """Never "superseding" if the old one is later, or for long texts."""
    if normal_form(old.content) == normal_form(new.content):
        return Verdict("same")
    if max(len(old.content), len(new.content)) > JUDGED_CHARS:
        return NOTHING
    if new.timestamp >= old.timestamp and old.user_id == new.user_id:
        rule = _rule(old, new)
        if rule:
            return Verdict("possible" if rule == POSSIBLE else "superseding", rule)
    return Verdict("near") if _is_near(old, new) else NOTHING


def _replacement(old: RuleInput, new: RuleInput) -> str:
    was, after = _only_statement(old), new.once(read, new.content)
    if was is None or after.adds:
        return ""
    rules = [_rule_between(old, new, was, now) for now in after.statements]
    certain = [rule for rule in rules if rule and rule != POSSIBLE]
    undecided = POSSIBLE if POSSIBLE in rules else ""
    return certain[0] if certain else undecided


def _rule(old: RuleInput, new: RuleInput) -> str:
    rule = _replacement(old, new)
    return rule if rule and rule != POSSIBLE else _other_fact(old, new) or rule


def _other_fact(old: RuleInput, new: RuleInput) -> str:
    was, now = old.once(fact, old.content), new.once(fact, new.content)
    if was is None or now is None or not speaks_against(was, now) or not is_plain(was, now):
        return ""
    if not same_speaker(old, new) and (now.own or not now.changed):
        return ""
    return "" if _of_other_tasks(old, new) or old.once(read, old.reply).statements else "fact"


def _only_statement(old: RuleInput) -> Statement | None:
    before = old.once(read, old.content)
    if not before.whole or before.adds or len(before.statements) != 1:
        return None
    was = before.statements[0]
    return None if _answers_more(old, was) else was


def _rule_between(old: RuleInput, new: RuleInput, was: Statement, now: Statement) -> str:
    if now.generic and _of_other_tasks(old, new):
        return ""
    if not same_speaker(old, new) and not _holds_whoever_says_it(was, now):
        return ""
    rule = superseding_rule(was, now)
    unplaced = now.generic and not now.marked and not _in_one_scope(old, new)
    return POSSIBLE if rule and unplaced else rule


def _holds_whoever_says_it(was: Statement, now: Statement) -> bool:
    return now.marked and not now.own and not was.own


def _answers_more(old: RuleInput, was: Statement) -> bool:
    said = old.once(read, old.reply).statements
    other = (each.subject - {"you", "i", "we"} for each in said)
    is_other = any(subject and subject != was.subject - {"i"} for subject in other)
    return is_other or len(old.reply) > _ANSWER_CHARS


def _of_other_tasks(old: RuleInput, new: RuleInput) -> bool:
    return old.task_id is not None and new.task_id is not None and old.task_id != new.task_id


def _in_one_scope(old: RuleInput, new: RuleInput) -> bool:
    sessions = old.session_id is not None and old.session_id == new.session_id
    return sessions or (old.task_id is not None and old.task_id == new.task_id)


def _is_near(old: RuleInput, new: RuleInput) -> bool:
    if not same_speaker(old, new) or old.user_id != new.user_id or _asks(old) != _asks(new):
        return False
    before, after = read_tokens(plain(old.content)), read_tokens(plain(new.content))
    if not _typed_values(before) <= _typed_values(after) or _negations(before) != _negations(after):
        return False
    return _in_like_words(_telling(before), _telling(after))


def _asks(said: RuleInput) -> bool:
    return said.content.rstrip().endswith("?")


def _typed_values(tokens: Sequence[Token]) -> set[str]:
    return {token.canon for token in tokens if token.kind in TYPED}


def _in_like_words(before: set[str], after: set[str]) -> bool:
    gone, come = before - after, after - before
    if gone and come and not _alike_words(gone, come):
        return False
    least = min(len(before), len(after))
    return least > 0 and len(before & after) >= _NEAR_SHARE * least - 1


def _telling(tokens: Sequence[Token]) -> set[str]:
    said = {token.canon for token in tokens if fold(token.canon).replace("'", "") not in STOP_WORDS}
    return {word for word in said if word not in known.VERBS} - known.FILLERS


def _alike_words(ones: set[str], others: set[str]) -> bool:
    return len(ones) == len(others) == 1 and alike([Token("word", *ones)], [Token("word", *others)])


def _negations(tokens: Sequence[Token]) -> int:
    return sum(token.canon in {"not", "no", "never"} for token in tokens)


def subject_keys(reading: Reading, speaker: str | None = None) -> list[str]:
    """Returns the keys of which superseding statements must share one."""
    keys = (key for said in reading.statements for key in _keys(said, speaker))
    return list(dict.fromkeys(keys))


def _keys(said: Statement, speaker: str | None) -> Iterator[str]:
    yield from _keys_of_subject(said, speaker)
    if not said.own and said.tail and (said.verb in known.ROLE_VERBS or said.verb == "be"):
        yield f"{said.verb}|" + " ".join(sorted(content(said.tail)))
    counted = count(said)
    if counted is not None:
        yield " ".join(sorted(counted[0]))


def _keys_of_subject(said: Statement, speaker: str | None) -> Iterator[str]:
    subject = " ".join(sorted(said.subject)) + (f"|{(speaker or '').casefold()}" if said.own else "")
    if not said.subject <= {"i", "we", "you", "!"}:
        yield subject
        return
    for verb in known.MOVED if said.changed else (said.verb,):
        yield f"{subject}|{verb}"
