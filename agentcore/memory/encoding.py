"""Derives a record's fields from its input: content, summary, entities, facts, keywords, hash. Pure."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentcore.memory.language.entities import find_entities
from agentcore.memory.language.text import (
    MAX_WORD_CHARS,
    STOP_WORDS,
    collapse,
    fold,
    is_code,
    normal_form,
    sentences,
    tokens,
    unspaced,
    words,
)

ENTITY_LIMIT = 32
FACT_LIMIT = 16
KEYWORD_LIMIT = 16
SUMMARY_LIMIT_CHARS = 1_200
ANALYSED_CHARS = 32_768
ANALYSED_SENTENCES = 1_000
EMBEDDED_CHARS = 8_000

_WHOLE_CHARS = 120
_SENTENCE_CHARS = 200
_SHORT_SHARE = 0.7
_SUMMARY_SHARE = 0.4
_SHORT_SUMMARY_CHARS = 140
_LABEL_CHARS = 255
_FACT_CHARS = 400
_NAMED_CLAUSE_WORDS = 5
_WORTH_ADDING = 0.35
_RENDERED_CHARS = 500
_RENDERED_LEAVES = 64

_ROLES = frozenset({"user", "human", "assistant", "agent", "system", "tool", "ai", "bot", "model"})
_LABEL = re.compile(r"^(?:User|Agent|Action|Outcome): ")
_ACTION = "Action: "
_CONTRACTION = re.compile(r"'(?:s|re|ve|ll|d|m)$")
_ENGLISH = frozenset({"the", "and", "of", "to", "with", "for", "that", "it", "on", "at", "by", "this"})
_FULL_STOP = re.compile(r"[.!?\u2026\u3002\uff01\uff1f]\W?$")
_CLAUSE_END = re.compile(r"[,;:\u2013\u2014\uff0c\u3001\uff1b](?=\s|[^\x00-\x7f])")

_PREDICATE = """
is are was were am be been has have had isn't aren't wasn't weren't hasn't haven't will won't can can't do
does did don't doesn't didn't i'm i've i'd i'll you're he's she's it's we're we've we'll they're that's
there's must should like likes love loves hate hates prefer prefers need needs want wants use uses live
lives work works cost costs take takes start starts end ends go goes went bought got took made met left
gave sold paid chose kept told said found became began know knows think thinks believe plan plans hope
hopes speak speaks own owns play plays eat eats drink drinks run runs mean means requires require belongs
belong contains contain returns return ran wrote drove flew fell felt lost won read slept spent built
broke cut taught thought brought caught hurt grew drew wore spoke stood sat sent saw heard understood
forgot rang held put set let ate drank swam sang
"""
_PREDICATES = frozenset(_PREDICATE.split())
_SUBJECT = """
i i'm i've i'd i'll my mine we we're we've we'll our ours he he's she she's his her they they're their
"""
_SUBJECTS = frozenset(_SUBJECT.split())
_DECISIVE = """
prefer prefers preferred favourite favorite like likes love loves hate hates always never must allergic
vegetarian vegan decided decision agreed chose chosen choose switched moved changed cancelled canceled
instead deadline budget birthday married born lives live works moving promised owns password address
called named
"""
_DECISIVE_WORDS = frozenset(_DECISIVE.split())
_RULE = "always never please remember don't avoid only keep make use ensure note whenever"
_RULE_OPENERS = frozenset(_RULE.split())
_WEAK = """
yes yeah really one ones get gets got getting thing things lot going want know think make made go good
great nice well hi hello hey thanks thank that's i'm i've i'd i'll it's don't sure okay ok much way even
still would could maybe
"""
_WEAK_WORDS = frozenset(_WEAK.split())

_ACTION_NAMES = ("action", "name", "tool", "function", "command", "step", "type", "description")
_ACTION_INPUTS = ("args", "arguments", "parameters", "params", "input")
_ACTION_RESULTS = ("outcome", "result", "output", "observation", "error", "status")


@dataclass(frozen=True, slots=True)
class Encoded:
    """Values derived from a text. `content_hash`: hexadecimal SHA-256 of `normalised`."""

    content: str
    summary: str
    normalised: str
    content_hash: str
    entities: list[str]
    facts: list[str]
    keywords: list[str]
    embedding_text: str


@dataclass(frozen=True, slots=True)
class _Sentence:
    text: str
    said: list[str]
    content_words: list[str]
    entities: list[str]
    code: bool
    question: bool
    points: int


def interaction_text(query: str | None, response: str | None, actions: Sequence[object], outcome: object) -> str:
    """Returns an interaction as one text, with a line per action and for the outcome."""
    asked, answered = (query or "").strip(), (response or "").strip()
    lines = [f"User: {asked}", f"Agent: {answered}"] if asked and answered else [asked or answered]
    lines += [f"{_ACTION}{text}" for action in actions if (text := _action_text(action))]
    lines.append(f"Outcome: {ended}" if (ended := _rendered(outcome)) else "")
    return "\n".join(filter(None, lines))


def action_outcomes(actions: Sequence[object], outcome: object) -> list[dict[str, str]]:
    """Returns each action with its own result, or else with the outcome of the interaction."""
    overall = _rendered(outcome)
    return [
        {"action": text, "outcome": _own_result(action) or overall}
        for action in actions
        if (text := _action_text(action))
    ]


def digest(normalised: str) -> bytes:
    return hashlib.sha256(normalised.encode("utf-8", "surrogatepass")).digest()


def encode(content: str, *, speaker: str | None = None) -> Encoded:
    """Returns the derived fields of a text; all but the hash use its first ANALYSED_CHARS characters."""
    content = content.strip()
    normalised = normal_form(content)
    spoken_by = _spoken_by(speaker)
    analysed = _analysed(content[:ANALYSED_CHARS], spoken_by)
    return Encoded(
        content=content,
        summary=_summary(content, analysed),
        normalised=normalised,
        content_hash=digest(normalised).hex(),
        entities=_entities(analysed, spoken_by),
        facts=_facts(analysed),
        keywords=_keywords(analysed),
        embedding_text=embedding_text(content, speaker),
    )


def embedding_text(content: str, speaker: str | None) -> str:
    """Returns the text to embed, with a speaker's name unless it is a role."""
    content, spoken_by = content.strip(), _spoken_by(speaker)
    return (f"{spoken_by}: {content}" if spoken_by else content)[:EMBEDDED_CHARS]


