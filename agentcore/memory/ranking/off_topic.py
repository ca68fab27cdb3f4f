"""Measures how general a query is, by a sample of prompts that concern no memory. Pure.

Cosines of unrelated texts differ between languages and models. The baseline of a memory is its cosine with
unrelated prompts; the cosine of a query that is about the memory exceeds it (cf. CSLS, Conneau et al. 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

# The baseline of a memory is the mean cosine of its so many nearest prompts.
NEAREST = 30
Vectors: TypeAlias = NDArray[np.float32]


@dataclass(frozen=True)
class OffTopicPrompts:
    """Vectors of the prompts, a unit row each, as queries.

    `spread`: the standard deviation of the cosines between prompts. `typical`: the mean cosine of a prompt
    with its nearest one. Both make the figures of different embedding models comparable.
    """

    vectors: Vectors
    spread: float
    typical: float

    @classmethod
    def of(cls, vectors: Vectors) -> OffTopicPrompts:
        """Measures the sample; NEAREST + 1 rows at least."""
        cosines = vectors @ vectors.T
        between = cosines[~np.eye(len(vectors), dtype=bool)].reshape(len(vectors), -1)
        return cls(vectors, float(between.std()), float(between.max(axis=1).mean()))

    def generality(self, queries: Vectors) -> float:
        """Returns how near the queries (a row each) are to a prompt; the least general one counts.

        In units of `spread`, 0 for a typical prompt.
        """
        return float(((_unit(queries) @ self.vectors.T).max(axis=1).min() - self.typical) / self.spread)

    def excess(self, similarities: NDArray[np.float64], memories: Vectors) -> NDArray[np.float64]:
        """Returns by how much each similarity exceeds the baseline of its memory, in units of `spread`.

        `similarities`: (n,), cosines with the query; `memories`: (n, dimensions).
        """
        cosines = _unit(memories) @ self.vectors.T
        baselines = np.partition(cosines, -NEAREST, axis=1)[:, -NEAREST:].mean(axis=1)
        return np.asarray((similarities - baselines) / self.spread)


def _unit(rows: Vectors) -> Vectors:
    """Returns rows of length 1: vectors of callers may have any length."""
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9), np.float32)
