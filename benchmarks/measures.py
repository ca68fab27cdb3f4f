"""Retrieval measures of one ranking, their means, and bootstrap intervals. Pure.

A repeated id counts at its first rank only. Precision divides by k, also with fewer results. nDCG has binary
gain and a discount of log2 (Järvelin & Kekäläinen 2002, "Cumulated gain-based evaluation of IR techniques").
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping, Sequence

Measures = Mapping[str, float]


def gains(ranked: Sequence[str], relevant: Collection[str], k: int) -> list[bool]:
    """Returns, for each of the top `k` ranks, whether a relevant id occurs there for the first time."""
    wanted, found = set(relevant), []
    if not wanted:
        raise ValueError("nothing is relevant: this question has no recall")
    for each in ranked[:k]:
        found.append(each in wanted)
        wanted.discard(each)
    return found


def recall(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Returns the share of relevant ids in the top `k`."""
    return sum(gains(ranked, relevant, k)) / len(set(relevant))


def hit(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Returns 1 if any relevant id is in the top `k`."""
    return float(any(gains(ranked, relevant, k)))


def precision(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Returns the share of the top `k` ranks with a relevant id."""
    return sum(gains(ranked, relevant, k)) / k


def best_precision(relevant: Collection[str], k: int) -> float:
    """Returns the maximum precision that the labels allow."""
    return min(k, len(set(relevant))) / k


def reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    """Returns 1 over the rank of the first relevant id, or 0 without one."""
    places = gains(ranked, relevant, len(ranked))
    return next((1 / place for place, gain in enumerate(places, 1) if gain), 0.0)


def ndcg(ranked: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Returns the discounted gain of the top `k` as a share of the maximum."""
    gained = sum(1 / math.log2(place + 1) for place, gain in enumerate(gains(ranked, relevant, k), 1) if gain)
    return gained / sum(1 / math.log2(place + 1) for place in range(1, min(len(set(relevant)), k) + 1))


def measures(ranked: Sequence[str], relevant: Collection[str]) -> dict[str, float]:
    """Returns all measures of one question. `P@5 of best`: precision as a share of its maximum."""
    return {
        **{f"R@{k}": recall(ranked, relevant, k) for k in (5, 10, 20)},
        "hit@3": hit(ranked, relevant, 3),
        "P@5": precision(ranked, relevant, 5),
        "P@5 of best": precision(ranked, relevant, 5) / best_precision(relevant, 5),
        "nDCG@10": ndcg(ranked, relevant, 10),
        "MRR": reciprocal_rank(ranked, relevant),
    }


def means(rows: Sequence[Measures]) -> dict[str, float]:
    """Returns the mean of each measure in per cent; all rows have equal measures."""
    return {name: round(100 * sum(row[name] for row in rows) / len(rows), 1) for name in rows[0]}


def interval(values: Sequence[float], rounds: int = 2_000, seed: int = 7) -> tuple[float, float]:
    """Returns the 95 % percentile interval of the mean, in per cent, by resampling questions (Efron 1979)."""
    chance, size = random.Random(seed), len(values)
    drawn = sorted(sum(chance.choices(values, k=size)) / size for _ in range(rounds))
    return round(100 * drawn[int(0.025 * rounds)], 1), round(100 * drawn[int(0.975 * rounds) - 1], 1)


def paired_interval(first: Sequence[float], second: Sequence[float]) -> tuple[float, float]:
    """Returns the interval of the mean of `second - first` over the same questions."""
    return interval([after - before for before, after in zip(first, second, strict=True)])
