"""Parses a short sentence into a fact: subject words, attributes, kind of value and value. Pure.

Each word is a subject word, a change marker, a value or a connector. Two facts contradict each other only if
their subject words are equal.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from agentcore.memory.language.text import sentences
from agentcore.memory.statements import statement_words as known
from agentcore.memory.statements.differences import alike, is_part
from agentcore.memory.statements.statements import plain
from agentcore.memory.statements.values import Token, content, read_tokens

FACT_CHARS = 140
ANY = "?"
_MOST_ABOUT = 4
# Single-valued, even if the words state no change.
_ONE_AT_A_TIME = frozenset({"version", "phone", "port"})
# Attributes that a change verb alone does not determine.
_UNNAMED_BY_CHANGE = frozenset({"home", "employer", "charge", "car", "place"})
_MAY_HOLD = re.compile(
    r"\d|\b[A-Z]\w+\b.*\b[A-Z]\w|day\b|\b(?:promoted|became|serves|title|role|made|appointed|moved up)\b"
    r"|\bworks as\b|\bno longer\b|\b[Mm]y\b|\bI\b"
)
_HOLDS_SAID = re.compile(
    r"\b(?:was|were|had) (?=\w+ed\b|made|cut|given|taken|brought|bound|put|set|handed|sold)|\bnot due until\b"
    r"|\bhave until\b|\bcan (?=be (?:called|reached)|spend|reach|call)|\bthe old number\b|\bplan (?=to \d)"
    r"|\bthis week\b"
)
_UNSAID = re.compile("|".join((known.DOUBT, known.QUOTED, known.PAST, known.ADDED)))
_SUBORDINATE = re.compile(
    r"\b(?:because|while|who|which|whose|although|though|when|after|before|without|except|he|she|his|her|their|"
    r"this|these|(?:is|are|was) to)\b(?! days\b)"
)
# "Amira is no longer in Graz, she lives in Porto": the second clause has the same subject.
_GOES_ON = re.compile(r", (?:and |but )?(?:he|she|it) (?=is\b|has\b|lives\b|works\b|drives\b|uses\b|runs\b)")
# "Runs on" is a location, "runs" a role.
_RUNS_ON = re.compile(r"\bruns? on\b")
_NOT = re.compile(r"\b(?:not|never|nobody|nothing|none|no|cannot)\b", re.IGNORECASE)
_NOT_DENYING = re.compile(r"\bno more\b|\bdo(?:es)? not work any ?more\b", re.IGNORECASE)
_THING = r"(?:(?:the|a|an|in|on|at|with|port) )*(?P<old>(?:[\w.'-]|,\d)+(?: (?:[\w.'-]|,\d)+){0,3}?)"
_ENDED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\bno longer {_THING},? but\b",
        rf",? (?:instead of|rather than|no longer|and not) {_THING}(?=$|, | (?:for|in|on|at)\b)",
        rf"\bover from {_THING} (?=as\b)",
        rf"\bfrom {_THING} (?=to\b|back to\b)",
        rf"\b(?P<verb>replaced|swapped|traded|exchanged|dropped|ditched|left|quit|sold|gave up|got rid of)"
        rf" {_THING}"
        r" (?=for\b|with\b|by\b|and\b|as\b|in favou?r\b)",
        rf"\b(?:taken|took) .{{1,60}}(?P<over> from ){_THING}$",
        rf"\b(?:sold|got rid of|gave up|quit) {_THING}$",
        rf"^{_THING} (?:is|are) out\b,?",
        rf"^{_THING} (?:handed|passed|gave) (?=.* to\b)",
        rf"^{_THING} (?:does|do) not work any ?more\b,?",
        rf"^no more {_THING} (?=for\b)",
    )
)
_MARKED = re.compile("|".join((known.MARKS, r"\bno longer\b|\bno more\b|\bfor good\b")), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact: subject words (`about`, unordered), possible attributes, and a value of one kind.

    `changed`: it states a change; `ended`: the old value it names. `single`: the attribute has one value at a
    time. `named`: the subject has a name. `own`: about the speaker.
    """

    about: frozenset[str]
    kind: str
    attributes: frozenset[str]
    value: tuple[Token, ...]
    changed: bool = False
    single: bool = False
    named: bool = False
    ended: tuple[Token, ...] = ()
    own: bool = False


