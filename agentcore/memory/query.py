"""Completes vague queries, splits long prompts, and detects historical queries. Pure.

Superseded memories are searched for a historical query: it names a time range that ends before now, or the
`QueryDetector` of `ranking/calibration.py` classifies it as historical.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from agentcore.memory.language.rejection import is_small_talk
from agentcore.memory.language.text import is_code, sentences, tokens
from agentcore.memory.lexical import terms
from agentcore.memory.params.memories import Turn
from agentcore.memory.ranking.candidates import Span

VAGUE_TERMS = 1
ANAPHORIC_TERMS = 3
JOINED_TURNS = 3
KEY_TERMS = 8
KEY_TERMS_A_TURN = 5
TURN_CHARS = 4_000
# Limits up to which a prompt is one query.
WHOLE_CHARS, WHOLE_SENTENCES = 300, 3
MAX_QUERIES = 8
QUERY_CHARS = 500
PROMPT_CHARS = 32_768
NAMES_OF_CODE = 16
_ANAPHORA = re.compile(
    r"^\W*(?:and|but|or|so|then|what about|how about|what of)\b"
    r"|\b(?:it|its|that|this|those|these|they|them|there|one|ones|other|others|same)\b",
    re.IGNORECASE,
)
# Words without information in a turn or a question.
_LOW_INFORMATION_WORDS = """
much many one ones other others thing things else next first second third another again time last long soon
way okay ok yes yeah no well really just also please thanks thank hi hello hey tell show give let get got go
going want wanted need think thought know knew like likes guess maybe would could said say says look make
take put good great nice bad lot lots bit kind sort something anything everything someone now today mean
happen work
"""
_LOW_INFORMATION = frozenset(terms(_LOW_INFORMATION_WORDS))

_ERROR = re.compile(
    r"error|exception|fail|fatal|panic|critical|traceback|denied|refused|timed? ?out|cannot|undefined"
    r"|not found|segfault|abort",
    re.IGNORECASE,
)
_LOG = re.compile(
    r"\s*(?:at [\w$.<>]+\(|File \"|\[?\d{4}-\d\d-\d\d[T ]\d\d:|\[?\d\d:\d\d:\d\d"
    r"|\[?(?:TRACE|DEBUG|INFO|WARN\w*|ERROR)\b|[>$#] |\.\.\. )"
)
# An identifier in code: dotted, snake case, mixed case, or a constant.
_NAME = re.compile(r"\b(?=\w*[a-z])\w+(?:[._]\w+)+|\b[a-z]+[A-Z]\w*|\b[A-Z][a-z]+[A-Z]\w*|\b[A-Z][A-Z0-9_]{3,}\b")

_QUESTION_WORD = re.compile(r"\b(?:when|what|which|where|why|who|whom|whose|how)\b.{0,24}", re.IGNORECASE)
_TIME_WANTED = re.compile(
    r"when\b|(?:what|which) (?:time|date|day|weekday|month|year|week)\b|how long ago\b", re.IGNORECASE
)


def complete(query: str, history: Sequence[Turn]) -> str:
    """Returns the query; a vague one ("how much?") with key terms of the last user turns appended.

    At most `KEY_TERMS`, those of the newest turn first, without terms of the query.
    """
    if not _is_vague(query):
        return query
    user_turns = [turn.content for turn in history if turn.role == "user"][-JOINED_TURNS:]
    known = set(terms(query))
    found = [term for content in reversed(user_turns) for term in _key_terms(content, known)]
    return " ".join([query, *found[:KEY_TERMS]])


def _is_vague(query: str) -> bool:
    informative = [term for term in terms(query) if term not in _LOW_INFORMATION]
    return len(informative) <= VAGUE_TERMS or (
        len(informative) <= ANAPHORIC_TERMS and _ANAPHORA.search(query) is not None
    )


def _key_terms(content: str, known: set[str]) -> list[str]:
    found: list[str] = []
    named: list[str] = []
    begins = True
    for token in tokens(content[:TURN_CHARS]):
        content_terms = [term for term in terms(token) if term not in _LOW_INFORMATION]
        if content_terms and not known.issuperset(content_terms):
            known.update(content_terms)
            is_distinctive = not token.islower() and not (begins and token.istitle())
            (named if is_distinctive else found).append(token)
        begins = False
    return [*named, *found][:KEY_TERMS_A_TURN]


def split(prompt: str) -> list[str]:
    """Returns a short prompt as it is, else up to MAX_QUERIES informative sentences, in order.

    Of code and logs, only lines with errors and identifiers are used.
    """
    prompt = prompt[:PROMPT_CHARS]
    pieces = sentences(prompt)
    if len(prompt) <= WHOLE_CHARS and len(pieces) <= WHOLE_SENTENCES:
        return [prompt]
    by_terms: dict[frozenset[str], str] = {}
    for query in (query for piece in pieces for query in _queries(piece)):
        content_terms = frozenset(terms(query)) - _LOW_INFORMATION
        if len(content_terms) > 1:
            by_terms.setdefault(content_terms, query[:QUERY_CHARS])
    best = sorted(by_terms.items(), key=lambda each: _informativeness(each[1], each[0]), reverse=True)[:MAX_QUERIES]
    chosen = {query for _, query in best}
    return [query for query in by_terms.values() if query in chosen] or [prompt[:QUERY_CHARS]]


def _queries(piece: str) -> Iterator[str]:
    if is_code(piece):
        lines = [line.strip() for line in piece.splitlines()]
        yield from (line for line in lines if _ERROR.search(line) and not line.startswith("#"))
        yield " ".join(list(dict.fromkeys(_NAME.findall(piece)))[:NAMES_OF_CODE])
    elif not is_small_talk(piece) and (_LOG.match(piece) is None or _ERROR.search(piece)):
        yield piece


def _informativeness(query: str, content_terms: frozenset[str]) -> float:
    asked = 15.0 if query.rstrip("\"'*_) ").endswith("?") else 0.0
    wrong = 4.0 if _ERROR.search(query) else 0.0
    return min(len(content_terms), 20) + asked + wrong


def asks_for_time(query: str) -> bool:
    """Whether the first question word of an English query asks for a time."""
    asked = _QUESTION_WORD.search(query)
    return asked is not None and _TIME_WANTED.match(asked.group()) is not None


def asks_only_for(query: str, phrases: Sequence[str]) -> bool:
    """Whether the query names times and no subject, as "what happened last week?"."""
    for phrase in phrases:
        query = query.replace(phrase, " ")
    return bool(phrases) and all(term in _LOW_INFORMATION for term in terms(query))


# A longer prompt, such as a log, contains times unrelated to the query.
READ_CHARS = 300
HISTORICAL_THRESHOLD = 0.8


@dataclass(frozen=True)
class HistoricalScope:
    """The superseded memories that a historical query also searches.

    `spans`: time ranges named by `phrase`. None: any time, because the classifier's `probability` exceeds the
    threshold.
    """

    phrase: str | None
    spans: Sequence[Span] | None = None
    probability: float | None = None

    def as_receipt(self) -> Mapping[str, Any]:
        if self.spans is None:
            return {"probability": round(self.probability or 0.0, 2)}
        return {"phrase": self.phrase, "held_in": [[start.isoformat(), end.isoformat()] for start, end in self.spans]}


def is_short(query: str) -> bool:
    return len(query) <= READ_CHARS


def historical_scope(
    query: str, named: Sequence[tuple[str, Span]], now: datetime, probability: float = 0.0
) -> HistoricalScope | None:
    """Returns which superseded memories a query asks for: by times before `now`, or by its probability.

    `named`: the times that the query names, each with its words.
    """
    if not is_short(query):
        return None
    over = [(phrase, span) for phrase, span in named if span[1] <= now]
    if not over:
        return HistoricalScope(None, probability=probability) if probability >= HISTORICAL_THRESHOLD else None
    return HistoricalScope("; ".join(dict.fromkeys(phrase for phrase, _ in over)), [span for _, span in over])
