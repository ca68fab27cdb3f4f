"""Parses sentences into statements: subject, verb and the words after it.

Questions, hypotheses, quotations and accounts of the past return no statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import takewhile
from typing import Any, TypeVar

from agentcore.memory.language.text import sentences
from agentcore.memory.statements import statement_words as known
from agentcore.memory.statements.values import Token, canonical, read_tokens

_PREPOSITIONS = frozenset(["of", "for", "in", "on", "at", "with", "from", "to", "by"])
_JOINING = known.DETERMINERS | _PREPOSITIONS | known.FILLERS
_OWN = frozenset({*known.POSSESSORS, "i", "we"})
_LONGEST_WORDS = 14


@dataclass(frozen=True, slots=True)
class Subject:
    words: frozenset[str]
    own: bool
    attribute: bool
    generic: bool


def read_subject(said: Sequence[str]) -> Subject | None:
    """Parses a subject; None if it is indefinite ("some", "each") or a pronoun whose referent is unknown."""
    lowered = [word.lower().strip(",") for word in said]
    if not _is_definite(lowered):
        return None
    own = any(word in _OWN for word in lowered)
    head = _head(lowered)
    attribute = head in known.ATTRIBUTES or not known.CHOSEN.isdisjoint(lowered)
    words = {canonical(known.POSSESSORS.get(word, word)) for word in lowered if word not in _JOINING}
    words -= {"", "new", "current"} if attribute else {""}
    if not words:
        return None
    return Subject(frozenset(words), own, attribute, _is_generic(said, words, head, own=own))


def _is_definite(lowered: Sequence[str]) -> bool:
    if not lowered or len(lowered) > _LONGEST_WORDS:
        return False
    return lowered[0] not in known.INDEFINITE and lowered[0] not in known.UNKNOWN_SUBJECTS


def _head(lowered: Sequence[str]) -> str:
    first_part = next((at for at, word in enumerate(lowered) if word in _PREPOSITIONS), len(lowered))
    return canonical(lowered[first_part - 1]) if first_part else ""


def _is_generic(said: Sequence[str], words: set[str], head: str, *, own: bool) -> bool:
    if any(_is_numbered(word) for word in said):
        return False
    if head in known.EVENTS or head in known.RELATED:
        return True
    if not known.RELATED.isdisjoint(words) and not any(word[:1].isupper() for word in said[1:]):
        return True
    return len(words) == 1 and not own and not _names_one(said, words)


def _is_numbered(word: str) -> bool:
    return any(char.isdigit() or char in "_-./" for char in word)


def _names_one(said: Sequence[str], words: set[str]) -> bool:
    named = said[-1][:1].isupper() and said[-1].lower() not in known.ATTRIBUTES
    return named or not words.isdisjoint(known.KNOWN_BY_ROLE)


_DENYING = frozenset({"not", "no", "longer"})
_BEFORE_VERB = known.MODALS | _DENYING


@dataclass(frozen=True, slots=True)
class Predicate:
    """A verb in its base form and the words after it. `marked`: "no longer" precedes the verb."""

    verb: str
    behind: list[str]
    negated: bool
    marked: bool


def read_predicate(said: Sequence[str]) -> Predicate | None:
    """Parses a predicate that starts with a verb, or with its modals and negations; None without a verb."""
    lowered = [word.lower() for word in said]
    leading = list(takewhile(_BEFORE_VERB.__contains__, lowered))
    at = len(leading)
    if at == len(said) or lowered[at] not in known.VERBS:
        return None
    verb, behind = _compound(known.VERBS[lowered[at]], list(said[at + 1 :]))
    negated = "not" in leading or "no" in leading
    return Predicate(verb, behind, negated, "longer" in leading)


def denials(behind: Sequence[str]) -> list[str]:
    """Returns the leading negations of the words after a verb, in lower case."""
    return list(takewhile(_DENYING.__contains__, (word.lower() for word in behind)))


def verb_place(said: Sequence[str]) -> int | None:
    """Returns the index of the finite verb: the first that agrees in number with the word before it."""
    for at in range(1, min(len(said), 16)):
        word, before = said[at].lower(), said[at - 1].lower()
        if word in known.MODALS or (word == "no" and said[at + 1 : at + 2] == ["longer"]):
            return at
        if word not in known.VERBS or before in known.DETERMINERS or before in known.POSSESSORS:
            continue
        if _agrees(word, before, at):
            return at
    return None


def _agrees(verb: str, before: str, at: int) -> bool:
    base = known.VERBS[verb]
    if base in {"be", "have", "decide"}:
        return True
    pronoun = at == 1 and before in {"i", "we", "you"}
    if verb == base:
        return pronoun or (before.endswith("s") and not before.endswith(("ss", "'s")))
    return not pronoun


def _compound(verb: str, behind: list[str]) -> tuple[str, list[str]]:
    if verb == "have" and behind[:1] == ["been"]:
        return "be", behind[1:]
    if verb == "be" and behind and behind[0].lower() in known.VERBS and behind[0].endswith("ing"):
        return known.VERBS[behind[0].lower()], behind[1:]
    return verb, behind


READ_CHARS = 600
READ_SENTENCES = 4
SENTENCE_CHARS = 240

_UNSAID = re.compile("|".join((known.DOUBT, known.QUOTED, known.PAST, r"\bmay\b")))
_AGE = re.compile(r"\b(years?|months?) old\b")
_ADDED = re.compile(known.ADDED)
_MARK = re.compile(known.MARKS, re.IGNORECASE)
_CLAUSE = re.compile(
    r"\s*[,;]\s+(?=(?:not|no longer|but|so|because|it's|it is|its|i|i'm|i've|we|we've|he|she|they|which|who|"
    r"please|instead|the old|and (?:i|we|he|she|it|they|the|that|my))\b)|\s*;\s+",
    re.IGNORECASE,
)
_NOTED = re.compile(r"^(?P<what>[\w' /-]{2,60}?)(?::| =|=) +(?P<value>\S.{0,159})$")
_INTRODUCED = re.compile(r"^for (?:the |my |our )?([^,]{2,60}), (?=(?:ask|use|call|see)\b)", re.IGNORECASE)
_CONTRACTED = tuple(
    (re.compile(pattern, re.IGNORECASE), full)
    for pattern, full in (
        (r"\b(i)'m\b", r"\1 am"),
        (r"\b(we|you|they)'re\b", r"\1 are"),
        (r"\b(it|he|she|that|there|here)'s\b", r"\1 is"),
        (r"\b(i|we|you|they)'ve\b", r"\1 have"),
        (r"\b(i|we|you|he|she|it|they)'ll\b", r"\1 will"),
        (r"\bcan(?:no|')t\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
    )
)
_PASSIVE = re.compile(
    rf"^(?P<subject>.{{1,120}}?) (?:(?:has|have) (?:just )?(?:been )?|was |were |is being )?{known.CHANGES}"
    r"(?: from (?P<old>.{1,80}?))? to (?P<value>.{1,160})$",
    re.IGNORECASE,
)
_ACTIVE = re.compile(
    r"^(?:I|We|They|[A-Z]\w+) (?:have )?(?:just |now )?"
    + known.TRANSITIVE_CHANGES
    + r" (?P<subject>(?:the|my|our|[A-Z]?\w+['\u2019]s) .{1,100}?)(?: from (?P<old>.{1,80}?))?"
    r" to (?P<value>.{1,160})$"
)
# Switching from one thing to another is no move.
_MOVE_WORD = re.compile(r"\b(?:moved|relocated|transferred|changed)\b")
_CHANGE_WORD = re.compile(rf"\b{known.CHANGES}\b")
# A completed change is current, whatever its tense.
_MADE = re.compile(rf"\b(?:was|were)(?= {known.CHANGES}\b.* to )")
_CHANGED = re.compile(rf"^(?P<subject>.{{1,120}}?) (?:(?:has|have) (?:been )?|was )?{known.CHANGES}(?: by .*)?$")
_IT = re.compile(r"^it is\b", re.IGNORECASE)
_DROPPED = re.compile(
    r"(?:,? (?:and )?(?:instead of|rather than|and not)|, no longer|,? not)(?: on| in| at| with)? "
    r"(?P<old>[^,.;]{1,80})$"
)
_OVER = re.compile(r" over (?P<old>[^,.;]{1,60})$")
_NEVER_MORE = re.compile(r"\bany ?more\b|\bany longer\b", re.IGNORECASE)
_THERE = re.compile(r"^there (?:is|are) (?P<count>[\w.,]+) (?P<what>.+)$", re.IGNORECASE)
_NUMBER_OF = re.compile(r"^(?:the )?(?:number|count|amount) of ", re.IGNORECASE)
# First words of a clause whose subject depends on other sentences, or is one of several.
_NO_BEGINNING = known.UNKNOWN_SUBJECTS | (known.INDEFINITE - {"no"})
# Verbs that need no words after them: "Leo smokes".
_ENOUGH_ALONE = frozenset({"smoke", "drink"})
_APART = str.maketrans(dict.fromkeys("'\u2019.,:;!\"", " "))
_TELLING = frozenset(known.VERBS) | known.MODALS | frozenset(known.CHANGES[3:-1].split("|")) | {"'m", "m", "s", "re"}


Read = TypeVar("Read")


@dataclass(frozen=True, slots=True)
class RuleInput:
    """Input of the contradiction rules: a memory's text, time, speaker and scope."""

    content: str
    timestamp: datetime
    speaker: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    task_id: str | None = None
    reply: str = ""
    readings: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def once(self, reader: Callable[[str], Read], text: str) -> Read:
        """Returns the reader's result for a text of this memory; cached per reader and text."""
        if (reader, text) not in self.readings:
            self.readings[reader, text] = reader(text)
        found: Read = self.readings[reader, text]
        return found


