"""Drops copies of a newer memory. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from uuid import UUID

from agentcore.memory.ranking.candidates import Candidate, Span

SAME_TEXT = "same_text_as_newer"

StandsFor = dict[UUID, list[Candidate]]


@dataclass(frozen=True)
class Distinct:
    """What is left, in the order given, and for which memories each of them stands, newest first."""

    kept: Sequence[Candidate]
    stands_for: dict[UUID, list[UUID]]


def distinct(candidates: Sequence[Candidate], windows: Sequence[Span], dropped: Counter[str]) -> Distinct:
    """Keeps one of those with equal text, speaker, user, namespace and validity; counts in `dropped`.

    The newest stays; where the query names a time, the newest that was said then.
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


def _newest(
    candidates: Sequence[Candidate], windows: Sequence[Span], stands_for: StandsFor
) -> list[Candidate]:
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