def fact(text: str) -> Fact | None:
    """Parses the only fact of a short text; None if it is longer, a question, hypothetical, negated, past."""
    if len(text) > FACT_CHARS or text.rstrip().endswith("?") or _MAY_HOLD.search(text) is None:
        return None
    pieces = sentences(text)
    if len(pieces) != 1:
        return None
    said = plain(pieces[0])
    said = _RUNS_ON.sub("is on", _GOES_ON.sub(", ", said))
    lowered = _HOLDS_SAID.sub(" ", _MARKED.sub(" ", said[:1].lower() + said[1:]))
    if _UNSAID.search(lowered) is not None or _SUBORDINATE.search(lowered) is not None:
        return None
    if not _states(said):
        return None
    said, ended = _without_ended(said)
    said = _NOT_DENYING.sub(" ", said.replace("not due until", "due"))
    if _NOT.search(said.replace("no longer", "")):
        return None
    unmarked = _MARKED.sub(" ", said)
    marked, said = unmarked != said, unmarked
    return _of_tokens(_tokens(said), ended, marked=marked)


def _without_ended(said: str) -> tuple[str, tuple[Token, ...]]:
    for pattern in _ENDED:
        match = pattern.search(said)
        if match is None:
            continue
        old = [token for token in read_tokens(match["old"]) if token.canon not in known.IGNORED]
        if old:
            start, end = match.span("old")
            return said[:start] + said[end:], tuple(old)
    return said, ()


def _states(said: str) -> bool:
    words = [word.strip(".,") for word in said.lower().split()]
    told = bool(words) and words[0] in known.PRONOUNS and len(words) > 2
    return told or not known.FACT_FINITE.isdisjoint(words[1:]) or not known.REACHING.isdisjoint(words[:2])


def _tokens(said: str) -> list[Token]:
    found = read_tokens(said)
    first = found[0] if found else None
    if first is not None and first.kind == "name" and (first.canon in {"i", "we"} or _is_common(first.canon)):
        found[0] = Token("word", first.canon)
    return found


def _is_common(word: str) -> bool:
    cues = (words for groups in known.CUES.values() for words in groups.values())
    return word in known.IGNORED | known.FACT_CHANGES | known.OWN_CUES["name"] or any(word in words for words in cues)


_Found = tuple[str, frozenset[str], tuple[Token, ...], list[Token]]


def _of_tokens(tokens: Sequence[Token], ended: tuple[Token, ...], *, marked: bool) -> Fact | None:
    words = {token.canon for token in tokens}
    changed = marked or bool(ended) or not words.isdisjoint(known.FACT_CHANGES)
    found = _typed(tokens, words, ended) or _title(tokens, words, ended) or _named(tokens)
    return None if found is None else _fact_of(found, tokens, ended, changed=changed)


def _fact_of(found: _Found, tokens: Sequence[Token], ended: tuple[Token, ...], *, changed: bool) -> Fact | None:
    kind, attributes, value, rest = found
    if changed and not attributes:
        attributes = frozenset({ANY})
    about = _about(rest, kind, attributes)
    if not (attributes and about) or len(about) > _MOST_ABOUT:
        return None
    named = any(token.kind in {"name", "identifier"} for token in rest)
    single = not _heads(tokens).isdisjoint(attributes | _cues(kind, attributes) & known.ATTRIBUTES)
    return Fact(about, kind, attributes, value, changed, single, named, ended, own="i" in about)


