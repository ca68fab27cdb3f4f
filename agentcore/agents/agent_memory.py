"""An agent's memory as its turns use it: within its scope, for a bounded time, and never in its way."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Sequence
from typing import Any, TypeVar

from agentcore.agents.agent_settings import AgentSettings
from agentcore.agents.turn import CURRENT, Turn
from agentcore.memory.api import MemoryApi
from agentcore.memory.empty_results import UNAVAILABLE
from agentcore.memory.models import MAX_TEXT_CHARS, Interaction, MemorySummary, MemoryType
from agentcore.memory.params import CompleteTaskParams, StoreParams, StoreResult

MOST_ERROR_CHARS = 500

AnswerT = TypeVar("AnswerT")

logger = logging.getLogger(__name__)


class AgentMemory:
    """The memory of one agent. What cannot be read is empty, what cannot be stored is left, with a warning.

    Mistakes of the caller (params, token, scope) raise the classes of `agentcore.errors`. `api` is the whole
    memory, with nothing of this around it.
    """

    def __init__(self, api: MemoryApi, settings: AgentSettings) -> None:
        self.api = api
        self._settings = settings

    async def get_relevant_context(
        self, query: str, task_id: str | None = None, max_tokens: int | None = None, **options: Any
    ) -> str:
        """A prompt-ready context, the task's working memory first; empty where memory does not answer.

        Asked for the query of the running turn, it is the turn's own context, without another search.
        """
        turn = self._turn()
        if turn is not None and not turn.recalls:
            return ""
        own = turn is not None and turn.holds(query, task_id) and max_tokens is None and not options
        if own and turn is not None and turn.context is not None:
            return turn.context
        context = await self._in_time("recall", "", self.api.get_relevant_context(
            query, task_id, max_tokens or self._settings.max_tokens,
            **{"gate": self._settings.gate, **self._settings.scope.filters(), **options}))
        if own and turn is not None:
            turn.context = context
        return context

    async def retrieve_memories(self, query: str, k: int = 5, **options: Any) -> tuple[MemorySummary, ...]:
        """The `k` best memories, best first; none where memory does not answer."""
        turn = self._turn()
        if turn is not None and not turn.recalls:
            return ()
        return await self._in_time("recall", (), self.api.retrieve_memories(
            query, k, **{**self._settings.scope.filters(), **options}))

    async def add_interaction(
        self, query: str, response: str | None, task_id: str | None = None, *,
        actions: Sequence[Any] = (), outcome: Any = None, **options: Any,
    ) -> StoreResult | None:
        """Store an interaction, within a turn at most once; None where it was not stored.

        `options` are those of `memory.store`.
        """
        turn = self._turn()
        if turn is not None and not turn.remembers:
            return None
        own = turn is not None and query == turn.query
        if own and turn is not None:
            if turn.stored:
                return None
            turn.stored = True
            actions, outcome = actions or turn.actions, turn.outcome if outcome is None else outcome
        interaction = Interaction(
            query=_text(query), response=None if response is None else _text(response),
            actions=list(actions), outcome=outcome)
        labels = self._settings.scope.labels() | _given(
            task_id=task_id, idempotency_key=None if turn is None else _key(turn, own, interaction),
            importance=self._settings.importance, tags=self._settings.tags or None)
        storing = self.api.add_interaction(interaction, **(labels | options))
        stored = await self._in_time("store", None, storing)
        if own and turn is not None and stored is not None:
            turn.memory_id = stored.memory_id
        return stored

    async def note(self, text: str, task_id: str) -> StoreResult | None:
        """Put a note into the task's working memory, which `complete_task` clears."""
        if (turn := self._turn()) is not None and not turn.remembers:
            return None
        return await self._in_time("store", None, self.api.store(StoreParams(
            content=_text(text), memory_type=MemoryType.WORKING,
            **(self._settings.scope.labels() | {"task_id": task_id}))))

    async def complete_task(self, task_id: str) -> int:
        """End a task: its working memory is cleared, its lasting memories stay; how many left it."""
        async def completed() -> int:
            return (await self.api.complete_task(CompleteTaskParams(task_id=task_id))).cleared_count

        return await self._in_time("complete_task", 0, completed())

    async def _in_time(self, use: str, otherwise: AnswerT, answer: Awaitable[AnswerT]) -> AnswerT:
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                return await answer
        except TimeoutError:
            problem = f"memory did not answer within {self._settings.timeout_seconds:g} s"
        except UNAVAILABLE as failure:
            problem = failure.message
        logger.warning("the agent goes on without memory (%s): %s", use, problem)
        if (turn := self._turn()) is not None:
            turn.problems.append(f"{use}: {problem}")
        return otherwise

    def _turn(self) -> Turn | None:
        """The running turn, if it is one of this memory's: an agent may call another within its own."""
        turn = CURRENT.get()
        return turn if turn is not None and turn.owner is self else None


def described(error: BaseException) -> str:
    """An error as an outcome: its kind and the beginning of its words."""
    return f"failed: {type(error).__name__}: {error}"[:MOST_ERROR_CHARS]


def _text(text: str) -> str:
    """What memory can hold of a text."""
    return text.replace("\x00", "")[:MAX_TEXT_CHARS]


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _key(turn: Turn, own: bool, interaction: Interaction) -> str:
    """One key for the turn's own interaction, and one for each other that is stored within it."""
    if own:
        return f"turn:{turn.turn_id}"
    said = json.dumps(interaction.model_dump(mode="json"), sort_keys=True)
    return f"turn:{turn.turn_id}:{hashlib.sha256(said.encode()).hexdigest()[:16]}"
