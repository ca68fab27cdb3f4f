"""Of memories that say the same the newest stays, and stands for the others. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from uuid import UUID

from agentcore.memory.ranking.candidates import Candidate, Span

SAME_TEXT = "same_text_as_newer"
NEARLY_SAME_TEXT = "nearly_same_text_as_newer"

StandsFor = dict[UUID, list[Candidate]]


@dataclass(frozen=True)
class Distinct:
    """What is left, in the order given, and for which memories each of them stands, newest first."""

    kept: Sequence[Candidate]
    stands_for: dict[UUID, list[UUID]]


def distinct(candidates: Sequence[Candidate], windows: Sequence[Span], dropped: Counter[str]) -> Distinct:
    """One of those with equal texts, and one of those with the same gist, counted in `dropped` by reason.

    Each time of the same speaker, user and namespace; what is superseded stays beside what holds, or held at
    another time. The newest stays; where the query speaks of a time, the newest that was said then.
    """
    stands_for: StandsFor = {}
    unlike = _newest(candidates, lambda each: (each.text, each.held), windows, stands_for)
    kept = _newest(unlike, _gist, windows, stands_for)
    gone = {SAME_TEXT: len(candidates) - len(unlike), NEARLY_SAME_TEXT: len(unlike) - len(kept)}
    dropped.update({reason: count for reason, count in gone.items() if count})
    return Distinct(
        kept,
        {
            memory_id: [each.memory_id for each in sorted(others, key=_age, reverse=True)]
            for memory_id, others in stands_for.items()
        },
    )


def _gist(candidate: Candidate) -> Hashable:
    """What near-duplicates share; nothing where the gist is not known."""
    if candidate.gist is None:
        return candidate.memory_id
    return (candidate.gist, *candidate.text[1:], candidate.held)


def _age(candidate: Candidate) -> tuple[float, UUID]:
    return candidate.timestamp.timestamp(), candidate.memory_id


def _newest(
    candidates: Sequence[Candidate],
    key: Callable[[Candidate], Hashable],
    windows: Sequence[Span],
    stands_for: StandsFor,
) -> list[Candidate]:
    """The one to stay of each key; `stands_for` is told."""
    keys = [key(each) for each in candidates]
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
