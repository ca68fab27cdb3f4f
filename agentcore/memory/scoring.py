"""The arithmetic of ranking: decay, frequency, weights. Pure; every value lies in [0, 1]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
DAY_SECONDS = 86_400.0
FREQUENT_ACCESSES = 100
ASSISTANTS = frozenset({"assistant", "ai", "bot", "model"})
USERS = frozenset({"user", "human"})
# The standard deviation of the cosines of a query's candidates, as it mostly is with the local model.
USUAL_SPREAD = 0.12
# A few cosines tell little of how widely they lie: it is as if so many more lay as widely as mostly.
USUAL_ONES = 10


@dataclass(frozen=True)
class RetrievalWeights:
    """The weights of the terms, scaled to sum to one over the terms that a search has.

    `assistant_share`: the match of an assistant's words counts so much. `after_question` to
    `before_statement`: the share of an adjacent turn's match that a person's turn gets, by their order.
    """

    similarity: float = 0.26
    words: float = 0.08
    session: float = 0.13
    neighbours: float = 0.13
    speaker: float = 0.09
    time: float = 0.17
    recency: float = 0.03
    frequency: float = 0.01
    importance: float = 0.02
    links: float = 0.01
    assistant_share: float = 0.6
    after_question: float = 1.0
    after_statement: float = 0.45
    before_answer: float = 0.3
    before_statement: float = 0.55
    recency_half_life_days: float = 30.0
    frequency_half_life_days: float = 30.0


def half_life_decay(age_seconds: float, half_life_days: float) -> float:
    """1 now, 0.5 after one half-life, towards 0: 2 ** (-age / half-life). A future time counts as now."""
    return math.exp2(-max(0.0, age_seconds) / (half_life_days * DAY_SECONDS))


def recency(moment: datetime, now: datetime, half_life_days: float) -> float:
    """How recent a moment is, by exponential decay."""
    return half_life_decay((now - moment).total_seconds(), half_life_days)


def frequency(
    access_count: int, last_accessed: datetime | None, now: datetime, half_life_days: float
) -> float:
    """log(1 + accesses), full at 100, fading with the time since the last access."""
    if access_count <= 0 or last_accessed is None:
        return 0.0
    often = min(1.0, math.log1p(access_count) / math.log1p(FREQUENT_ACCESSES))
    return often * recency(last_accessed, now, half_life_days)


def remembered(last_used: datetime, access_count: int, now: datetime) -> float:
    """The exponent of the retention curve R = exp(-t / S), 0 just after use and falling without end.

    t are the days since the last use, S the stability in days: 1, and 1 more with each use, as in MemoryBank
    (Zhong et al., arXiv 2305.10250, section 2.3, after Ebbinghaus 1885). The exponent orders as R does, and
    does not end at 0 for what is old.
    """
    days = max(0.0, (now - last_used).total_seconds()) / DAY_SECONDS
    return -days / (1 + max(0, access_count))


def half_life_decays(ages_seconds: Floats, half_life_days: float) -> Floats:
    """`half_life_decay` of each age; an infinite one gives 0."""
    return np.asarray(np.exp2(-np.maximum(0.0, ages_seconds) / (half_life_days * DAY_SECONDS)))


def frequencies(access_counts: Floats, ages_seconds: Floats, half_life_days: float) -> Floats:
    """`frequency` of each count, by the time since its last access; infinite where there was none."""
    often = np.log1p(np.maximum(0.0, access_counts)) / math.log1p(FREQUENT_ACCESSES)
    return np.asarray(np.minimum(1.0, often) * half_life_decays(ages_seconds, half_life_days))


def shares_of(values: Floats, full: float) -> Floats:
    """Each value as a share of what is full, in [0, 1]; nothing where nothing is full."""
    return np.clip(values / full, 0.0, 1.0) if full > 0 else np.zeros_like(values)


def spread_as_usual(cosines: Floats) -> Floats:
    """The cosines in [0, 1], moved from their mean or towards it so far that they lie as widely as mostly.

    Their mean stays, so that where nothing is alike nothing comes to look alike. A missing one (NaN) gives 0.
    """
    known = cosines[~np.isnan(cosines)]
    if not len(known):
        return np.zeros_like(cosines)
    variance = (len(known) * known.var() + USUAL_ONES * USUAL_SPREAD**2) / (len(known) + USUAL_ONES)
    moved = known.mean() + (cosines - known.mean()) * USUAL_SPREAD / math.sqrt(variance)
    return np.asarray(np.clip(np.nan_to_num(moved), 0.0, 1.0))


@lru_cache(maxsize=4_096)
def is_assistant(speaker: str | None) -> bool:
    """Whether the words are an assistant's: it repeats and elaborates what its user said."""
    return speaker is not None and speaker.casefold() in ASSISTANTS


@lru_cache(maxsize=4_096)
def is_person(speaker: str | None) -> bool:
    """Whether a named person speaks, rather than one side of a talk with an assistant."""
    return speaker is not None and speaker.casefold() not in ASSISTANTS | USERS


def retention(relevance_score: float, accesses: float, freshness: float) -> float:
    """What a memory is worth keeping, 0 to 1: 0.4 importance + 0.3 recency + 0.3 frequency.

    The weights are those of the evolving-memory research note behind seed 001 (SEEDS, A16).
    """
    return 0.4 * relevance_score + 0.3 * freshness + 0.3 * accesses


# Verdict -> (towards, which share of the way). An exponential moving average: it stays within 0 and 1, and a
# verdict counts the less the more of its kind there were.
FEEDBACK = {"helpful": (1.0, 0.1), "unhelpful": (0.0, 0.1), "wrong": (0.0, 0.5)}


def after_feedback(relevance_score: float, verdict: str) -> float:
    """A memory's relevance score after one verdict: r + a (t - r), with t and a of `FEEDBACK`."""
    towards, share = FEEDBACK[verdict]
    return relevance_score + share * (towards - relevance_score)
