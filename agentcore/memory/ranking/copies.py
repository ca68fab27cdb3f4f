"""Drops duplicates of a newer memory and lowers the rank of near duplicates of a better one. Pure.

Near duplicates by maximal marginal relevance (Carbonell & Goldstein 1998) over the share of common terms.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from dataclasses import dataclass
from itertools import chain
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.ranking.candidates import Candidate, Span

Floats = NDArray[np.float64]
LEAST_LIKENESS = 0.5
# Share of its score that an exact repetition of a better memory loses.
REPETITION_LOSS = 0.5
MOST_CHOSEN = 20
SKETCHED_TERMS = 128
SAME_TEXT = "same_text_as_newer"

StandsFor = dict[UUID, list[Candidate]]


@dataclass(frozen=True)
class Distinct:
    """Kept candidates in the input's order, and the ids of each one's dropped duplicates, newest first."""

    kept: Sequence[Candidate]
    stands_for: dict[UUID, list[UUID]]


def distinct(candidates: Sequence[Candidate], windows: Sequence[Span], dropped: Counter[str]) -> Distinct:
    """Deduplicates by text, speaker, user, namespace and validity; counts in `dropped`.

    Keeps the newest; if the query names a time, the newest said in that time.
    """
    stands_for: StandsFor = {}
    kept = _newest(candidates, windows, stands_for)
    if len(kept) < len(candidates):
        dropped[SAME_TEXT] = len(candidates) - len(kept)
    return Distinct(
        kept,
        {
            memory_id: [each.memory_id for each in sorted(others, key=_age, reverse=True)]
            for memory_id, others in stands_for.items()
        },
    )


def _age(candidate: Candidate) -> tuple[float, UUID]:
    return candidate.timestamp.timestamp(), candidate.memory_id


def _newest(candidates: Sequence[Candidate], windows: Sequence[Span], stands_for: StandsFor) -> list[Candidate]:
    keys = [(each.text, each.held) for each in candidates]
    if len(set(keys)) == len(keys):
        return list(candidates)
    staying: dict[Hashable, Candidate] = {}
    for alike, each in zip(keys, candidates, strict=True):
        other = staying.setdefault(alike, each)
        if other is each:
            continue
        stays, goes = (each, other) if _before(each, other, windows) else (other, each)
        staying[alike] = stays
        stands_for.setdefault(stays.memory_id, []).extend((goes, *stands_for.pop(goes.memory_id, ())))
    return list(staying.values())


def _before(one: Candidate, other: Candidate, windows: Sequence[Span]) -> bool:
    if not windows:
        return _age(one) > _age(other)
    return (_said_in(one, windows), _age(one)) > (_said_in(other, windows), _age(other))


def _said_in(candidate: Candidate, windows: Sequence[Span]) -> bool:
    return any(start <= candidate.timestamp < end for start, end in windows)


def likenesses(scores: Floats, term_keys: Sequence[Sequence[int]]) -> Floats:
    """Returns how much each memory, best first, repeats one ranked higher, in [0, 1].

    The Jaccard coefficient of their distinct terms with the most similar such memory, 0 up to LEAST_LIKENESS.
    Ranks by the reduced score; only the first MOST_CHOSEN lower others.
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
    """Returns the scores reduced by repetition."""
    return np.asarray(scores * (1.0 - REPETITION_LOSS * likeness))


def _sketch(keys: set[int]) -> Collection[int]:
    return keys if len(keys) <= SKETCHED_TERMS else heapq.nsmallest(SKETCHED_TERMS, keys)


def _jaccard(term_keys: Sequence[Sequence[int]]) -> Floats:
    """Returns pairwise Jaccard coefficients; of long sets from their smallest keys (Broder 1997)."""
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
