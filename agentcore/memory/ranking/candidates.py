"""Input of the ranking: candidates, links and the query; duplicates among the candidates. Pure.

Near duplicates lose by maximal marginal relevance (Carbonell & Goldstein 1998) over the share of common terms.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.scoring import is_person

# Requested memories per breadth: a search for more multiplies its candidates.
MEMORIES_A_BREADTH = 50
BROADEST = 8
Span = tuple[datetime, datetime]
"""A half-open span of time."""


class Candidate(NamedTuple):
    """A memory that a retriever found, with the features for ranking.

    - `words`: its BM25 score, not scaled. `text`: the digest of its words with speaker, user and namespace.
    - `asks`: it ends with a question. `is_exchange`: it contains a request and its response.
    - `event`: the time it mentions. `held`: its validity, if it is superseded and the query is historical.
    - `term_keys`: its terms as digests. `is_summary`: it summarizes others, to which it is linked.
    - `session_match`: the share of the query's terms, by BM25 weight, in the candidates of its session between people.
    - `passage`: the offsets of a later passage that is nearer to the query than the memory's own vector.
    """

    memory_id: UUID
    timestamp: datetime
    relevance_score: float
    similarity: float | None
    words: float
    speaker: str | None
    access_count: int
    last_accessed: datetime | None
    text: tuple[bytes, str | None, str | None, str | None]
    asks: bool = False
    is_exchange: bool = False
    event: Span | None = None
    term_keys: Sequence[int] = ()
    is_summary: bool = False
    held: Span | None = None
    passage: tuple[int, int] | None = None
    session_match: float = 0.0

    @property
    def is_turn(self) -> bool:
        """Whether it is a person's turn in a conversation; adjacent turns may be its question or answer."""
        return is_person(self.speaker) and not self.is_exchange

    def of_then(self, window: Span) -> bool:
        """Returns whether it was said or, if superseded, valid in that span."""
        start, end = window
        held = self.held is not None and self.held[0] < end and self.held[1] > start
        return held or start <= self.timestamp < end


@dataclass(frozen=True)
class CandidateLink:
    """A link between two memories, in both directions. `by_caller`: its relation is not reserved for the service."""

    source_id: UUID
    target_id: UUID
    weight: float
    by_caller: bool = False


@dataclass(frozen=True)
class MatchScale:
    """BM25 scores: of a full match, and of the query itself as a text."""

    words: float
    query_words: float


@dataclass(frozen=True)
class Question:
    """The query, as the ranking uses it; `now`: the time it is asked at.

    - `words`: may name a speaker. `windows`: the times that it names. `seeks_time`: it asks when something was.
    - `min_score` applies to the similarity only: a fused score is not a cosine.
    - `own`: memories that are the query itself; `own_text`: the digest of its words, to find such turns.
    - `text`: the digest of the query; a stored question with these words repeats no memory.
    - `changes` lead from a memory to one that it makes outdated, with the probability.
    - `change_factor`, `about_assistant`: probability that it asks for a current state, for the assistant's words.
    - `excess` of the nearest and `generality` as in `OffTopicPrompts`.
    """

    now: datetime
    scale: MatchScale
    words: Collection[str] = ()
    windows: Sequence[Span] = ()
    seeks_time: bool = False
    min_score: float | None = None
    with_vectors: bool = True
    distinct: bool = True
    memory_count: int = 0
    own: Collection[UUID] = ()
    own_text: bytes | None = None
    text: bytes | None = None
    changes: Sequence[CandidateLink] = ()
    change_factor: float = 1.0
    about_assistant: float = 0.0
    excess: Mapping[UUID, float] | None = None
    generality: float = 0.0


@dataclass(frozen=True)
class SearchLimits:
    exact_search_limit: int = 1_000
    vector_candidates: int = 60
    lexical_candidates: int = 90
    leading_candidates: int = 20
    link_candidates: int = 20
    temporal_candidates: int = 40
    temporal_rows: int = 1_000
    temporal_rows_read: int = 10_000
    several_vector_candidates: int = 150

    def times(self, breadth: int) -> SearchLimits:
        return replace(
            self,
            vector_candidates=breadth * self.vector_candidates,
            lexical_candidates=breadth * self.lexical_candidates,
            leading_candidates=breadth * self.leading_candidates,
            link_candidates=breadth * self.link_candidates,
            temporal_candidates=breadth * self.temporal_candidates,
            several_vector_candidates=breadth * self.several_vector_candidates,
        )


