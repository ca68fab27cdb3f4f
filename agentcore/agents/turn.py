"""One query of an agent, from its context to its storing: what is known of it while it runs."""

from __future__ import annotations

import uuid
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID


@dataclass
class Turn:
    """What went in, what memory gave, what came out, and what became of it.

    `owner` is the memory it runs on. `context` is None until memory was asked, `memory_id` while nothing is
    stored. `problems` says what memory could not do.
    """

    owner: object

    query: str
    task_id: str
    session_id: str
    recalls: bool = True
    remembers: bool = True
    turn_id: str = field(default_factory=lambda: uuid.uuid4().hex)
    context: str | None = None
    response: str | None = None
    actions: list[Any] = field(default_factory=list)
    outcome: Any = None
    stored: bool = False
    memory_id: UUID | None = None
    problems: list[str] = field(default_factory=list)

    def holds(self, query: str, task_id: str | None) -> bool:
        """Whether this is the turn's own query, in its own task."""
        return (query, task_id) == (self.query, self.task_id)


# An agent may run several turns at the same time: each belongs to the asyncio task that runs it.
CURRENT: ContextVar[Turn | None] = ContextVar("agentcore_turn", default=None)
