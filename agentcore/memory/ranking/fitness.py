"""Whether anything found fits what was asked: a calibrated estimate, and what is too far below the best."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Signals:
    """What shows whether any candidate answers.

    `excess`: by how much the best cosine exceeds its memory's cosine with unrelated prompts, and
    `generality`: how near the query is to such a prompt, both as in `OffTopicPrompts`. `words`: the best BM25
    score as a share of that of a text made of the query alone, in [0, 1].
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
        """How likely it is that anything found answers, in [0, 1]."""
        return logistic(
            self.bias
            + self.excess * signals.excess
            + self.generality * signals.generality
            + self.words * signals.words
        )


FIT = FitModel()
# Of so few memories all may answer.
FEWEST = 12


def logistic(value: float) -> float:
    """1 / (1 + exp(-value)), for any value."""
    return 1 / (1 + math.exp(-value)) if value >= 0 else math.exp(value) / (1 + math.exp(value))


@dataclass(frozen=True)
class CutOffs:
    """When a search is silent, and which of its findings are too far below the best.

    Nothing is given where the probability that anything answers is below `min_fit`. Of the rest each needs
    `least_share` of the best score and `least_rise` of the way up to it from the store's typical score, and
    none stands after a fall of more than `widest_gap` from one to the next. 0, 0, 0 and 1 leave out nothing.
    All but `min_fit` holds only from `from_fit` on, where the query surely finds by itself what it needs.
    Below `full_fit` a context gives what was found a part of its room only.
    """

    min_fit: float = 0.0
    least_share: float = 0.0
    least_rise: float = 0.0
    widest_gap: float = 1.0
    full_fit: float = 0.0
    from_fit: float = 0.0

    def room(self, fit: float | None) -> float:
        """The share of a context's room for what was found, by the probability that it answers."""
        return 1.0 if fit is None or fit >= self.full_fit else fit / self.full_fit

    def kept(self, scores: Sequence[float], memory_count: int = 0) -> int:
        """How many of the scores, best first, stay, of a store of so many memories; the best always does."""
        least = self._least(scores, memory_count)
        for place in range(1, len(scores)):
            if scores[place] < least or scores[place - 1] - scores[place] > self.widest_gap:
                return place
        return len(scores)

    def _least(self, scores: Sequence[float], memory_count: int) -> float:
        if not scores:
            return 0.0
        share = self.least_share * scores[0]
        foot = typical(scores, memory_count) if self.least_rise else 0.0
        return max(share, foot + self.least_rise * (scores[0] - foot))


def typical(scores: Sequence[float], memory_count: int) -> float:
    """What half of a store's memories do not exceed, of these scores, best first.

    Nothing where fewer than half were found at all, or the store is too small to tell.
    """
    place = max(FEWEST, memory_count // 2)
    return scores[place] if place < min(len(scores), memory_count) else 0.0