def breadth_for(k: int) -> int:
    """Returns the factor by which a search for the best `k` multiplies its candidates."""
    return min(BROADEST, max(1, -(-k // MEMORIES_A_BREADTH)))


Floats = NDArray[np.float64]
LEAST_LIKENESS = 0.5
# Share of its score that an exact repetition of a better memory loses.
REPETITION_LOSS = 0.5
MOST_CHOSEN = 20
SKETCHED_TERMS = 128
SAME_TEXT = "same_text_as_newer"


@dataclass(frozen=True)
class Distinct:
    """Kept candidates in the input's order, and the ids of their duplicates."""

    kept: Sequence[Candidate]
    stands_for: dict[UUID, list[UUID]]


def distinct(candidates: Sequence[Candidate], windows: Sequence[Span], dropped: Counter[str]) -> Distinct:
    """Deduplicates by text, speaker, user, namespace and validity; counts in `dropped`.

    Keeps the newest; of those said in a time that the query names, if there are any.
    """

    def preference(candidate: Candidate) -> tuple[bool, tuple[float, UUID]]:
        return any(start <= candidate.timestamp < end for start, end in windows), _age(candidate)

    groups: dict[Hashable, list[Candidate]] = {}
    for each in candidates:
        groups.setdefault((each.text, each.held), []).append(each)
    kept, stands_for = [], {}
    for alike in groups.values():
        newest = alike[0] if len(alike) == 1 else max(alike, key=preference)
        kept.append(newest)
        if len(alike) > 1:
            others = sorted((each for each in alike if each is not newest), key=_age, reverse=True)
            stands_for[newest.memory_id] = [each.memory_id for each in others]
    if len(kept) < len(candidates):
        dropped[SAME_TEXT] = len(candidates) - len(kept)
    return Distinct(kept, stands_for)


def _age(candidate: Candidate) -> tuple[float, UUID]:
    return candidate.timestamp.timestamp(), candidate.memory_id


def likenesses(scores: Floats, term_keys: Sequence[Sequence[int]]) -> Floats:
    """Returns how much each memory, best first, repeats one ranked higher, in [0, 1].

    The Jaccard coefficient of their terms with the most similar such memory, 0 up to LEAST_LIKENESS. Ranks by the
    reduced score; only the first MOST_CHOSEN lower others.
    """
    repeated = np.zeros(len(scores))
    alike = _jaccard(term_keys)
    alike[alike <= LEAST_LIKENESS] = 0.0
    if not alike.any():
        return repeated
    waiting = np.ones(len(scores), dtype=bool)
    for _ in range(min(MOST_CHOSEN, len(scores))):
        best = int(np.argmax(np.where(waiting, left(scores, repeated), -1.0)))
        waiting[best] = False
        np.maximum(repeated, alike[best], out=repeated, where=waiting)
    return repeated


def left(scores: Floats, likeness: Floats) -> Floats:
    return np.asarray(scores * (1.0 - REPETITION_LOSS * likeness))


def _sketch(keys: set[int]) -> Collection[int]:
    return keys if len(keys) <= SKETCHED_TERMS else heapq.nsmallest(SKETCHED_TERMS, keys)


def _jaccard(term_keys: Sequence[Sequence[int]]) -> Floats:
    """Returns pairwise Jaccard coefficients; of long sets from their smallest keys (Broder 1997)."""
    sketches = [_sketch(set(keys)) for keys in term_keys]
    owners = np.repeat(np.arange(len(sketches)), [len(keys) for keys in sketches])
    keys = np.fromiter(chain.from_iterable(sketches), dtype=np.int64, count=len(owners))
    known, columns = np.unique(keys, return_inverse=True)
    held = np.zeros((len(term_keys), len(known)), dtype=np.float32)
    held[owners, columns] = 1.0
    common = (held @ held.T).astype(np.float64)
    sizes = np.diag(common)
    either = sizes[:, None] + sizes[None, :] - common
    alike = np.divide(common, either, out=np.zeros_like(common), where=either > 0)
    np.fill_diagonal(alike, 0.0)
    return alike
