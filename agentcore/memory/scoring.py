"""The arithmetic of ranking: decay, frequency, weights. Pure; every value is in [0, 1]."""

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
# Typical standard deviation of a query's cosines with the local model, and the pseudo-count of this prior.
USUAL_SPREAD, USUAL_ONES = 0.12, 10


@dataclass(frozen=True)
class RetrievalWeights:
    """Weights of the ranking terms, normalized over the terms that apply to a search.

    `assistant_share`: factor for matches of an assistant's text, unless the query asks for it. `after_question` to
    `before_statement`: share of an adjacent turn's match, by the order of the two.
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
    """Returns 2 ** (-age / half-life); a future time counts as now."""
    return math.exp2(-max(0.0, age_seconds) / (half_life_days * DAY_SECONDS))


def recency(moment: datetime, now: datetime, half_life_days: float) -> float:
    return half_life_decay((now - moment).total_seconds(), half_life_days)


def frequency(access_count: int, last_accessed: datetime | None, now: datetime, half_life_days: float) -> float:
    """Returns log(1 + accesses), scaled to 1 at 100, decaying since the last one."""
    if access_count <= 0 or last_accessed is None:
        return 0.0
    often = min(1.0, math.log1p(access_count) / math.log1p(FREQUENT_ACCESSES))
    return often * recency(last_accessed, now, half_life_days)


def remembered(last_used: datetime, access_count: int, now: datetime) -> float:
    """Returns the exponent of the retention curve R = exp(-t / S), which orders as R does without underflow.

    t: days since the last use. S: stability in days, 1 plus 1 per use, as in MemoryBank (Zhong et al., arXiv
    2305.10250, section 2.3).
    """
    days = max(0.0, (now - last_used).total_seconds()) / DAY_SECONDS
    return -days / (1 + max(0, access_count))


def half_life_decays(ages_seconds: Floats, half_life_days: float) -> Floats:
    """Returns `half_life_decay` of each age; 0 for an infinite one."""
    return np.asarray(np.exp2(-np.maximum(0.0, ages_seconds) / (half_life_days * DAY_SECONDS)))


def frequencies(access_counts: Floats, ages_seconds: Floats, half_life_days: float) -> Floats:
    """Returns `frequency` of each count, by the seconds since its last access; infinite without one."""
    often = np.log1p(np.maximum(0.0, access_counts)) / math.log1p(FREQUENT_ACCESSES)
    return np.asarray(np.minimum(1.0, often) * half_life_decays(ages_seconds, half_life_days))


def shares_of(values: Floats, full: float) -> Floats:
    """Returns each value as a share of `full`, clipped to [0, 1]; 0 if `full` is 0."""
    return np.clip(values / full, 0.0, 1.0) if full > 0 else np.zeros_like(values)


def spread_as_usual(cosines: Floats) -> Floats:
    """Returns the cosines in [0, 1], rescaled around their mean to the usual spread; NaN (missing) becomes 0.

    The mean is kept, so dissimilar candidates do not become similar.
    """
    known = cosines[~np.isnan(cosines)]
    if not len(known):
        return np.zeros_like(cosines)
    variance = (len(known) * known.var() + USUAL_ONES * USUAL_SPREAD**2) / (len(known) + USUAL_ONES)
    moved = known.mean() + (cosines - known.mean()) * USUAL_SPREAD / math.sqrt(variance)
    return np.asarray(np.clip(np.nan_to_num(moved), 0.0, 1.0))


@lru_cache(maxsize=4_096)
def is_assistant(speaker: str | None) -> bool:
    return speaker is not None and speaker.casefold() in ASSISTANTS


@lru_cache(maxsize=4_096)
def is_person(speaker: str | None) -> bool:
    """Whether the speaker is a person, not a role in a chat with an assistant."""
    return speaker is not None and speaker.casefold() not in ASSISTANTS | USERS


def retention(relevance_score: float, accesses: float, freshness: float) -> float:
    """Returns how much a memory is worth keeping, 0 to 1.

    The weights are from the evolving-memory research note for seed 001 (SEEDS, A16).
    """
    return 0.4 * relevance_score + 0.3 * freshness + 0.3 * accesses


# Verdict -> (target, share of the distance). Repeated verdicts have a diminishing effect.
FEEDBACK = {"helpful": (1.0, 0.1), "unhelpful": (0.0, 0.1), "wrong": (0.0, 0.5)}


def after_feedback(relevance_score: float, verdict: str) -> float:
    """Returns the relevance score after one verdict: r + a (t - r), with t and a from `FEEDBACK`."""
    towards, share = FEEDBACK[verdict]
    return relevance_score + share * (towards - relevance_score)