@dataclass(frozen=True, slots=True)
class Statement:
    """A parsed clause. `subject`: its words, unordered; `tail`: the tokens after the verb.

    `own`: about the speaker. `marked`: says that it is valid from now on; `changed`: that a value changed.
    `dropped`: the value that is no longer valid. `attribute`: the subject has one value at a time.
    `request`: an imperative. `generic`: the subject does not identify one thing ("the deadline").
    """

    subject: frozenset[str]
    verb: str
    tail: tuple[Token, ...]
    own: bool = False
    negated: bool = False
    marked: bool = False
    changed: bool = False
    attribute: bool = False
    request: bool = False
    generic: bool = False
    dropped: tuple[Token, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """A text's statements. `whole`: a single clause; `adds`: it adds a value ("also") and replaces none."""

    statements: Sequence[Statement] = field(default_factory=tuple)
    whole: bool = False
    adds: bool = False


def read(text: str) -> Reading:
    """Parses the statements of a text; a text over READ_CHARS or READ_SENTENCES returns none."""
    if len(text) > READ_CHARS:
        return Reading()
    pieces = sentences(text)
    if not pieces or len(pieces) > READ_SENTENCES:
        return Reading()
    found: list[Statement] = []
    clauses = 0
    for piece in pieces:
        if not _may_state(piece):
            clauses += 1
            continue
        said = _clauses(piece)
        clauses += len(said)
        found += _read_clauses(said)
    adds = bool(found) and _ADDED.search(text.lower()) is not None
    return Reading(tuple(found), whole=clauses == 1, adds=adds)


def _may_state(sentence: str) -> bool:
    if len(sentence) > SENTENCE_CHARS or sentence.endswith("?"):
        return False
    words = sentence.lower().translate(_APART).split()
    if words[0] in _NO_BEGINNING:
        return False
    return not _TELLING.isdisjoint(words) or "=" in sentence or ":" in sentence


def plain(text: str) -> str:
    """Normalizes a clause: one line, contractions expanded, no final punctuation."""
    text = " ".join(text.replace("\u2019", "'").split())
    if "'" in text:
        for pattern, full in _CONTRACTED:
            text = pattern.sub(full, text)
    return text.strip(' .!"')


def unsaid(text: str) -> bool:
    """Returns whether a text is a question, hypothetical, quoted or about the past."""
    lowered = _AGE.sub(r"\1", text[:1].lower() + text[1:])
    return text.rstrip("\"') ").endswith("?") or _UNSAID.search(lowered) is not None


def _clauses(sentence: str) -> list[str]:
    return [
        clause
        for clause in _CLAUSE.split(plain(sentence) + ("?" if sentence.rstrip().endswith("?") else ""))
        if clause.strip()
    ]


def _read_clauses(clauses: Sequence[str]) -> list[Statement]:
    found: list[Statement] = []
    about = ""
    for clause in clauses:
        drops = re.match(r"(?:not|no longer|instead of) (?:in |on |at )?(?P<old>.{1,80})$", clause, re.IGNORECASE)
        if drops and found:
            found[-1] = _with_dropped(found[-1], read_tokens(drops["old"]))
            continue
        text, marked = clause, False
        if about and _IT.match(clause):
            text, marked = f"{about} is{clause[5:]}", True
        changed = _CHANGED.match(clause) if len(clauses) > 1 and _CHANGE_WORD.search(clause) else None
        about = changed["subject"] if changed else ""
        statement = _read_clause(text, marked=marked)
        if statement is not None:
            found.append(statement)
    return found


def _with_dropped(statement: Statement, old: Sequence[Token]) -> Statement:
    values = {name: getattr(statement, name) for name in Statement.__slots__}
    return Statement(**{**values, "dropped": tuple(old)})


def _read_clause(text: str, *, marked: bool) -> Statement | None:
    if text.split(maxsplit=1)[0].lower() in _NO_BEGINNING:
        return None
    unmarked = " ".join(_MARK.sub(" ", text).split()).strip(" ,")
    marked = marked or unmarked != text
    ended = _NEVER_MORE.sub("", unmarked).strip()
    kept, old = _without_dropped(ended)
    statement = _change(kept) or _plain_statement(kept, marked=marked or ended != text)
    if statement is None or _tells_where(statement) or unsaid(_MADE.sub("has been", unmarked)):
        return None
    return _with_dropped(statement, old) if old else statement


def _tells_where(statement: Statement) -> bool:
    return bool(statement.tail) and statement.tail[0].canon in {"where", "what", "who", "how", "when", "why"}


def _without_dropped(text: str) -> tuple[str, list[Token]]:
    match = _DROPPED.search(text) or _OVER.search(text)
    before = text[: match.start()].strip() if match else ""
    # "is no longer blocked" has no new value before it.
    if match is None or len(before.split()) < 3 or before.split()[-1].lower() in known.VERBS:
        return text, []
    if before.split()[-1].lower() in {"do", "does", "will"}:
        return text, []
    return before, read_tokens(match["old"])


def _change(text: str) -> Statement | None:
    if _CHANGE_WORD.search(text) is None:
        return None
    match = _ACTIVE.match(text) or _PASSIVE.match(text)
    if match is None:
        return None
    subject = read_subject(match["subject"].split())
    if subject is None:
        return None
    old = tuple(read_tokens(match["old"])) if match["old"] else ()
    return Statement(
        subject.words,
        "change" if _MOVE_WORD.search(text) else "alter",
        tuple(read_tokens(match["value"])),
        own=subject.own,
        marked=True,
        changed=True,
        attribute=subject.attribute,
        generic=subject.generic,
        dropped=old,
    )


def _plain_statement(text: str, *, marked: bool) -> Statement | None:
    introduced = _INTRODUCED.match(text)
    if introduced:
        return _asked_about(introduced[1], text[introduced.end() :], marked)
    noted = _NOTED.match(text)
    if noted:
        return _noted(noted["what"], noted["value"], marked)
    there = _THERE.match(text)
    if there:
        what, *where = there["what"].split(" in ")
        text = f"{what} is {there['count']} {' '.join(where)}"
    text = _NUMBER_OF.sub("", text)
    said = [word for word in text.split() if word.lower() not in known.FILLERS]
    if said and said[0].lower() in known.REQUESTS:
        return Statement(
            frozenset({"!"}), said[0].lower(), tuple(read_tokens(" ".join(said[1:]))), marked=marked, request=True
        )
    place = verb_place(said)
    if place is None:
        return None
    return _with_verb(said, place, marked)


def _noted(what: str, value: str, marked: bool) -> Statement | None:
    subject = read_subject(what.split())
    if subject is None or (not subject.attribute and "_" not in what):
        return None
    return Statement(
        subject.words,
        "be",
        tuple(read_tokens(value)),
        own=subject.own,
        marked=marked,
        attribute=True,
        generic=subject.generic,
    )


def _asked_about(what: str, rest: str, marked: bool) -> Statement | None:
    subject, said = read_subject(what.split()), rest.split()
    if subject is None:
        return None
    return Statement(
        subject.words,
        said[0].lower(),
        tuple(read_tokens(" ".join(said[1:]))),
        own=subject.own,
        marked=marked,
        request=True,
    )


def _with_verb(said: Sequence[str], place: int, marked: bool) -> Statement | None:
    subject, predicate = read_subject(said[:place]), read_predicate(said[place:])
    if subject is None or predicate is None:
        return None
    subject, verb, behind = _of_attribute(subject, predicate.verb, predicate.behind)
    denied = denials(behind)
    negated = predicate.negated or bool(denied)
    tail = tuple(read_tokens(" ".join(behind[len(denied) :])))
    if not tail and not negated and verb not in _ENOUGH_ALONE:
        return None
    return Statement(
        subject.words,
        verb,
        tail,
        own=subject.own,
        negated=negated,
        marked=marked or predicate.marked or "longer" in denied or _is_new(said[:place]),
        attribute=subject.attribute,
        generic=subject.generic,
    )


def _is_new(subject: Sequence[str]) -> bool:
    return any(word.lower() == "new" for word in subject)


def _of_attribute(subject: Subject, verb: str, behind: list[str]) -> tuple[Subject, str, list[str]]:
    lowered = [word.lower() for word in behind[:3]]
    named = ""
    if verb == "be" and lowered[:1] == ["due"]:
        named, behind = "deadline", behind[1 + (lowered[1:2] in (["on"], ["by"])) :]
    elif verb == "have" and lowered[:1] == ["a"] and lowered[2:] == ["of"] and lowered[1] in known.ATTRIBUTES:
        named, behind = lowered[1], behind[3:]
    if not named:
        return subject, verb, behind
    return Subject(subject.words | {named}, subject.own, True, subject.generic), "be", behind


def same_speaker(old: RuleInput, new: RuleInput) -> bool:
    """Returns whether both have the same speaker, or none."""
    return (old.speaker or "").casefold() == (new.speaker or "").casefold()