def _typed(tokens: Sequence[Token], words: set[str], ended: Sequence[Token]) -> _Found | None:
    if any(token.kind == "number" for token in ended):
        words = words | {"port"}
    values = [at for at, token in enumerate(tokens) if _kind(tokens, at, words)]
    if len(values) != 1:
        return None
    at = values[0]
    kind = _kind(tokens, at, words)
    end = at + (2 if kind == "money" else 1)
    rest = [*tokens[:at], *tokens[end:]]
    if any(token.kind in {"number", "time", "url"} for token in rest):
        return None
    attributes = _attributes(kind, tokens)
    if kind in {"weekday", "version", "port"}:
        attributes = attributes or frozenset(known.CUES[kind])
    return kind, attributes, tuple(tokens[at:end]), rest


def _kind(tokens: Sequence[Token], at: int, words: set[str]) -> str:
    token = tokens[at]
    if token.kind in {"date", "weekday", "version", "phone"}:
        return token.kind
    if token.kind == "identifier" and re.fullmatch(r"\d{3,}-[\d-]{3,}", token.canon):
        return "phone"
    if token.kind != "number":
        return ""
    if at + 1 < len(tokens) and tokens[at + 1].canon in known.CURRENCIES:
        return "money"
    digits = token.canon.isdigit() and 2 <= len(token.canon) <= 5
    return "port" if digits and not words.isdisjoint(known.CUES["port"]["port"]) else ""


def _title(tokens: Sequence[Token], words: set[str], ended: Sequence[Token]) -> _Found | None:
    cues = known.CUES["title"]["title"]
    said = [token for token in tokens if token.kind == "word"]
    nouns = known.ROLE_NOUNS.intersection(token.canon for token in said)
    names = [token for token in tokens if token.kind == "name" or token.canon == "i"]
    if not (nouns and names and (words & cues or content(ended) & known.ROLE_NOUNS)):
        return None
    beside = known.IGNORED | cues | known.FACT_CHANGES | {"i"}
    value = [token for token in said if token.canon not in beside]
    return "title", frozenset({"title"}), tuple(value), names


def _named(tokens: Sequence[Token]) -> _Found | None:
    if any(token.kind not in {"name", "word"} for token in tokens):
        return None
    attributes = _attributes("name", tokens)
    place = _place_of_value(tokens, attributes)
    if place is None:
        return None
    start, end = place
    if any(token.canon in known.ATTRIBUTES for token in tokens[start:end]):
        return None
    return "name", attributes, tuple(tokens[start:end]), [*tokens[:start], *tokens[end:]]


def _place_of_value(tokens: Sequence[Token], attributes: frozenset[str]) -> tuple[int, int] | None:
    names = _names(tokens)
    if len(names) == 1:
        return names[0] if _is_enough(tokens, names[0], attributes) else None
    if len(names) != 2:
        return None
    return names[0] if _value_comes_first(tokens, names, attributes) else names[1]


def _is_enough(tokens: Sequence[Token], name: tuple[int, int], attributes: frozenset[str]) -> bool:
    words = {token.canon for token in tokens}
    if not words.isdisjoint(known.RELATED):
        return False
    named = not attributes.isdisjoint(known.OWN_CUES["name"]) and "is" in words
    return "i" in words or "place" in attributes or (named and name[0] > 0)


