"""Of memories that say nearly the same, the best comes first and the others step back. Pure.

A log of a hundred like entries would else fill every place. Maximal marginal relevance (Carbonell & Goldstein
1998, "The use of MMR, diversity-based reranking"), with the share of common terms as the likeness.
"""

from __future__ import annotations

from collections.abc import Sequence

LEAST_LIKENESS = 0.5
# What a memory that repeats a better one word for word loses of its score.
LOSS = 0.5
MOST_CHOSEN = 20


def likenesses(scores: Sequence[float], term_keys: Sequence[Sequence[int]]) -> list[float]:
    """How much each of these memories, best first, repeats one that takes a better place, in [0, 1].

    The Jaccard coefficient of their different terms with the likest such memory, 0 below LEAST_LIKENESS.
    Each takes its place by what is left of its score; only the first MOST_CHOSEN push others back.
    """
    sets = _bit_sets(term_keys)
    repeated = [0.0] * len(scores)
    waiting = list(range(len(scores)))
    for _ in range(min(MOST_CHOSEN, len(scores))):
        best = max(waiting, key=lambda place: (left(scores[place], repeated[place]), -place))
        waiting.remove(best)
        for place in waiting:
            alike = _jaccard(sets[best], sets[place])
            if alike > max(LEAST_LIKENESS, repeated[place]):
                repeated[place] = alike
    return repeated


def left(score: float, likeness: float) -> float:
    """What is left of a score."""
    return score * (1.0 - LOSS * likeness)


def _bit_sets(term_keys: Sequence[Sequence[int]]) -> list[int]:
    """Each set of terms as the bits of one number: their common terms are then counted at once."""
    bits: dict[int, int] = {}
    return [sum(1 << bits.setdefault(key, len(bits)) for key in set(keys)) for keys in term_keys]


def _jaccard(one: int, other: int) -> float:
    either = (one | other).bit_count()
    return (one & other).bit_count() / either if either else 0.0
