"""The result table of a search."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

from agentcore.cli.memory_commands import result_rows
from agentcore.memory.models import MemorySummary, MemoryType


def memory(number: int, content: str, outdated_by: UUID | None = None) -> MemorySummary:
    return MemorySummary(
        memory_id=UUID(int=number),
        memory_type=MemoryType.EPISODIC,
        content=content,
        summary="",
        timestamp=datetime(2026, 6, number, tzinfo=UTC),
        relevance_score=0.5,
        outdated_by=outdated_by,
    )


def shown(*memories: MemorySummary) -> list[str]:
    return [str(row[-1]) for row in result_rows(memories)]


def test_a_probably_outdated_result_names_the_result_that_is_newer() -> None:
    other, new = memory(1, "Ada has a dog."), memory(3, "Dr. Bielik is our dentist now.")
    old = memory(2, "Our dentist is Dr. Okafor.", new.memory_id)
    assert shown(other, new, old) == [
        "Ada has a dog.",
        "Dr. Bielik is our dentist now.",
        "[earlier, see result 2] Our dentist is Dr. Okafor.",
    ]


def test_a_newer_one_that_is_not_among_the_results_is_not_referred_to() -> None:
    assert shown(memory(2, "Our dentist is Dr. Okafor.", UUID(int=3))) == ["[earlier] Our dentist is Dr. Okafor."]
