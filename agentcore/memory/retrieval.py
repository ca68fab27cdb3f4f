"""Candidates become a ranking, each score explained. Pure: the caller gives the time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from agentcore.memory.models import Dropped, ScoreTerm
from agentcore.memory.scoring import (
    RetrievalWeights,
    frequency,
    is_assistant,
    is_person,
    positive_cosine,
    recency,
)
from agentcore.memory.text import words

# Of a name's parts; initials and particles name nobody.
SHORTEST_NAME = 3


@dataclass(frozen=True)
class Candidate:
    """What ranking knows of a memory that an arm found.

    `words` is its BM25 score and `session_words` the idf of the query's terms that its session holds, neither
    scaled yet. `text` is the digest of its words with speaker, user and namespace: the same words of another
    person are another statement.
    """

    memory_id: UUID
    timestamp: datetime
    relevance_score: float
    similarity: float | None
    words: float
    session_words: float
    speaker: str | None
    access_count: int
    last_accessed: datetime | None
    text: tuple[bytes, str | None, str | None, str | None]


@dataclass(frozen=True)
class Tie:
    """A link between two memories; it counts in both directions."""

    source_id: UUID
    target_id: UUID
    weight: float


@dataclass(frozen=True)
class MatchScale:
    """What counts as a full match: a BM25 score, and the idf of all of the query's terms together."""

    words: float
    session_words: float


@dataclass(frozen=True)
class Ranked:
    """A memory with its place: the fused score, the cosine alone, and each term's share."""

    memory_id: UUID
    score: float
    similarity: float | None
    terms: Mapping[str, ScoreTerm]


@dataclass(frozen=True)
class Ranking:
    """The best first, and what was left out."""

    ranked: Sequence[Ranked]
    dropped: Sequence[Dropped] = field(default_factory=tuple)


def rank(
    candidates: Sequence[Candidate],
    ties: Sequence[Tie],
    neighbours: Sequence[Tie],
    weights: RetrievalWeights,
    *,
    now: datetime,
    k: int,
    scale: MatchScale,
    query_words: Collection[str] = (),
    min_score: float | None = None,
    with_vectors: bool = True,
) -> Ranking:
    """The `k` best candidates, best first; equal scores stand newest first, then by id.

    `query_words`, as `text.words` gives them, may name whose memories are meant. `min_score` bounds the
    similarity alone: a fused score is not a cosine. Without vectors the other terms share its weight.
    """
    dropped: Counter[str] = Counter()
    relevant = [each for each in candidates if _is_relevant(each, min_score, with_vectors, dropped)]
    unique = _newest_of_equal_texts(relevant, dropped)
    values = {each.memory_id: _values(each, weights, now, scale, query_words) for each in unique}
    shares = _shares(weights, with_vectors)
    _add_matches_nearby(values, unique, ties, neighbours, shares)
    scored = {each.memory_id: _score(values[each.memory_id], shares) for each in unique}
    unique.sort(key=lambda each: (-scored[each.memory_id], -each.timestamp.timestamp(), each.memory_id))
    if len(unique) > k:
        dropped["beyond_k"] = len(unique) - k
    ranked = [
        Ranked(
            each.memory_id, scored[each.memory_id], each.similarity, _terms(values[each.memory_id], shares)
        )
        for each in unique[:k]
    ]
    return Ranking(ranked, [Dropped(reason=reason, count=count) for reason, count in sorted(dropped.items())])


def _is_relevant(
    candidate: Candidate, min_score: float | None, with_vectors: bool, dropped: Counter[str]
) -> bool:
    if min_score is not None and with_vectors and (candidate.similarity or 0.0) < min_score:
        dropped["below_min_score"] += 1
        return False
    return True


def _newest_of_equal_texts(candidates: Sequence[Candidate], dropped: Counter[str]) -> list[Candidate]:
    newest: dict[tuple[bytes, str | None, str | None, str | None], Candidate] = {}
    for each in candidates:
        other = newest.get(each.text)
        if other is not None:
            dropped["same_text_as_newer"] += 1
        if other is None or (each.timestamp, each.memory_id) > (other.timestamp, other.memory_id):
            newest[each.text] = each
    return list(newest.values())


def _values(
    candidate: Candidate,
    weights: RetrievalWeights,
    now: datetime,
    scale: MatchScale,
    query_words: Collection[str],
) -> dict[str, float]:
    said = weights.assistant_share if is_assistant(candidate.speaker) else 1.0
    return {
        "similarity": said * positive_cosine(candidate.similarity),
        "words": said * _share_of(candidate.words, scale.words),
        "session": _share_of(candidate.session_words, scale.session_words),
        "neighbours": 0.0,
        "speaker": _is_named(candidate.speaker, query_words),
        "recency": recency(candidate.timestamp, now, weights.recency_half_life_days),
        "frequency": frequency(
            candidate.access_count, candidate.last_accessed, now, weights.frequency_half_life_days
        ),
        "importance": min(1.0, max(0.0, candidate.relevance_score)),
        "links": 0.0,
    }


def _share_of(value: float, full: float) -> float:
    return min(1.0, value / full) if full > 0 else 0.0


def _is_named(speaker: str | None, query_words: Collection[str]) -> float:
    """1 where the query names the person who speaks, by any part of the name."""
    if speaker is None or not is_person(speaker):
        return 0.0
    return float(any(len(part) >= SHORTEST_NAME and part in query_words for part in words(speaker)))


def _shares(weights: RetrievalWeights, with_vectors: bool) -> dict[str, float]:
    raw = {
        "similarity": weights.similarity if with_vectors else 0.0,
        "words": weights.words,
        "session": weights.session,
        "neighbours": weights.neighbours,
        "speaker": weights.speaker,
        "recency": weights.recency,
        "frequency": weights.frequency,
        "importance": weights.importance,
        "links": weights.links,
    }
    total = sum(raw.values())
    return {name: weight / total for name, weight in raw.items()}


def _add_matches_nearby(
    values: dict[UUID, dict[str, float]],
    candidates: Sequence[Candidate],
    ties: Sequence[Tie],
    neighbours: Sequence[Tie],
    shares: Mapping[str, float],
) -> None:
    """A memory shares in the best match of what it is tied to, and of what people said right beside it.

    People answer each other; in a user's talk with an assistant the same was measured to mislead.
    """
    match_share = shares["similarity"] + shares["words"]
    matches = {
        memory_id: (shares["similarity"] * value["similarity"] + shares["words"] * value["words"])
        / match_share
        for memory_id, value in values.items()
    }
    people = {each.memory_id for each in candidates if is_person(each.speaker)}
    spoken = [tie for tie in neighbours if tie.source_id in people and tie.target_id in people]
    for term, pairs in (("links", ties), ("neighbours", spoken)):
        for tie in pairs:
            if tie.source_id in values and tie.target_id in values:
                for here, there in ((tie.source_id, tie.target_id), (tie.target_id, tie.source_id)):
                    values[here][term] = max(values[here][term], tie.weight * matches[there])


def _score(values: Mapping[str, float], shares: Mapping[str, float]) -> float:
    return min(1.0, max(0.0, sum(value * shares[name] for name, value in values.items())))


def _terms(values: Mapping[str, float], shares: Mapping[str, float]) -> dict[str, ScoreTerm]:
    return {
        name: ScoreTerm(value=value, weight=shares[name], contribution=value * shares[name])
        for name, value in values.items()
    }
