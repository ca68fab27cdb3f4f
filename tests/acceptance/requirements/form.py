"""The form of a requirement: its sentence, its source, and the tests that show it.

`shown_by` names tests as `folder/file.py::test_name` below `tests/`, or benchmarks as `benchmarks/name`.
`missing` states the part that no test shows yet. `tests/architecture/test_requirements.py` checks that the
list and the tests match.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Requirement:
    """A sentence that must be true. `number` is its number in the source."""

    number: str
    source: str
    sentence: str
    shown_by: tuple[str, ...] = ()
    missing: str | None = None


def of(source: str) -> Callable[..., Requirement]:
    """Returns a constructor for requirements of one source."""

    def required(number: str, sentence: str, *shown_by: str, missing: str | None = None) -> Requirement:
        return Requirement(number, source, sentence, shown_by, missing)

    return required
