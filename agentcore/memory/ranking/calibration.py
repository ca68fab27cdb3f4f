"""Estimates whether anything found answers a query, and what kind of query it is. Pure.

Cosines of unrelated texts differ between languages and models. The baseline of a memory is its cosine with unrelated
prompts; the cosine of a query about the memory exceeds it (cf. CSLS, Conneau et al. 2018).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Signals:
    """Features of answerability; `excess` of the best cosine and `generality` as in `OffTopicPrompts`.

    `words`: the best BM25 score as a share of that of the query itself as a text, in [0, 1].
    """

    excess: float
    generality: float
    words: float


@dataclass(frozen=True)
class FitModel:
    """Logistic regression over the signals, learned by `make bench ARGS=learn_fit`; decision 53."""

    bias: float = -5.09
    excess: float = 2.64
    generality: float = -2.16
    words: float = 0.36

    def probability(self, signals: Signals) -> float:
        return logistic(
            self.bias + self.excess * signals.excess + self.generality * signals.generality + self.words * signals.words
        )


FIT = FitModel()
# Below this number, all memories may answer.
FEWEST = 12


def logistic(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


@dataclass(frozen=True)
class CutOffs:
    """Thresholds for abstention, and for hits too far below the best. The defaults drop no hits.

    A search abstains below `min_fit`. Other hits need `least_share` of the best score, and `least_rise` of the way from
    the store's typical score to the best. The ranking ends at a drop of more than `widest_gap`. Below `full_fit`, hits
    get only a part of a context's budget.
    """

    min_fit: float = 0.0
    least_share: float = 0.0
    least_rise: float = 0.0
    widest_gap: float = 1.0
    full_fit: float = 0.0

    def room(self, fit: float | None) -> float:
        return 1.0 if fit is None or fit >= self.full_fit else fit / self.full_fit

    def kept(self, scores: Sequence[float], memory_count: int = 0) -> int:
        """Returns how many of the descending scores to keep, at least one."""
        if not scores:
            return 0
        foot = typical(scores, memory_count) if self.least_rise else 0.0
        least = max(self.least_share * scores[0], foot + self.least_rise * (scores[0] - foot))
        for place in range(1, len(scores)):
            if scores[place] < least or scores[place - 1] - scores[place] > self.widest_gap:
                return place
        return len(scores)


def typical(scores: Sequence[float], memory_count: int) -> float:
    """Returns the score that half of the store's memories do not exceed, of descending scores.

    0 if fewer than half were found, or in a small store.
    """
    place = max(FEWEST, memory_count // 2)
    return scores[place] if place < min(len(scores), memory_count) else 0.0


# The baseline of a memory is the mean cosine of this many nearest prompts.
NEAREST = 30
Vectors: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class OffTopicPrompts:
    """Vectors of the prompts, a unit row each, as queries.

    `spread`: the standard deviation of their cosines; `typical`: the mean cosine of a prompt with its nearest one. Both
    make figures of different embedding models comparable.
    """

    vectors: Vectors
    spread: float
    typical: float

    @classmethod
    def of(cls, vectors: Vectors) -> OffTopicPrompts:
        """Measures NEAREST + 1 rows or more."""
        cosines = vectors @ vectors.T
        between = cosines[~np.eye(len(vectors), dtype=bool)].reshape(len(vectors), -1)
        return cls(vectors, float(between.std()), float(between.max(axis=1).mean()))

    def generality(self, queries: Vectors) -> float:
        """Returns how near the least general query (a row each) is to a prompt, in units of `spread`."""
        return float(((_unit(queries) @ self.vectors.T).max(axis=1).min() - self.typical) / self.spread)

    def excess(self, similarities: NDArray[np.float64], memories: Vectors) -> NDArray[np.float64]:
        """Returns by how much each similarity, (n,), exceeds the baseline of its memory, in units of `spread`."""
        cosines = _unit(memories) @ self.vectors.T
        baselines = np.partition(cosines, -NEAREST, axis=1)[:, -NEAREST:].mean(axis=1)
        return np.asarray((similarities - baselines) / self.spread)


def _unit(rows: Vectors) -> Vectors:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), np.float32)


Labels: TypeAlias = NDArray[np.bool_]
# The weight of the scaled identity in the shrunk covariance (cf. Ledoit & Wolf 2004).
SHRINKAGE = 0.3
# The prior probability of the detected kind.
PRIOR = 0.3
# The minimum cross-validated area under the ROC curve.
MIN_AUC = 0.85


@dataclass(frozen=True)
class QueryDetector:
    """Detects one kind of query: a linear discriminant over query vectors, (dimensions,)."""

    weights: NDArray[np.float64]
    bias: float

    @classmethod
    def of(cls, vectors: Vectors, labels: Labels, shrinkage: float = SHRINKAGE) -> QueryDetector | None:
        """Fits the discriminant to vectors, (n, dimensions), and n labels.

        Returns None if two-fold cross-validation does not separate the classes.
        """
        halves = ((vectors[half::2], labels[half::2]) for half in (0, 1))
        first, second = (cls._fitted(*half, shrinkage) for half in halves)
        scores = np.empty(len(vectors))
        scores[0::2], scores[1::2] = second.scores(vectors[0::2]), first.scores(vectors[1::2])
        above = scores[labels][:, None] > scores[~labels][None]
        return cls._fitted(vectors, labels, shrinkage) if above.mean() >= MIN_AUC else None

    @classmethod
    def _fitted(cls, vectors: Vectors, labels: Labels, shrinkage: float) -> QueryDetector:
        """Fisher's discriminant (1936) with a shrunk covariance, solved as n x n by the Woodbury identity."""
        rows = np.asarray(vectors, np.float64)
        means = rows[labels].mean(axis=0), rows[~labels].mean(axis=0)
        centered = rows - np.where(labels[:, None], *means)
        ridge = shrinkage * centered.var(axis=0).mean() + 1e-12
        scaled = centered * math.sqrt((1 - shrinkage) / len(rows))
        mean_difference = means[0] - means[1]
        inner = np.linalg.solve(ridge * np.eye(len(rows)) + scaled @ scaled.T, scaled @ mean_difference)
        weights = (mean_difference - scaled.T @ inner) / ridge
        bias = -weights @ (means[0] + means[1]) / 2 + math.log(PRIOR / (1 - PRIOR))
        return cls(weights, float(bias))

    def scores(self, queries: Vectors) -> NDArray[np.float64]:
        """Returns the log odds of queries, (n, dimensions)."""
        return np.asarray(queries @ self.weights + self.bias)

    def probability(self, query: Vectors) -> float:
        return logistic(float(self.scores(query[None])[0]))
