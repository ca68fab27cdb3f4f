"""Classifies queries that ask for an earlier state, by a linear discriminant over a labelled sample. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Vectors: TypeAlias = NDArray[np.float32]
Labels: TypeAlias = NDArray[np.bool_]
# The weight of the scaled identity in the shrunk covariance (cf. Ledoit & Wolf 2004).
SHRINKAGE = 0.3
# The prior probability that a query is historical.
PRIOR = 0.3
# The minimum cross-validated area under the ROC curve.
MIN_AUC = 0.85


@dataclass(frozen=True)
class HistoricalQueries:
    """A linear discriminant over query vectors, (dimensions,), and its bias."""

    weights: NDArray[np.float64]
    bias: float

    @classmethod
    def of(
        cls, vectors: Vectors, are_historical: Labels, shrinkage: float = SHRINKAGE
    ) -> HistoricalQueries | None:
        """Fits the discriminant to vectors, (n, dimensions), and n labels.

        Returns None if these vectors do not separate the classes in two-fold cross-validation.
        """
        halves = ((vectors[half::2], are_historical[half::2]) for half in (0, 1))
        first, second = (cls._fitted(*half, shrinkage) for half in halves)
        scores = np.empty(len(vectors))
        scores[0::2], scores[1::2] = second.scores(vectors[0::2]), first.scores(vectors[1::2])
        above = scores[are_historical][:, None] > scores[~are_historical][None]
        return cls._fitted(vectors, are_historical, shrinkage) if above.mean() >= MIN_AUC else None

    @classmethod
    def _fitted(cls, vectors: Vectors, are_historical: Labels, shrinkage: float) -> HistoricalQueries:
        """Fisher's discriminant (1936) with a shrunk covariance, solved as n x n by the Woodbury identity."""
        rows = np.asarray(vectors, np.float64)
        means = rows[are_historical].mean(axis=0), rows[~are_historical].mean(axis=0)
        centered = rows - np.where(are_historical[:, None], *means)
        ridge = shrinkage * centered.var(axis=0).mean() + 1e-12
        scaled = centered * math.sqrt((1 - shrinkage) / len(rows))
        mean_difference = means[0] - means[1]
        inner = np.linalg.solve(ridge * np.eye(len(rows)) + scaled @ scaled.T, scaled @ mean_difference)
        weights = (mean_difference - scaled.T @ inner) / ridge
        bias = -weights @ (means[0] + means[1]) / 2 + math.log(PRIOR / (1 - PRIOR))
        return cls(weights, float(bias))

    def scores(self, queries: Vectors) -> NDArray[np.float64]:
        """Returns the log odds, (n,), of queries, (n, dimensions)."""
        return np.asarray(queries @ self.weights + self.bias)

    def probability(self, query: Vectors) -> float:
        """Returns the probability that the query, (dimensions,), is historical."""
        score = float(self.scores(query[None])[0])
        return 1 / (1 + math.exp(-min(max(score, -50.0), 50.0)))