def _spoken_by(speaker: str | None) -> str:
    return speaker.strip() if speaker and speaker.strip().casefold() not in _ROLES else ""


def _analysed(text: str, speaker: str) -> list[_Sentence]:
    pieces = sentences(text)[:ANALYSED_SENTENCES]
    return [
        _sentence(piece, entities)
        for piece, entities in zip(pieces, find_entities(pieces, STOP_WORDS, (speaker,)), strict=True)
    ]


def _sentence(text: str, entities: list[str]) -> _Sentence:
    said = [token.casefold().replace("\u2019", "'") for token in tokens(_without_label(text))]
    code = is_code(text)
    question = text.rstrip("\"'*_)\u201d\u2019")[-1:] in ("?", "\uff1f")
    states_nothing = code or question or text.startswith(_ACTION) or text.endswith(":")
    return _Sentence(
        text=text,
        said=said,
        content_words=[word for token in said for word in _content_words(token)],
        entities=entities,
        code=code,
        question=question,
        points=0 if states_nothing or len(text) > _FACT_CHARS else _statement_points(said, entities),
    )


def _without_label(text: str) -> str:
    return _LABEL.sub("", text, count=1)


def _content_words(token: str) -> list[str]:
    if unspaced(token):
        return words(token)
    word = _CONTRACTION.sub("", token)[:MAX_WORD_CHARS]
    if len(word) < 2 or word in _WEAK_WORDS or fold(word).replace("'", "") in STOP_WORDS:
        return []
    return [word]


def _entities(analysed: Iterable[_Sentence], speaker: str) -> list[str]:
    found = {speaker.casefold(): speaker[:_LABEL_CHARS]} if speaker else {}
    for sentence in analysed:
        for name in sentence.entities:
            found.setdefault(name.casefold(), name[:_LABEL_CHARS])
    return list(found.values())[:ENTITY_LIMIT]


def _keywords(analysed: Sequence[_Sentence]) -> list[str]:
    weights: dict[str, float] = {}
    for index, sentence in enumerate(analysed):
        for word in sentence.content_words:
            if word not in weights:
                weights[word] = 0.5 if index == 0 else 0.0
            weights[word] += 1 + min(len(word), 12) / 12
    return sorted(weights, key=lambda word: -weights[word])[:KEYWORD_LIMIT]


def _facts(analysed: Sequence[_Sentence]) -> list[str]:
    points = {index: each.points for index, each in enumerate(analysed) if each.points > 1}
    best = sorted(sorted(points, key=lambda index: -points[index])[:FACT_LIMIT])
    return list(dict.fromkeys(collapse(_without_label(analysed[index].text)) for index in best))


