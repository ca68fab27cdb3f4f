"""Asking a model about a batch of memories, and whose fault it is where it does not answer.

One text may spoil the answer for all: then each is asked about by itself. What fails beside others that do
not is at fault itself; where all fail it is the request, or the model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

from agentcore.errors import DependencyUnavailable
from agentcore.memory.consequences.llm_work import PATIENCE, failing_since
from agentcore.memory.llm_limits import is_budget_spent
from agentcore.memory.rows.owned_rows import Row

# So often a text is asked about by itself whose answers cannot be read.
MOST_TRIES = 5
# A request that no text is answered to is not mended by asking again soon.
LONG_WAIT_SECONDS = 600

Read = TypeVar("Read")
Ask = Callable[[Sequence[Row]], Awaitable[Sequence[Read]]]


@dataclass
class Asked(Generic[Read]):
    """What was read, what is done without and why, and what is to be asked about again."""

    read: list[Read] = field(default_factory=list)
    without: dict[UUID, str] = field(default_factory=dict)
    again: list[UUID] = field(default_factory=list)
    tried: list[UUID] = field(default_factory=list)
    """Again, too: those whose own fault it is, asked about by themselves from now on."""
    failure: DependencyUnavailable | None = None


async def ask(model: Ask[Read], batch: Sequence[Row], now: datetime) -> Asked[Read]:
    """Ask about memories that wait: together, else one by one. Raises nothing that a model fails of."""
    try:
        return Asked([*await model(batch)])
    except DependencyUnavailable as failure:
        if len(batch) > 1 and _may_be_the_texts(failure):
            return await _one_by_one(model, batch, now)
        asked = Asked[Read]()
        _fail(asked, batch, failure, now, own_fault=batch[0]["tries"] > 0)
        return asked


async def _one_by_one(model: Ask[Read], batch: Sequence[Row], now: datetime) -> Asked[Read]:
    asked = Asked[Read]()
    failed: list[tuple[Row, DependencyUnavailable]] = []
    for place, row in enumerate(batch):
        try:
            asked.read += await model([row])
        except DependencyUnavailable as failure:
            if not _may_be_the_texts(failure):
                _fail(asked, [*(each for each, _ in failed), *batch[place:]], failure, now)
                return asked
            failed.append((row, failure))
    if asked.read:
        for row, why in failed:
            _blame(asked, row, why, now)
    else:
        _fail(asked, batch, _of_the_request(failed[-1][1], len(batch)), now)
    return asked


def _of_the_request(failure: DependencyUnavailable, count: int) -> DependencyUnavailable:
    message = f"The language model answers no text of {count}, each by itself: {failure.message}"
    data = {**failure.data, "retry_after_seconds": LONG_WAIT_SECONDS}
    return DependencyUnavailable(message, data=data)


def _blame(asked: Asked[Read], row: Row, failure: DependencyUnavailable, now: datetime) -> None:
    if failure.data.get("refused"):
        asked.without[row["memory_id"]] = failure.message
    else:
        _fail(asked, [row], failure, now, own_fault=True)
        asked.failure = None


def _fail(
    asked: Asked[Read],
    rows: Sequence[Row],
    failure: DependencyUnavailable,
    now: datetime,
    *,
    own_fault: bool = False,
) -> None:
    """Do without what was asked about for long enough, or may not be; else it is asked about again."""
    for row in rows:
        given_up = is_budget_spent(failure) or now - failing_since([row], now) >= PATIENCE
        if given_up or (own_fault and row["tries"] + 1 >= MOST_TRIES):
            asked.without[row["memory_id"]] = failure.message
        else:
            (asked.tried if own_fault else asked.again).append(row["memory_id"])
            asked.failure = failure


def _may_be_the_texts(failure: DependencyUnavailable) -> bool:
    return bool(failure.data.get("refused") or failure.data.get("unreadable"))
