"""Lexical search: tokenizes text into terms and hashed term keys, and scores candidates by BM25."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from importlib.resources import files

from snowballstemmer.english_stemmer import EnglishStemmer  # type: ignore[import-untyped]  # it ships no types

from agentcore.limits import MAX_TERMS
from agentcore.memory.language.text import STOP_WORDS, words

# BM25 parameters, here and in lexical_hits: term saturation and length normalization.
K1, B = 1.2, 0.75
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MIN_MISSPELT_CHARS, _MAX_MISSPELT_CHARS = 5, 24
_MIN_STEMMED_CHARS = 3
_MAX_STEMMED_CHARS = 40
# Pseudo-count of a background corpus of everyday English: a prior for the document frequencies of new agents.
BACKGROUND_DOCUMENTS = 300


@dataclass(frozen=True, slots=True)
class LexicalStatistics:
    """Statistics of one agent's index.

    By term key: `document_frequency`, and `background_share`, the share of background documents with the term.
    `has_passages`: vectors of later passages of long memories exist.
    """

    memory_count: int
    mean_length: float
    document_frequency: Mapping[int, int]
    background_share: Mapping[int, float] = field(default_factory=dict)
    has_passages: bool = False

    @property
    def background_weight(self) -> float:
        """Share of the background corpus in the statistics: 1 without own memories."""
        return BACKGROUND_DOCUMENTS / (BACKGROUND_DOCUMENTS + max(self.memory_count, 0))

    def weight(self, key: int) -> float:
        """Returns the idf over own memories and background documents together."""
        own = min(max(self.document_frequency.get(key, 0), 0), max(self.memory_count, 0))
        return self._idf(own + BACKGROUND_DOCUMENTS * self.background_share.get(key, 0.0))

    def max_weight(self) -> float:
        return self._idf(0)

    def _idf(self, document_frequency: float) -> float:
        return idf(document_frequency, max(self.memory_count, 0) + BACKGROUND_DOCUMENTS)


def terms(text: str) -> list[str]:
    """Returns the terms without stop words, English words stemmed, in order with repetitions."""
    return [term for word in words(text) if (term := _term(word))]


def term_key(agent_id: str, term: str) -> int:
    """Returns a stable signed 64-bit key, different for each agent."""
    return _term_key(agent_id, term)


def term_keys(agent_id: str, text: str) -> list[int]:
    """Returns the keys of the first `MAX_TERMS` terms, in order with repetitions."""
    return [_term_key(agent_id, term) for term in terms(text)[:MAX_TERMS]]


def edits_at_distance_one(term: str) -> list[str]:
    """Returns the terms at edit distance one: an insertion, deletion, substitution or transposition.

    The first letter is kept: it is rarely wrong (Pollock & Zamora 1984). Empty for short terms, identifiers, other
    scripts.
    """
    if not (_MIN_MISSPELT_CHARS <= len(term) <= _MAX_MISSPELT_CHARS and term.isascii() and term.isalpha()):
        return []
    edits: dict[str, None] = {}
    for place in range(1, len(term) + 1):
        head, tail = term[:place], term[place:]
        edits.update(dict.fromkeys(head + letter + tail for letter in _LETTERS))
        if tail:
            edits[head + tail[1:]] = None
            edits.update(dict.fromkeys(head + letter + tail[1:] for letter in _LETTERS))
            edits[head + tail[1:2] + tail[0] + tail[2:]] = None
    edits.pop(term, None)
    return list(edits)


def idf(document_frequency: float, memory_count: float) -> float:
    """Returns ln(1 + (N - n + 0.5) / (n + 0.5)), never negative.

    The Robertson / Sparck Jones weight (Robertson & Zaragoza 2009, section 3); the 1 keeps frequent terms positive.
    Stale counts may exceed N, and count as N.
    """
    known = min(max(document_frequency, 0), max(memory_count, 0))
    return math.log1p((max(memory_count, 0) - known + 0.5) / (known + 0.5))


class Bm25:
    """BM25 scorer for one query (Robertson & Zaragoza 2009, section 3).

    The sum over distinct query terms of idf * tf (k1 + 1) / (tf + k1 (1 - b + b length / mean length)).
    """

    def __init__(
        self, query_keys: Sequence[int], statistics: LexicalStatistics, discounts: Mapping[int, float] | None = None
    ) -> None:
        """`discounts`: factors below 1 for the idf of uncertain keys, such as typo corrections."""
        self.statistics = statistics
        self._saturation_of_none = K1 * (1 - B)
        self._saturation_a_term = K1 * B / statistics.mean_length if statistics.mean_length > 0 else K1 * B
        shares = discounts or {}
        self._weights = {key: shares.get(key, 1.0) * statistics.weight(key) for key in query_keys}

    @property
    def keys(self) -> list[int]:
        return list(self._weights)

    def weights(self, keys: Iterable[int]) -> dict[int, float]:
        """Returns the weight of each of these keys; 0 if it is not in the query."""
        return {key: self._weights.get(key, 0.0) for key in keys}

    def __call__(self, document_keys: Sequence[int]) -> float:
        matched = self._weights.keys() & document_keys
        if not matched:
            return 0.0
        saturation = self._saturation_of_none + self._saturation_a_term * len(document_keys)
        score = 0.0
        # In query order, so that texts with equal terms have equal scores.
        for key, weight in self._weights.items():
            if key in matched:
                frequency = document_keys.count(key)
                score += weight * frequency * (K1 + 1) / (frequency + saturation)
        return score


def rarest(query_keys: Sequence[int], document_frequency: Mapping[int, int], count: int) -> list[int]:
    """Returns the `count` most selective distinct keys: rarest first, unknown ones last."""
    known = document_frequency.get
    return sorted(dict.fromkeys(query_keys), key=lambda key: (not known(key, 0), known(key, 0)))[:count]


def select_query_keys(
    query_keys: Sequence[int], document_frequency: Mapping[int, int], max_postings: int, longest_list: float = math.inf
) -> list[int]:
    """Returns the known keys, rarest first, up to `max_postings` postings in total.

    At least one, unless each occurs in more than `longest_list` memories. Ties keep the query's order.
    """
    known = [key for key in dict.fromkeys(query_keys) if document_frequency.get(key, 0) > 0]
    chosen: list[int] = []
    postings = 0
    for key in sorted(known, key=lambda key: document_frequency[key]):
        postings += document_frequency[key]
        if postings > (max_postings if chosen else longest_list):
            break
        chosen.append(key)
    return chosen


@lru_cache(maxsize=32_768)
def _term(word: str) -> str:
    if word in STOP_WORDS:
        return ""
    joined = word.replace("-", "")
    if not (joined.isascii() and joined.isalpha()):
        return word
    if not _MIN_STEMMED_CHARS <= len(joined) <= _MAX_STEMMED_CHARS:
        return joined
    # A stemmer has mutable state, so threads must not share one; creating one is cheap.
    stemmed: str = EnglishStemmer().stemWord(joined)
    return stemmed


@lru_cache(maxsize=65_536)
def _term_key(agent_id: str, term: str) -> int:
    digest = blake2b(term.encode("utf-8", "surrogatepass"), digest_size=8, key=_agent_key(agent_id)).digest()
    return int.from_bytes(digest, "big", signed=True)


@lru_cache(maxsize=4_096)
def _agent_key(agent_id: str) -> bytes:
    owner = agent_id.encode("utf-8", "surrogatepass")
    return blake2b(owner, digest_size=32, person=b"agentcore.terms").digest()


@lru_cache(maxsize=1)
def _shares() -> Mapping[str, float]:
    shares: dict[str, float] = {}
    share = 0.0
    for line in files(__package__).joinpath("everyday.txt").read_text(encoding="utf-8").splitlines()[1:]:
        if line.startswith("["):
            share = float(line.strip("[]"))
            continue
        for term in terms(line):
            shares[term] = max(share, shares.get(term, 0.0))
    return shares


def everyday_share(term: str) -> float:
    """Returns the share of background documents that contain a term, as `lexical.terms` returns it."""
    return _shares().get(term, 0.0)