def _statement_points(said: Sequence[str], entities: Sequence[str]) -> int:
    if not _is_clause(said):
        return 0
    numbered = any(word[0].isdigit() for word in said)
    named = bool(entities) and len(said) >= _NAMED_CLAUSE_WORDS
    rule = said[0] in _RULE_OPENERS
    if not (rule or _has_predicate(said)):
        return 2 if numbered and named else 0
    subject = unspaced(said[0]) or not _SUBJECTS.isdisjoint(said)
    decisive = not _DECISIVE_WORDS.isdisjoint(said)
    return 1 + rule + subject + decisive + numbered + named


def _is_clause(said: Sequence[str]) -> bool:
    return len(said) >= 3 or (bool(said) and unspaced(said[0]) and sum(map(len, said)) >= 6)


def _has_predicate(said: Sequence[str]) -> bool:
    if any(word in _PREDICATES or word.endswith(("ed", "'s")) for word in said):
        return True
    return (len(said) >= 4 or unspaced(said[0])) and _ENGLISH.isdisjoint(said)


def _summary(content: str, analysed: Sequence[_Sentence]) -> str:
    length = len(content)
    if len(analysed) < 2 and length <= _WHOLE_CHARS:
        return content
    budget = _summary_budget(length)
    if not analysed:
        return _cut(collapse(content), budget)
    weights = _sentence_weights(analysed)
    order = sorted(range(len(analysed)), key=lambda index: -weights[index])
    first = collapse(analysed[order[0]].text)
    if len(first) > max(budget, min(length - 1, _SENTENCE_CHARS)):
        return _cut(first, budget)
    chosen = {first: order[0]}
    room = budget - len(first)
    for index in order[1:]:
        if weights[index] < _WORTH_ADDING * weights[order[0]]:
            break
        text = collapse(analysed[index].text)
        if text not in chosen and len(text) < room:
            chosen[text] = index
            room -= len(text) + 1
    return _joined(sorted(chosen, key=lambda text: chosen[text]))


def _joined(texts: Iterable[str]) -> str:
    return "".join(text + (" " if _FULL_STOP.search(text) else "\n") for text in texts).rstrip()


def _summary_budget(length: int) -> int:
    if length <= _SENTENCE_CHARS:
        return int(length * _SHORT_SHARE)
    return min(max(_SHORT_SUMMARY_CHARS, int(length * _SUMMARY_SHARE)), SUMMARY_LIMIT_CHARS)


def _sentence_weights(analysed: Sequence[_Sentence]) -> list[float]:
    frequency = Counter(word for sentence in analysed for word in sentence.content_words)
    return [
        sum(math.log1p(frequency[word]) for word in set(sentence.content_words)) / math.sqrt(len(sentence.said) + 3)
        + 0.4 * min(sentence.points, 4)
        + (0.4 * min(len(sentence.entities), 3) if len(sentence.said) >= _NAMED_CLAUSE_WORDS else 0.0)
        + (0.5 if index == 0 and sentence.points else 0.0)
        - (1.5 if sentence.code else 0.0)
        - (0.4 if sentence.question else 0.0)
        for index, sentence in enumerate(analysed)
    ]


def _cut(text: str, limit: int) -> str:
    window = text[:limit]
    clause = max((match.start() for match in _CLAUSE_END.finditer(window)), default=0)
    if clause > limit // 2:
        return window[:clause].rstrip()
    word = window.rfind(" ")
    return window[:word].rstrip() if word > limit // 2 else window.rstrip()


def _action_text(action: object) -> str:
    if not isinstance(action, Mapping):
        return _rendered(action)
    name = next((text for key in _ACTION_NAMES if (text := _rendered(action.get(key)))), "")
    if not name:
        return _rendered(action)
    given = next((text for key in _ACTION_INPUTS if (text := _rendered(action.get(key)))), "")
    return f"{name} ({given})" if given else name


def _own_result(action: object) -> str:
    if not isinstance(action, Mapping):
        return ""
    return next((text for key in _ACTION_RESULTS if (text := _rendered(action.get(key)))), "")


def _rendered(value: object) -> str:
    leaves = (text for _, text in zip(range(_RENDERED_LEAVES), _leaves(value), strict=False))
    return collapse(", ".join(leaves))[:_RENDERED_CHARS].rstrip()


def _leaves(value: object) -> Iterator[str]:
    pending: list[tuple[str, object]] = [("", value)]
    while pending:
        label, current = pending.pop()
        if isinstance(current, Mapping):
            pending += [(str(key), each) for key, each in reversed(list(current.items()))]
        elif isinstance(current, (list, tuple)):
            pending += [(label, each) for each in reversed(current)]
        elif text := _leaf(current):
            yield f"{label}: {text}" if label else text


def _leaf(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value).strip()
