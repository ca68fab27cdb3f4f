"""Of memories that say nearly the same, the best comes first and the others step back. Pure.

A log of a hundred like entries would else fill every place. Maximal marginal relevance (Carbonell & Goldstein
1998, "The use of MMR, diversity-based reranking"), with the share of common terms as the likeness.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
LEAST_LIKENESS = 0.5
# What a memory that repeats a better one word for word loses of its score.
LOSS = 0.5
MOST_CHOSEN = 20
SKETCHED_TERMS = 128


def likenesses(scores: Floats, term_keys: Sequence[Sequence[int]]) -> Floats:
    """How much each of these memories, best first, repeats one that takes a better place, in [0, 1].

    The Jaccard coefficient of their different terms with the likest such memory, 0 up to LEAST_LIKENESS.
    Each takes its place by what is left of its score; only the first MOST_CHOSEN push others back.
    """
    repeated = np.zeros(len(scores))
    alike = _jaccard(term_keys)
    alike[alike <= LEAST_LIKENESS] = 0.0
    if not alike.any():
        return repeated
    waiting = np.ones(len(scores), dtype=bool)
    for _ in range(min(MOST_CHOSEN, len(scores))):
        best = int(np.argmax(np.where(waiting, left(scores, repeated), -1.0)))
        waiting[best] = False
        np.maximum(repeated, alike[best], out=repeated, where=waiting)
    return repeated


def left(scores: Floats, likeness: Floats) -> Floats:
    """What is left of the scores."""
    return np.asarray(scores * (1.0 - LOSS * likeness))


def _sketch(keys: set[int]) -> Collection[int]:
    return keys if len(keys) <= SKETCHED_TERMS else heapq.nsmallest(SKETCHED_TERMS, keys)


def _jaccard(term_keys: Sequence[Sequence[int]]) -> Floats:
    """The likeness of each two sets of terms, a row and a column for each; 0 with itself.

    Of long memories only the smallest keys are compared, which are as good as drawn by lot: keys are hashes
    (Broder 1997, "On the resemblance and containment of documents").
    """
    sketches = [_sketch(set(keys)) for keys in term_keys]
    owners = np.repeat(np.arange(len(sketches)), [len(keys) for keys in sketches])
    keys = np.fromiter(chain.from_iterable(sketches), dtype=np.int64, count=len(owners))
    known, columns = np.unique(keys, return_inverse=True)
    held = np.zeros((len(term_keys), len(known)), dtype=np.float32)
    held[owners, columns] = 1.0
    common = (held @ held.T).astype(np.float64)
    sizes = np.diag(common)
    either = sizes[:, None] + sizes[None, :] - common
    alike = np.divide(common, either, out=np.zeros_like(common), where=either > 0)
    np.fill_diagonal(alike, 0.0)
    return alike
