"""Ranks candidates and explains each score. Pure."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.language.text import words
from agentcore.memory.models import Dropped, ScoreTerm
from agentcore.memory.ranking.calibration import FIT, CutOffs, Signals
from agentcore.memory.ranking.candidates import (
    REPETITION_LOSS,
    Candidate,
    CandidateLink,
    Distinct,
    Question,
    Span,
    distinct,
    left,
    likenesses,
)
from agentcore.memory.scoring import (
    RetrievalWeights,
    frequencies,
    half_life_decays,
    is_assistant,
    is_person,
    shares_of,
    spread_as_usual,
)

# Excludes initials and particles of a name.
SHORTEST_NAME = 3
# The time match of a memory if only its message date is in the window.
MESSAGE_DATE_MATCH = 0.5
TERMS = (
    "similarity",
    "words",
    "session",
    "neighbours",
    "speaker",
    "time",
    "recency",
    "frequency",
    "importance",
    "links",
)
# The number of top candidates compared for repetition.
REPETITION_DEPTH = 60
# A user message this close to now with the text of the query is the query itself.
JUST_NOW_SECONDS = 300
KEEP_ALL = CutOffs()
NO_EXCESS = 0.0
# Top hits that freshness compares; minimum probability to report a memory as outdated.
FRESHNESS_DEPTH, MIN_OUTDATED_PROBABILITY = 12, 0.4
FRESHNESS_GAIN, FRESHNESS_LOSS, LIFT = 0.8, 0.5, 0.6
# Maximum distance of a follow-up message; its similarity is at least this share of the sum of both.
FOLLOW_UP_SECONDS, FOLLOW_UP = 7_200, 0.55
# Minimum weight of a caller's link that moves a memory up (`recall/reranking.py`).
STRONG_LINK = 0.9
_COLUMN = {name: number for number, name in enumerate(TERMS)}

Values = NDArray[np.float64]
Places = NDArray[np.int64]


class Change(NamedTuple):
    """The position of a candidate that probably makes another outdated, that of the other, and a weight in [0, 1]."""

    new: int
    old: int
    weight: float


@dataclass(frozen=True)
class Ranked:
    """A ranked memory: the fused score, the cosine, and the contribution of each term.

    `stands_for`: deduplicated memories, newest first. `outdated_by`: a newer memory above it that probably makes it
    outdated. `linked_to`: the hit whose link moved it up.
    """

    memory_id: UUID
    score: float
    similarity: float | None
    terms: Mapping[str, ScoreTerm]
    stands_for: Sequence[UUID] = ()
    outdated_by: UUID | None = None
    linked_to: UUID | None = None


@dataclass(frozen=True)
class Ranking:
    """The hits, best first, dropped candidates by reason, and the answerability `fit`, estimated from `signals`.

    `links`: strong links of callers among the candidates; `linkable`: their ends that were cut off.
    """

    ranked: Sequence[Ranked]
    signals: Signals
    fit: float
    dropped: Sequence[Dropped] = field(default_factory=tuple)
    links: Sequence[CandidateLink] = ()
    linkable: Sequence[Ranked] = ()


def rank(
    candidates: Sequence[Candidate],
    links: Sequence[CandidateLink],
    neighbours: Sequence[CandidateLink],
    weights: RetrievalWeights,
    question: Question,
    k: int,
    cut_offs: CutOffs = KEEP_ALL,
) -> Ranking:
    """Links are ordered newest first, then by id."""
    dropped: Counter[str] = Counter()
    others = _without_the_query(candidates, question, dropped)
    similar = _without_summarized(_similar(others, question, dropped), links, dropped)
    deduplicated = distinct(similar, question.windows, dropped) if question.distinct else Distinct(similar, {})
    unique = deduplicated.kept
    named = _named_speakers(unique, question.words)
    shares = _normalized_weights(unique, weights, question, names_speaker=bool(named))
    if not unique:
        nothing = Signals(NO_EXCESS, 0.0, 0.0)
        return Ranking([], nothing, FIT.probability(nothing), _dropped_counts(dropped))
    places = {each.memory_id: place for place, each in enumerate(unique)}
    moments = [each.timestamp.timestamp() for each in unique]
    values = _values(unique, moments, weights, question, follow_up_similarities(unique, places, neighbours), named)
    matches = _matches(values, shares)
    _add_links(values, places, matches, links)
    _add_neighbours(values, unique, places, matches, neighbours, weights)
    if question.seeks_time and not question.windows:
        values[:, _COLUMN["time"]] *= matches
    fused = np.clip(values @ shares, 0.0, 1.0)
    newest = _newest_first(unique, moments)
    repeated = _repeated(unique, fused, _in_order(newest, fused)[:REPETITION_DEPTH], question.text)
    after_repetition = left(fused, repeated)
    changes = weighed_changes(question.changes, places, question.change_factor)
    relevance = lifted(after_repetition, changes, _in_order(newest, after_repetition)[:FRESHNESS_DEPTH])
    fresh = freshness(relevance, changes, _in_order(newest, relevance)[:FRESHNESS_DEPTH])
    scores = np.clip(relevance + fresh, 0.0, 1.0)
    order = _in_order(newest, scores)
    outdated = _outdated(unique, order, question.changes)
    signals = _signals(others, question)
    fit = FIT.probability(signals)
    # By relevance: outdated memories are ranked lower and marked, not dropped.
    by_relevance = _in_order(newest, relevance)
    kept = _cut(order, by_relevance, relevance, k, fit, question.memory_count, cut_offs, dropped)
    caller_links, ends = _strong_links(links, places)
    ranked = [
        Ranked(
            unique[place].memory_id,
            float(scores[place]),
            unique[place].similarity,
            _terms(
                values[place],
                shares,
                float(fused[place]),
                float(repeated[place]),
                float(fresh[place] + relevance[place] - after_repetition[place]),
            ),
            deduplicated.stands_for.get(unique[place].memory_id, ()),
            outdated.get(unique[place].memory_id),
        )
        for place in [*kept, *sorted(ends.difference(kept))]
    ]
    return Ranking(ranked[: len(kept)], signals, fit, _dropped_counts(dropped), caller_links, ranked[len(kept) :])


def _strong_links(
    links: Sequence[CandidateLink], places: Mapping[UUID, int]
) -> tuple[Sequence[CandidateLink], set[int]]:
    strong = [link for link in links if link.by_caller and round(link.weight, 3) >= STRONG_LINK]
    return strong, {places[end] for link in strong for end in (link.source_id, link.target_id) if end in places}


def _dropped_counts(dropped: Counter[str]) -> list[Dropped]:
    return [Dropped(reason=reason, count=count) for reason, count in sorted(dropped.items())]


def _kept(
    candidates: Sequence[Candidate], keep: Callable[[Candidate], bool], reason: str, dropped: Counter[str]
) -> Sequence[Candidate]:
    kept = [each for each in candidates if keep(each)]
    if len(kept) < len(candidates):
        dropped[reason] = len(candidates) - len(kept)
    return kept


def _without_the_query(
    candidates: Sequence[Candidate], question: Question, dropped: Counter[str]
) -> Sequence[Candidate]:
    if not question.own and question.own_text is None:
        return candidates
    return _kept(candidates, lambda each: not _is_the_query(each, question), "the_query_itself", dropped)


def _is_the_query(candidate: Candidate, question: Question) -> bool:
    if question.own and candidate.memory_id in question.own:
        return True
    if candidate.text[0] != question.own_text or candidate.speaker is None or is_assistant(candidate.speaker):
        return False
    return abs((question.now - candidate.timestamp).total_seconds()) <= JUST_NOW_SECONDS


def _similar(candidates: Sequence[Candidate], question: Question, dropped: Counter[str]) -> Sequence[Candidate]:
    least = question.min_score
    if least is None or not question.with_vectors:
        return candidates
    return _kept(candidates, lambda each: (each.similarity or 0.0) >= least, "below_min_score", dropped)


def _without_summarized(
    candidates: Sequence[Candidate], links: Sequence[CandidateLink], dropped: Counter[str]
) -> Sequence[Candidate]:
    """Drops summaries of which a source is a candidate."""
    summaries = {each.memory_id for each in candidates if each.is_summary}
    if not summaries:
        return candidates
    there = {each.memory_id for each in candidates}
    repeated = {
        link.source_id
        for link in links
        if link.source_id in summaries and link.target_id in there and not link.by_caller
    }
    return _kept(candidates, lambda each: each.memory_id not in repeated, "summary_of_what_is_found", dropped)


def follow_up_similarities(
    candidates: Sequence[Candidate], places: Mapping[UUID, int], neighbours: Sequence[CandidateLink]
) -> Values:
    """Returns the similarities; raises that of a message whose previous one is similar to the query. NaN: no vector."""
    own = np.array([math.nan if each.similarity is None else each.similarity for each in candidates])
    joint = own.copy()
    for before, after in _adjacent(candidates, places, neighbours):
        first, second = candidates[before], candidates[after]
        late = (second.timestamp - first.timestamp).total_seconds() > FOLLOW_UP_SECONDS
        if not late and first.text[2:] == second.text[2:] and not is_assistant(second.speaker):
            joint[after] = np.fmax(joint[after], FOLLOW_UP * (own[before] + own[after]))
    return joint


def _adjacent(
    candidates: Sequence[Candidate], places: Mapping[UUID, int], neighbours: Sequence[CandidateLink]
) -> Iterator[tuple[int, int]]:
    """Yields pairs of adjacent messages in a session as indexes, the earlier one first."""
    for link in neighbours:
        pair = [places[each] for each in (link.source_id, link.target_id) if each in places]
        if len(pair) == 2:
            before, after = sorted(pair, key=lambda at: (candidates[at].timestamp, candidates[at].memory_id))
            yield before, after


def _values(
    candidates: Sequence[Candidate],
    moments: Sequence[float],
    weights: RetrievalWeights,
    question: Question,
    similarity: Values,
    named: Set[str | None],
) -> Values:
    now, scale = question.now.timestamp(), question.scale
    assistant_share = weights.assistant_share + (1 - weights.assistant_share) * question.about_assistant
    role_factor = np.array([assistant_share if is_assistant(each.speaker) else 1.0 for each in candidates])
    features = np.array([_features(each, now) for each in candidates], dtype=np.float64)
    bm25, session, accesses, idle, importance = features.T
    # Absolute: a future time is as recent as an equally distant past one.
    age = np.abs(now - np.array(moments))
    terms = {
        "similarity": role_factor * spread_as_usual(similarity),
        "words": role_factor * shares_of(bm25, scale.words),
        "session": session,
        "speaker": np.array([float(each.speaker in named) for each in candidates]),
        "recency": half_life_decays(age, weights.recency_half_life_days),
        "frequency": frequencies(accesses, idle, weights.frequency_half_life_days),
        "importance": shares_of(importance, 1.0),
    }
    if question.windows or question.seeks_time:
        terms["time"] = role_factor * np.array([_time_match(each, question) for each in candidates])
    nothing = np.zeros(len(candidates))
    return np.column_stack([terms.get(name, nothing) for name in TERMS])


def _features(candidate: Candidate, now: float) -> tuple[float, ...]:
    last = candidate.last_accessed
    return (
        candidate.words,
        candidate.session_match,
        candidate.access_count,
        math.inf if last is None else now - last.timestamp(),
        candidate.relevance_score,
    )


def _named_speakers(candidates: Sequence[Candidate], query_words: Collection[str]) -> set[str | None]:
    speakers = {each.speaker for each in candidates if each.speaker is not None and is_person(each.speaker)}
    return {
        speaker
        for speaker in speakers
        if any(len(part) >= SHORTEST_NAME and part in query_words for part in words(speaker))
    }


def _time_match(candidate: Candidate, question: Question) -> float:
    """Returns the square root of the share of the candidate's event inside a window.

    So "in the last five years" matches last week less than "on Monday" does.
    """
    event = candidate.event
    if not question.windows:
        return float(question.seeks_time and event is not None)
    said_then = any(candidate.of_then(each) for each in question.windows)
    if event is None:
        return float(said_then)
    share = max(_share_inside(event, each) for each in question.windows)
    return max(math.sqrt(share), MESSAGE_DATE_MATCH * said_then)


def _share_inside(event: Span, window: Span) -> float:
    shared = min(event[1], window[1]) - max(event[0], window[0])
    return max(0.0, shared / (event[1] - event[0]))


def _normalized_weights(
    candidates: Sequence[Candidate], weights: RetrievalWeights, question: Question, *, names_speaker: bool
) -> Values:
    raw = np.array([float(getattr(weights, name)) for name in TERMS])
    if not any(each.is_turn for each in candidates):
        raw[[_COLUMN["session"], _COLUMN["neighbours"]]] = 0.0
    if not names_speaker:
        raw[_COLUMN["speaker"]] = 0.0
    if not question.with_vectors:
        raw[_COLUMN["similarity"]] = 0.0
    if not question.windows and not question.seeks_time:
        raw[_COLUMN["time"]] = 0.0
    return np.asarray(raw / (raw.sum() or 1.0), dtype=np.float64)


def _matches(values: Values, shares: Values) -> Values:
    both = [_COLUMN["similarity"], _COLUMN["words"]]
    total = shares[both].sum()
    return np.asarray(values[:, both] @ shares[both] / total if total > 0 else np.zeros(len(values)))


def _add_links(values: Values, places: Mapping[UUID, int], matches: Values, links: Sequence[CandidateLink]) -> None:
    column = values[:, _COLUMN["links"]]
    for link in links:
        if link.source_id in places and link.target_id in places:
            source, target = places[link.source_id], places[link.target_id]
            column[source] = max(column[source], link.weight * matches[target])
            column[target] = max(column[target], link.weight * matches[source])


def _add_neighbours(
    values: Values,
    candidates: Sequence[Candidate],
    places: Mapping[UUID, int],
    matches: Values,
    neighbours: Sequence[CandidateLink],
    weights: RetrievalWeights,
) -> None:
    """Only between people: with an assistant it lowers quality."""
    column = values[:, _COLUMN["neighbours"]]
    for first, second in _adjacent(candidates, places, neighbours):
        if not (candidates[first].is_turn and candidates[second].is_turn):
            continue
        asked = candidates[first].asks
        after = weights.after_question if asked else weights.after_statement
        before = weights.before_answer if asked else weights.before_statement
        column[second] = max(column[second], after * matches[first])
        column[first] = max(column[first], before * matches[second])


def _signals(candidates: Sequence[Candidate], question: Question) -> Signals:
    known = question.excess or {}
    excess = [known[each.memory_id] for each in candidates if each.memory_id in known]
    bm25 = max(each.words for each in candidates)
    return Signals(
        excess=max(excess, default=NO_EXCESS),
        generality=question.generality,
        words=float(shares_of(np.array(bm25), question.scale.query_words)),
    )


def _cut(
    order: list[int],
    by_relevance: list[int],
    relevance: Values,
    k: int,
    fit: float,
    memory_count: int,
    cut_offs: CutOffs,
    dropped: Counter[str],
) -> list[int]:
    if fit < cut_offs.min_fit:
        dropped["nothing_fits"] = len(order)
        return []
    count = cut_offs.kept([float(relevance[place]) for place in by_relevance], memory_count)
    relevant = {*by_relevance[:count]}
    kept = [place for place in order if place in relevant]
    if len(kept) < len(order):
        dropped["far_below_the_best"] = len(order) - len(kept)
    if len(kept) > k:
        dropped["beyond_k"] = len(kept) - k
    return kept[:k]


def _newest_first(candidates: Sequence[Candidate], moments: Sequence[float]) -> Places:
    keys = [(-moment, each.memory_id) for moment, each in zip(moments, candidates, strict=True)]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__))


def _in_order(newest: Places, scores: Values) -> list[int]:
    in_order: list[int] = newest[np.argsort(-scores[newest], kind="stable")].tolist()
    return in_order


def _repeated(candidates: Sequence[Candidate], scores: Values, top: Sequence[int], asked: bytes | None) -> Values:
    """The overlap of each top candidate with a better one; skips stored copies of the query."""
    repeated = np.zeros(len(candidates))
    others = [at for at in top if not (candidates[at].asks and candidates[at].text[0] == asked)]
    if others:
        repeated[others] = likenesses(scores[others], [candidates[place].term_keys for place in others])
    return repeated


def weighed_changes(links: Sequence[CandidateLink], places: Mapping[UUID, int], factor: float) -> list[Change]:
    """Returns the changes among the candidates, weighted by `factor` and the root of their probability.

    A message that probably changes several candidates more often only repeats their topic: the probability of each is
    multiplied by its share of their sum.
    """
    among = [each for each in links if each.weight > 0 and each.source_id in places and each.target_id in places]
    sums: defaultdict[UUID, float] = defaultdict(float)
    for each in among:
        sums[each.source_id] += each.weight
    return [
        Change(places[each.source_id], places[each.target_id], factor * each.weight / math.sqrt(sums[each.source_id]))
        for each in among
    ]


def freshness(scores: Values, changes: Sequence[Change], best: Sequence[int]) -> Values:
    """Returns score changes for pairs of top hits of which one probably makes the other outdated.

    Shares of the lower score, times the weight of the change. The older one loses FRESHNESS_LOSS, the newer gains
    FRESHNESS_GAIN times the older one's relative score. Per memory the maximum counts.
    """
    gains, losses, looked_at = np.zeros(len(scores)), np.zeros(len(scores)), {*best}
    if not changes:
        return gains
    standings = _relative_scores(scores)
    for new, old, weight in changes:
        if new in looked_at and old in looked_at:
            amount = weight * min(scores[new], scores[old])
            gains[new] = max(gains[new], FRESHNESS_GAIN * standings[old] * amount)
            losses[old] = max(losses[old], FRESHNESS_LOSS * amount)
    return gains - losses


def lifted(scores: Values, changes: Sequence[Change], best: Sequence[int]) -> Values:
    """Raises candidates that make a top hit outdated, which often share no word with the query.

    By LIFT times the score distance, the weight of the change and the older one's relative score.
    """
    higher, looked_at = scores.copy(), {*best}
    if not changes:
        return higher
    standings = _relative_scores(scores)
    for new, old, weight in changes:
        if old in looked_at:
            distance = max(0.0, scores[old] - scores[new])
            share = LIFT * weight * standings[old]
            higher[new] = max(higher[new], scores[new] + share * distance)
    return higher


def _relative_scores(scores: Values) -> Values:
    """Returns each score between the median (0) and the maximum (1): an irrelevant memory's update must not rise."""
    middle, top = float(np.median(scores)), float(scores.max())
    if top <= middle:
        return np.ones(len(scores))
    return np.clip((scores - middle) / (top - middle), 0.0, 1.0)


def _outdated(
    candidates: Sequence[Candidate], order: Sequence[int], changes: Sequence[CandidateLink]
) -> dict[UUID, UUID]:
    likely = [each for each in changes if each.weight >= MIN_OUTDATED_PROBABILITY]
    if not likely:
        return {}
    ranks = {candidates[place].memory_id: rank for rank, place in enumerate(order)}
    last = len(ranks)
    return {
        link.target_id: link.source_id
        for link in sorted(likely, key=lambda each: each.weight)
        if ranks.get(link.source_id, last) < ranks.get(link.target_id, -1)
    }


def _terms(values: Values, shares: Values, score: float, repeated: float, fresh: float) -> dict[str, ScoreTerm]:
    parts = {name: (float(value), float(share)) for name, value, share in zip(TERMS, values, shares, strict=True)}
    if repeated:
        parts["repetition"] = repeated, -REPETITION_LOSS * score
    if fresh:
        parts["freshness"] = fresh, 1.0
    return {
        name: ScoreTerm(value=value, weight=weight, contribution=value * weight)
        for name, (value, weight) in parts.items()
    }