def _names(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for at, token in enumerate(tokens):
        if token.kind != "name":
            continue
        if found and found[-1][1] == at:
            found[-1] = found[-1][0], at + 1
        else:
            found.append((at, at + 1))
    return found


def _value_comes_first(tokens: Sequence[Token], names: Sequence[tuple[int, int]], attributes: frozenset[str]) -> bool:
    between = {token.canon for token in tokens[names[0][1] : names[1][0]]}
    if between - {"is"} <= known.JOINING and ("for" in between or "is" not in between):
        return True
    if between & known.VALUE_LAST or (attributes == {"place"} and "where" not in between):
        return False
    return bool(between & known.VALUE_FIRST) or _names_it(between, at_first=names[0][0] == 0)


def _names_it(between: set[str], *, at_first: bool) -> bool:
    return at_first and "is" in between and not between.isdisjoint(known.NAMING)


def _attributes(kind: str, tokens: Sequence[Token]) -> frozenset[str]:
    words = {token.canon for token in tokens}
    own = _heads(tokens) & known.OWN_CUES.get(kind, frozenset())
    found = {name for name, cues in known.CUES[kind].items() if words & cues}
    if own:
        return frozenset(own)
    strong = {name for name, cues in known.CUES[kind].items() if words & cues - known.WEAK}
    if kind == "name" and not words.isdisjoint(known.EVENTS):
        return frozenset({"place"}) if words & {"in", "moved", "relocated"} or "place" in found else frozenset()
    return frozenset(strong or found)


def _heads(tokens: Sequence[Token]) -> set[str]:
    after = [token.canon in known.IGNORED | known.FACT_CHANGES for token in tokens[1:]]
    return {token.canon for token, ends in zip(tokens, [*after, True], strict=True) if ends}


def _about(rest: Sequence[Token], kind: str, attributes: frozenset[str]) -> frozenset[str]:
    cues = _cues(kind, attributes)
    said = (token for token in rest if token.canon not in known.IGNORED)
    return frozenset(
        token.canon
        for token in said
        if token.kind in {"name", "identifier"} or token.canon not in known.FACT_CHANGES | cues | attributes
    )


def _cues(kind: str, attributes: frozenset[str]) -> frozenset[str]:
    groups = known.CUES[kind]
    names = groups if ANY in attributes else attributes & groups.keys()
    return frozenset().union(*(groups[name] for name in names))


def speaks_against(old: Fact, new: Fact) -> bool:
    """Returns whether the new fact states another value of the same attribute of the same subject."""
    if old.about != new.about or old.kind != new.kind:
        return False
    if new.ended and content(new.ended) <= content(old.value):
        return content(new.value) != content(old.value)
    return _of_one_attribute(old, new) and _is_other(old, new)


def may_end(old: Fact, new: Fact) -> bool:
    """Returns whether the new value may end the old one: one may have two homes, unless one moved."""
    several = new.kind == "name" and not new.attributes.isdisjoint(_UNNAMED_BY_CHANGE - {"employer"})
    several = several or (new.kind == "weekday" and not new.named)
    return new.changed or new.single or not several


def is_plain(old: Fact, new: Fact) -> bool:
    """Returns whether the contradiction is unambiguous enough to supersede the old fact."""
    if new.ended and content(new.ended) <= content(old.value):
        return True
    unclear = ANY in old.attributes | new.attributes or len(old.attributes) != 1 or len(new.attributes) != 1
    if new.kind == "name" and unclear:
        return False
    return new.changed or new.single or new.kind in _ONE_AT_A_TIME


def _of_one_attribute(old: Fact, new: Fact) -> bool:
    if old.attributes & new.attributes - {ANY}:
        return True
    if ANY not in old.attributes | new.attributes:
        return False
    return old.kind != "name" or _UNNAMED_BY_CHANGE.isdisjoint(old.attributes | new.attributes)


def _is_other(old: Fact, new: Fact) -> bool:
    if content(old.value) == content(new.value) or is_part(old.value, new.value):
        return False
    if old.kind == "money":
        return old.value[1:] == new.value[1:]
    return old.kind != "name" or not alike(old.value, new.value)


def fact_keys(said: Fact | None, speaker: str | None) -> list[str]:
    """Returns index keys: only facts that share one can contradict each other."""
    if said is None:
        return []
    whose = f"|{(speaker or '').casefold()}" if said.own else ""
    return [f"fact|{said.kind}|{' '.join(sorted(said.about))}{whose}"]
