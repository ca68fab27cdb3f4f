"""An agent's memory as its turns use it: within its scope, for a bounded time, and never in its way."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import ValidationError

from agentcore.agents.agent_turn import AgentTurn, Storing, running_turn
from agentcore.agents.ending import end_session
from agentcore.agents.recordable import holdable, interaction_of, searchable
from agentcore.agents.scope import AgentSettings
from agentcore.agents.tool_answers import failure_sentence
from agentcore.agents.working_template import WorkingTemplate
from agentcore.errors import AgentCoreError, AuthenticationFailed, NotAuthorised
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import Interaction, MemorySummary, MemoryType
from agentcore.memory.params.empty_results import UNAVAILABLE
from agentcore.memory.params.memories import (
    CompleteTaskParams,
    GetContextParams,
    GetContextResult,
    StoreParams,
    StoreResult,
)
from agentcore.memory.params.sessions import EndSessionResult

REFUSED = (AuthenticationFailed, NotAuthorised)

AnswerT = TypeVar("AnswerT")

logger = logging.getLogger(__name__)


class AgentMemory:
    """The memory of one agent. What cannot be read is empty, what cannot be stored is left, with a warning.

    Mistakes of the caller (params, token, scope) raise the classes of `agentcore.errors`; but what is stored
    within a turn never raises, its answer is worth more. `api` is the whole memory, with nothing of this
    around it.
    """

    def __init__(self, api: MemoryApi, settings: AgentSettings, session_id: str | None = None) -> None:
        self.api = api
        self._settings = settings
        self._session_id = session_id

    async def get_relevant_context(
        self, query: str, task_id: str | None = None, max_tokens: int | None = None, **options: Any
    ) -> str:
        """A prompt-ready context, the task's working memory first; empty where memory does not answer.

        Asked for the query of the running turn, it is the turn's own context, without another search.
        """
        turn = self._turn()
        own = turn is not None and turn.holds(query, task_id) and max_tokens is None and not options
        if turn is None or not (turn.recalls and own):
            return _context(await self.get_context(query, task_id, max_tokens, **options))
        if turn.context is None:
            built = await self.get_context(query, task_id, history=list(turn.history))
            turn.context = _context(built)
            if built is not None:
                turn.memory_ids, turn.receipt = tuple(built.memory_ids), built.receipt
        return turn.context

    async def get_context(
        self, query: str, task_id: str | None = None, max_tokens: int | None = None, **options: Any
    ) -> GetContextResult | None:
        """The same context with all that is known of it: its line n is of the memory `memory_ids[n - 1]`.

        Always a search of its own; None where memory does not answer, or is not to be asked.
        """
        turn, asked = self._turn(), searchable(query)
        if (turn is not None and not turn.recalls) or not asked:
            return None
        usual = {"gate": self._settings.gate, **self._settings.scope.filters()}
        return await self._in_time("recall", None, self.api.get_context(GetContextParams(
            query=asked, task_id=task_id, max_tokens=max_tokens or self._settings.max_tokens,
            **(usual | options))))

    async def retrieve_memories(self, query: str, k: int = 5, **options: Any) -> tuple[MemorySummary, ...]:
        """The `k` best memories, best first; none where memory does not answer."""
        turn, asked = self._turn(), searchable(query)
        if (turn is not None and not turn.recalls) or not asked:
            return ()
        return await self._in_time("recall", (), self.api.retrieve_memories(
            asked, k, **{**self._settings.scope.filters(), **options}))

    async def add_interaction(
        self, query: str, response: str | None, task_id: str | None = None, *,
        actions: Sequence[Any] = (), outcome: Any = None, **options: Any,
    ) -> StoreResult | None:
        """Store an interaction, within a turn at most once; None where it was not stored.

        What memory cannot hold of it is made so that it can. `options` are those of `memory.store`.
        """
        turn = self._turn()
        if turn is None:
            return await self._stored(_interaction(query, response, actions, outcome), task_id, options)
        if not turn.remembers or (turn.stored and query == turn.query):
            return None
        if query != turn.query:
            return await self._stored_beside(
                turn, _interaction(query, response, actions, outcome), task_id, options)
        own = _interaction(
            query, response, actions or turn.actions, turn.outcome if outcome is None else outcome, turn)
        turn.storing = Storing(own, task_id, {"idempotency_key": _key(turn), **options})
        return await self.store_turn(turn)

    async def _stored_beside(
        self, turn: AgentTurn, other: Interaction, task_id: str | None, options: Mapping[str, Any]
    ) -> StoreResult | None:
        """Store what a turn says below another query; its answer is then not stored once more."""
        key = _key_within(turn, other)
        stored = await self._attempted(turn, Storing(other, task_id, {"idempotency_key": key, **options}))
        in_its_task = task_id in (None, turn.task_id)
        if in_its_task and stored is not None and stored.success and other.response is not None:
            turn.answers[other.response] = stored
        return stored

    async def store_turn(self, turn: AgentTurn) -> StoreResult | None:
        """Store the turn's own interaction unless it is stored; one that memory was silent on, once more."""
        if turn.stored or not turn.remembers or turn.refused is not None:
            return None
        if (answered := turn.stored_as_answered()) is not None:
            turn.stored, turn.memory_id = True, answered.memory_id
            return answered
        if turn.storing is None:
            own = _interaction(turn.query, turn.response, turn.actions, turn.outcome, turn)
            turn.storing = Storing(
                own, turn.task_id, {"idempotency_key": _key(turn), "session_id": turn.session_id})
        stored = await self._attempted(turn, turn.storing)
        if stored is not None:
            turn.stored, turn.memory_id = True, stored.memory_id
        return stored

    async def note(
        self, text: str, task_id: str, *, importance: float | None = None
    ) -> StoreResult | None:
        """Put a note into the task's working memory, which `complete_task` clears.

        One of the conversation itself, of no other task, ends with it: from an importance of 0.7 on it lasts.
        """
        turn = self._turn()
        if (turn is not None and not turn.remembers) or not searchable(text):
            return None
        if turn is None:
            return await self._noted(text, task_id, importance)
        [noted] = await asyncio.gather(self._noted(text, task_id, importance), return_exceptions=True)
        if not isinstance(noted, BaseException):
            return noted
        self._note_failure(turn, "a note", noted)
        return None

    async def _noted(self, text: str, task_id: str, importance: float | None) -> StoreResult | None:
        # A named task outlives the conversation, whose end takes all notes of its session.
        session_id = task_id if task_id == self._session_id else None
        labels = self._settings.scope.labels() | {"task_id": task_id, "session_id": session_id}
        return await self._in_time("store", None, self.api.store(StoreParams(
            content=holdable(text), memory_type=MemoryType.WORKING, **_given(importance=importance),
            **labels)))

    async def complete_task(self, task_id: str) -> int:
        """End a task: its working memory is cleared, its lasting memories stay; how many left it."""
        async def completed() -> int:
            return (await self.api.complete_task(CompleteTaskParams(task_id=task_id))).cleared_count

        return await self._in_time("complete_task", 0, completed())

    async def end_session(self, session_id: str, *, summarize: bool = True) -> EndSessionResult | None:
        """End a conversation: what its notes came to, and its summary; None where memory does not answer.

        Raises Conflict where others than the scope's user have memories in it.
        """
        return await self._in_time("end_session", None, end_session(
            self.api, session_id, self._settings.scope, summarize=summarize))

    async def template_prompt(self, template: WorkingTemplate) -> str:
        """What the agent keeps in its template, fenced as data; empty where memory does not answer."""
        return await self._in_time("template", "", template.prompt())

    async def _stored(
        self, interaction: Interaction, task_id: str | None, options: dict[str, Any]
    ) -> StoreResult | None:
        labels = self._settings.scope.labels() | _given(
            task_id=task_id, importance=self._settings.importance, tags=self._settings.tags or None)
        return await self._in_time(
            "store", None, self.api.add_interaction(interaction, **(labels | options)))

    async def _attempted(self, turn: AgentTurn, storing: Storing) -> StoreResult | None:
        [stored] = await asyncio.gather(
            self._stored(storing.interaction, storing.task_id, storing.options), return_exceptions=True)
        if not isinstance(stored, BaseException):
            return stored
        if turn.storing is storing:  # refused as it is: the turn's end tries it without its options
            turn.storing = None
        self._note_failure(turn, "the turn", stored)
        return None

    def _note_failure(self, turn: AgentTurn, what: str, failure: BaseException) -> None:
        if isinstance(failure, REFUSED):
            turn.refused = failure
        problem = _told(failure)
        logger.error("%s was not stored: %s", what, problem)
        turn.problems.append(f"store: {problem}")

    async def _in_time(self, use: str, otherwise: AnswerT, answer: Awaitable[AnswerT]) -> AnswerT:
        turn, began = self._turn(), _now()
        left = self._settings.timeout_seconds if turn is None else turn.patience_seconds
        # Of a turn that goes on half: another use follows it, at the latest the store at its end.
        patience = left if turn is None or turn.ends else left / 2
        try:
            async with asyncio.timeout(patience):
                return await answer
        except TimeoutError:
            problem = f"memory did not answer within {round(patience, 2):g} s"
        except UNAVAILABLE as failure:
            problem = failure.message
        logger.warning("the agent goes on without memory (%s): %s", use, problem)
        if turn is not None:
            # Uses at the same time wait together: what one waited another does not pay for.
            turn.patience_seconds = min(turn.patience_seconds, max(0.0, left - (_now() - began)))
            turn.problems.append(f"{use}: {problem}")
        return otherwise

    def _turn(self) -> AgentTurn | None:
        return running_turn(self)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _told(failure: BaseException) -> str:
    if isinstance(failure, ValidationError):
        return f"{type(failure).__name__}: {failure_sentence(failure)}"
    if isinstance(failure, AgentCoreError):
        return f"{type(failure).__name__} ({int(failure.code)}): {failure.message}"
    return type(failure).__name__


def _context(built: GetContextResult | None) -> str:
    return "" if built is None else built.context


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _interaction(
    query: str, response: str | None, actions: Sequence[Any], outcome: Any, turn: AgentTurn | None = None
) -> Interaction:
    interaction, left_out = interaction_of(query, response, actions, outcome)
    if left_out:
        problem = f"store: {left_out} of {len(actions)} actions are not kept"
        logger.warning(problem)
        if turn is not None:
            turn.problems.append(problem)
    return interaction


def _key(turn: AgentTurn) -> str:
    return f"turn:{turn.turn_id}"


def _key_within(turn: AgentTurn, other: Interaction) -> str:
    said = json.dumps(other.model_dump(mode="json"), sort_keys=True)
    return f"{_key(turn)}:{hashlib.sha256(said.encode()).hexdigest()[:16]}"
