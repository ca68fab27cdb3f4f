"""What is required, where that is written, and which tests show it.

`shown_by` names tests as `room/file.py::test_name` below `tests/`, or a benchmark as `benchmarks/name`. A
requirement that is not shown yet, or not in all its parts, says what is missing.
`tests/architecture/test_requirements.py` holds this list and the tests together, both ways.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Requirement:
    """One sentence that must be true. `number` is that of its source."""

    number: str
    source: str
    sentence: str
    shown_by: tuple[str, ...] = ()
    missing: str | None = None


def of(source: str) -> Callable[..., Requirement]:
    """What makes the requirements of one source."""

    def required(number: str, sentence: str, *shown_by: str, missing: str | None = None) -> Requirement:
        return Requirement(number, source, sentence, shown_by, missing)

    return required
