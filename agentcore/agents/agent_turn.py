"""One query of an agent, from its context to its storing: what is known of it while it runs."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from agentcore.errors import AgentCoreError
from agentcore.memory.models import Interaction, Receipt
from agentcore.memory.params.memories import StoreResult, Turn


@dataclass(frozen=True)
class Storing:
    """A store of a turn's own interaction; tried again to the letter: one key stands for one request."""

    interaction: Interaction
    task_id: str | None
    options: dict[str, Any]


@dataclass
class AgentTurn:
    """What went in, what memory gave, what came out, and what became of it.

    `owner` is the memory it runs on, `within` the turn of another agent that called this one. `history` is
    what was said before in the conversation. `context` is None until memory was asked; its line n is of the
    memory `memory_ids[n - 1]`, and `receipt` tells how it was found. `memory_id` is None while nothing is
    stored; `answers` are what was stored below other queries. `problems` says what memory could not do,
    `refused` is its refusal of the token. `patience_seconds`: how much longer no answer may hold it up.
    `ends`: nothing follows but its store.
    """

    owner: object

    query: str
    task_id: str
    session_id: str
    recalls: bool = True
    remembers: bool = True
    turn_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    within: AgentTurn | None = None
    context: str | None = None
    memory_ids: Sequence[UUID] = ()
    receipt: Receipt | None = None
    template: str = ""
    history: Sequence[Turn] = ()
    response: str | None = None
    actions: list[Any] = field(default_factory=list)
    outcome: Any = None
    storing: Storing | None = None
    stored: bool = False
    answers: dict[str, StoreResult] = field(default_factory=dict)
    memory_id: UUID | None = None
    problems: list[str] = field(default_factory=list)
    refused: AgentCoreError | None = None
    patience_seconds: float = math.inf
    ends: bool = False

    def stored_as_answered(self) -> StoreResult | None:
        """What stands for the turn already: its answer, stored in its task below another query.

        Actions and outcomes that were recorded are stored with the turn's own query alone.
        """
        whole = not self.actions and self.outcome is None
        return self.answers.get(self.response) if whole and self.response else None

    def holds(self, query: str, task_id: str | None) -> bool:
        """Whether this is the turn's own query, in its own task."""
        return (query, task_id) == (self.query, self.task_id)


# An agent may run several turns at the same time: each belongs to the asyncio task that runs it. Why no
# argument carries it: docs/decisions/0034.
_CURRENT: ContextVar[AgentTurn | None] = ContextVar("agentcore_turn", default=None)


@contextmanager
def running(turn: AgentTurn) -> Iterator[None]:
    """Let the turn be the one that runs here, until the block ends."""
    turn.within = _CURRENT.get()
    token = _CURRENT.set(turn)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def running_turn(owner: object) -> AgentTurn | None:
    """The innermost running turn on this memory; an agent called within another's turn has none of its."""
    turn = _CURRENT.get()
    while turn is not None and turn.owner is not owner:
        turn = turn.within
    return turn
