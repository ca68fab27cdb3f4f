"""Input of the ranking: candidates, links and the query; number of candidates. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from agentcore.memory.scoring import is_person

# Requested memories per breadth: a search for more multiplies its candidates.
MEMORIES_A_BREADTH = 50
BROADEST = 8
Span = tuple[datetime, datetime]
"""A half-open span of time."""


@dataclass(frozen=True)
class Candidate:
    """A memory that a retriever found, with the features for ranking.

    `words`: its BM25 score, not scaled. `text`: the digest of its words with speaker, user and namespace; the
    same words of another person are another statement. `asks`: it ends with a question. `is_exchange`: it
    contains a request and its response. `event`: the time it mentions. `term_keys`: its terms as digests.
    `is_summary`: it summarizes others, to which it is linked. `held`: its validity, if it is superseded and
    the query is historical.
    `session_match`: the share of the query's terms, by their weights in BM25, that the candidates of its
    session contain together, if people talk there.
    `passage`: the offsets of a later passage, if that is nearer to the query than the memory's own vector.
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
        """Returns whether it was said in that span, or is superseded and was valid in it."""
        start, end = window
        held = self.held is not None and self.held[0] < end and self.held[1] > start
        return held or start <= self.timestamp < end


@dataclass(frozen=True)
class Tie:
    """A link between two memories; it counts in both directions.

    `by_caller`: its relation is not reserved for the service.
    """

    source_id: UUID
    target_id: UUID
    weight: float
    by_caller: bool = False

    def scaled(self, factor: float) -> Tie:
        """Returns the link with its weight times this factor."""
        return replace(self, weight=self.weight * factor)


@dataclass(frozen=True)
class MatchScale:
    """The BM25 score that counts as a full match, and that of the query itself as a text."""

    words: float
    query_words: float


@dataclass(frozen=True)
class Question:
    """The query, as the ranking uses it; `now`: the time it is asked at.

    `words`: of the query, which may name a speaker. `windows`: the times that it names; `seeks_time`: it asks
    when something was.
    `min_score` applies to the similarity only: a fused score is not a cosine. Without vectors the other terms
    share its weight. `distinct`: deduplicate. `memory_count`: of the agent, 0 if unknown. `own`: memories
    that are the query itself, stored before it was asked; `own_text`: the digest of its words, to find such
    turns. `text`: the digest of the query's words; a stored question with these words repeats no memory.
    `excess` of the nearest and `generality` as in `OffTopicPrompts`. `changes` lead from a memory to one that
    it makes outdated, with the probability; none if the query is probably historical. `change_factor`: the
    probability that the query is not historical.
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
    changes: Sequence[Tie] = ()
    change_factor: float = 1.0
    excess: Mapping[UUID, float] | None = None
    generality: float = 0.0


@dataclass(frozen=True)
class SearchLimits:
    """Numbers of candidates per retriever, and of rows scanned."""

    exact_search_limit: int = 5_000
    vector_candidates: int = 60
    lexical_candidates: int = 90
    leading_candidates: int = 20
    link_candidates: int = 20
    temporal_candidates: int = 40
    temporal_rows: int = 1_000
    temporal_rows_read: int = 10_000
    several_vector_candidates: int = 150

    def times(self, breadth: int) -> SearchLimits:
        """Returns limits with the candidates of every retriever multiplied."""
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
