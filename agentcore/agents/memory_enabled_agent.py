"""`MemoryEnabledAgent`: subclass it, override `process_query`, and the agent remembers.

class MyAgent(MemoryEnabledAgent):
    async def process_query(self, query: str, task_id: str) -> str:
        return await self.llm.generate(self.prompt(query))

async with MyAgent(memory) as agent:    # memory: any MemoryApi, see open_memory.py
    answer = await agent.run("What is my budget?")
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from pydantic import ValidationError

from agentcore.agents.ending import end_session
from agentcore.agents.prefetch import above
from agentcore.agents.recordable import error_words, holdable, interaction_of, recordable, said, searchable
from agentcore.agents.scope import AgentSettings
from agentcore.agents.tool_contract import failure_sentence
from agentcore.agents.tool_operations import Confirmations
from agentcore.agents.tools import USUAL_TOOLS, MemoryTools, memory_instructions
from agentcore.agents.working_template import WorkingTemplate
from agentcore.errors import AgentCoreError, AuthenticationFailed, NotAuthorised
from agentcore.limits import MAX_QUERY_CHARS
from agentcore.memory.api import UNAVAILABLE, MemoryApi
from agentcore.memory.models import Interaction, MemorySummary, MemoryType, Receipt
from agentcore.memory.params.memories import (
    CompleteTaskParams,
    GetContextParams,
    GetContextResult,
    StoreParams,
    StoreResult,
    Turn,
)
from agentcore.memory.params.sessions import EndSessionResult


@dataclass(frozen=True)
class Storing:
    """A store of an interaction of a turn; retries send it unchanged: a key is valid for one request."""

    interaction: Interaction
    task_id: str | None
    options: dict[str, Any]


@dataclass
class AgentTurn:
    """Input, context, output and stored result of one turn.

    - `owner`: the memory it uses; `within`: the turn of another agent that called this one.
    - `history`: earlier turns of the conversation.
    - `context`: None until retrieved; its line n quotes memory `memory_ids[n - 1]`; `receipt` explains the
      search.
    - `memory_id`: None until stored; `answers`: responses stored under other queries.
    - `problems`: failures of memory; `refused`: its refusal of the token.
    - `patience_seconds`: remaining time that an unavailable memory may delay the turn.
    - `ends`: only the store remains.
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


# An agent may run several turns concurrently, each in its own asyncio task (docs/decisions/0034).
_CURRENT: ContextVar[AgentTurn | None] = ContextVar("agentcore_turn", default=None)


@contextmanager
def running(turn: AgentTurn) -> Iterator[None]:
    """Makes the turn current in this asyncio task until the block ends."""
    turn.within = _CURRENT.get()
    token = _CURRENT.set(turn)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def running_turn(owner: object) -> AgentTurn | None:
    """Returns the innermost running turn of this memory; None if only turns of other agents run."""
    turn = _CURRENT.get()
    while turn is not None and turn.owner is not owner:
        turn = turn.within
    return turn


REFUSED = (AuthenticationFailed, NotAuthorised)

AnswerT = TypeVar("AnswerT")

# The effect of a failed use on the agent. A store whose response was lost may have succeeded.
_EFFECTS = {
    "recall": "its context is empty",
    "template": "its working template is empty",
    "store": "nothing was confirmed as stored",
    "complete_task": "the task was not confirmed as completed",
    "end_session": "the session was not confirmed as ended",
}

logger = logging.getLogger(__name__)


class AgentMemory:
    """The memory of one agent. Reads and writes fail open with a warning.

    Errors of the caller (params, token, scope) raise the classes of `agentcore.errors`. Stores within a turn
    never raise, so that its answer is not lost. `api` is the underlying memory, without this behavior.
    """

    def __init__(self, api: MemoryApi, settings: AgentSettings, session_id: str | None = None) -> None:
        self.api = api
        self._settings = settings
        self._session_id = session_id

    async def get_relevant_context(
        self, query: str, task_id: str | None = None, max_tokens: int | None = None, **options: Any
    ) -> str:
        """Returns a context for the prompt, the task's working memory first; empty if memory is unavailable.

        For the query of the running turn it returns the turn's own context, without a second search.
        """
        turn = self._turn()
        own = turn is not None and (query, task_id) == (turn.query, turn.task_id) and not (max_tokens or options)
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
        """Returns the context with its metadata: line n quotes memory `memory_ids[n - 1]`.

        Always searches. None if memory is unavailable, recall is off for the turn, or the query is blank.
        """
        turn, asked = self._turn(), searchable(query)
        if (turn is not None and not turn.recalls) or not asked:
            return None
        return await self._in_time(
            "recall",
            None,
            self.api.get_context(
                GetContextParams(
                    query=asked,
                    task_id=task_id,
                    max_tokens=max_tokens or self._settings.max_tokens,
                    **{**self._settings.scope.filters(), **options},
                )
            ),
        )

    async def retrieve_memories(self, query: str, k: int = 5, **options: Any) -> tuple[MemorySummary, ...]:
        """Returns the `k` best memories, best first; empty if memory is unavailable."""
        turn, asked = self._turn(), searchable(query)
        if (turn is not None and not turn.recalls) or not asked:
            return ()
        return await self._in_time(
            "recall", (), self.api.retrieve_memories(asked, k, **{**self._settings.scope.filters(), **options})
        )

    async def add_interaction(
        self,
        query: str,
        response: str | None,
        task_id: str | None = None,
        *,
        actions: Sequence[Any] = (),
        outcome: Any = None,
        **options: Any,
    ) -> StoreResult | None:
        """Stores an interaction, at most once in a turn; returns None if it was not stored.

        Values that memory cannot store are converted or truncated. `options` are those of `memory.store`.
        """
        turn = self._turn()
        if turn is None:
            return await self._stored(_interaction(query, response, actions, outcome), task_id, options)
        if not turn.remembers or (turn.stored and query == turn.query):
            return None
        if query != turn.query:
            return await self._stored_beside(turn, _interaction(query, response, actions, outcome), task_id, options)
        own = _interaction(query, response, actions or turn.actions, turn.outcome if outcome is None else outcome, turn)
        turn.storing = Storing(own, task_id, {"idempotency_key": _key(turn), **options})
        return await self.store_turn(turn)

    async def _stored_beside(
        self, turn: AgentTurn, other: Interaction, task_id: str | None, options: Mapping[str, Any]
    ) -> StoreResult | None:
        content = json.dumps(other.model_dump(mode="json"), sort_keys=True)
        key = f"{_key(turn)}:{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        stored = await self._attempted(turn, Storing(other, task_id, {"idempotency_key": key, **options}))
        in_its_task = task_id in (None, turn.task_id)
        if in_its_task and stored is not None and stored.success and other.response is not None:
            turn.answers[other.response] = stored
        return stored

    async def store_turn(self, turn: AgentTurn) -> StoreResult | None:
        """Stores the turn's own interaction unless it is stored; retries once a store that got no answer."""
        if turn.stored or not turn.remembers or turn.refused is not None:
            return None
        stored = None
        if turn.response and not turn.actions and turn.outcome is None:
            stored = turn.answers.get(turn.response)
        if stored is None:
            if turn.storing is None:
                own = _interaction(turn.query, turn.response, turn.actions, turn.outcome, turn)
                options = {"idempotency_key": _key(turn), "session_id": turn.session_id}
                turn.storing = Storing(own, turn.task_id, options)
            stored = await self._attempted(turn, turn.storing)
        if stored is not None:
            turn.stored, turn.memory_id = True, stored.memory_id
        return stored

    async def note(self, text: str, task_id: str, *, importance: float | None = None) -> StoreResult | None:
        """Stores a note in the task's working memory, which `complete_task` clears.

        A note of the conversation itself (no other task) ends with it; at an importance of 0.7 or more it is
        kept.
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
        # A named task outlives the conversation, whose end clears all notes of its session.
        session_id = task_id if task_id == self._session_id else None
        labels = self._settings.scope.labels() | {"task_id": task_id, "session_id": session_id}
        return await self._in_time(
            "store",
            None,
            self.api.store(
                StoreParams(
                    content=holdable(text), memory_type=MemoryType.WORKING, **_given(importance=importance), **labels
                )
            ),
        )

    async def complete_task(self, task_id: str) -> int:
        """Ends a task: clears its working memory, keeps other memories; returns the number cleared."""
        done = await self._in_time("complete_task", None, self.api.complete_task(CompleteTaskParams(task_id=task_id)))
        return 0 if done is None else done.cleared_count

    async def end_session(self, session_id: str, *, summarize: bool = True) -> EndSessionResult | None:
        """Ends a conversation: promotes or clears its notes and summarizes it; None if memory is unavailable.

        Raises Conflict if the session contains memories of users outside the scope.
        """
        return await self._in_time(
            "end_session", None, end_session(self.api, session_id, self._settings.scope, summarize=summarize)
        )

    async def template_prompt(self, template: WorkingTemplate) -> str:
        """Returns the working template, fenced as data; empty if memory is unavailable."""
        return await self._in_time("template", "", template.prompt())

    async def _stored(
        self, interaction: Interaction, task_id: str | None, options: dict[str, Any]
    ) -> StoreResult | None:
        labels = self._settings.scope.labels() | _given(
            task_id=task_id, importance=self._settings.importance, tags=self._settings.tags or None
        )
        return await self._in_time("store", None, self.api.add_interaction(interaction, **(labels | options)))

    async def _attempted(self, turn: AgentTurn, storing: Storing) -> StoreResult | None:
        [stored] = await asyncio.gather(
            self._stored(storing.interaction, storing.task_id, storing.options), return_exceptions=True
        )
        if not isinstance(stored, BaseException):
            return stored
        if turn.storing is storing:  # refused: the turn's end retries it without its options
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
        # A turn that continues gets half: at least the store at its end follows.
        patience = left if turn is None or turn.ends else left / 2
        try:
            async with asyncio.timeout(patience):
                return await answer
        except TimeoutError:
            problem = f"memory did not answer within {round(patience, 2):g} s"
        except UNAVAILABLE as failure:
            problem = failure.message
        logger.warning("the agent continues without memory, %s: %s", _EFFECTS[use], problem)
        if turn is not None:
            # Concurrent uses share the delay: the time one spent is not subtracted again for another.
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


def _context(built: GetContextResult | None) -> str:
    return "" if built is None else built.context


def _key(turn: AgentTurn) -> str:
    return f"turn:{turn.turn_id}"


# Number of latest messages that may complete a vague query.
MOST_SAID = 6


class MemoryEnabledAgent(ABC):
    """An agent with memory: retrieves context before it processes a query, stores the interaction after it.

    One object is one conversation; `end`, or the end of an `async with`, ends it. Several may share a memory.
    `run` drives a turn. A `process_query` that gets its context and stores its interaction itself may also be
    called directly, and is stored once either way. If memory is unavailable, the context is empty and a
    warning is logged. A failed store never loses an answer; if the token was refused, the next `run` raises
    that error. With `settings.template` the agent has a working template, `self.template`.
    """

    def __init__(self, memory: MemoryApi, settings: AgentSettings | None = None) -> None:
        self.settings = settings or AgentSettings()
        self.session_id = self.settings.scope.session_id or f"session-{uuid.uuid4()}"
        self.memory = AgentMemory(memory, self.settings, self.session_id)
        self._said: deque[Turn] = deque(maxlen=MOST_SAID)
        self.task_id = self.settings.scope.task_id or self.session_id
        self.template = (
            None
            if self.settings.template is None
            else WorkingTemplate(memory, self.settings.template, self.settings.scope)
        )
        self._confirmations = Confirmations()
        self._refused: AgentCoreError | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.settings.remember:
            return
        try:
            await self.end()
        except AgentCoreError as failure:
            if error is None:
                raise
            logger.error("the conversation was not ended (%d): %s", failure.code, failure.message)

    @abstractmethod
    async def process_query(self, query: str, task_id: str) -> str:
        """Answers the query: the agent's own work. `self.prompt(query)` is the query with its context."""

    async def run(
        self, query: str, task_id: str | None = None, *, recall: bool | None = None, remember: bool | None = None
    ) -> str:
        """Answers a query with memory: retrieves context, processes the query, stores the interaction.

        `recall=False` and `remember=False` switch retrieval and storing off for this turn.
        """
        turn = await self.run_turn(query, task_id, recall=recall, remember=remember)
        return turn.response or ""

    async def run_turn(
        self, query: str, task_id: str | None = None, *, recall: bool | None = None, remember: bool | None = None
    ) -> AgentTurn:
        """Runs a turn like `run` and returns the whole turn."""
        turn = AgentTurn(
            self.memory,
            query,
            task_id or self.task_id,
            self.session_id,
            history=tuple(self._said),
            recalls=self.settings.recall if recall is None else recall,
            remembers=self.settings.remember if remember is None else remember,
            patience_seconds=self.settings.timeout_seconds,
        )
        if turn.remembers:
            self._raise_refusal()
        with running(turn):
            await self.memory.get_relevant_context(query, turn.task_id)
            if self.template is not None and turn.recalls:
                turn.template = await self.memory.template_prompt(self.template)
            try:
                turn.response = await self._answer(turn)
                turn.ends = True
                await self.memory.store_turn(turn)
            finally:
                self._refused = turn.refused or self._refused
        if turn.remembers:
            self._said += (_earlier("user", query), _earlier("assistant", turn.response))
        return turn

    async def end(self, *, summarize: bool = True) -> EndSessionResult | None:
        """Ends the conversation: promotes or clears its notes and keeps a summary for later conversations.

        Returns the result of `memory.end_session`; None, with a warning, if memory is unavailable.
        Idempotent: the summary stays the same unless more was said.
        """
        return await self.memory.end_session(self.session_id, summarize=summarize)

    @property
    def turn(self) -> AgentTurn:
        """Returns the running turn with its context. Raises RuntimeError outside `process_query`."""
        turn = running_turn(self.memory)
        if turn is None:
            raise RuntimeError("no turn is running: call this within process_query, driven by run()")
        return turn

    def prompt(self, query: str) -> str:
        """Returns the query below the template and the context of the running turn, both fenced as data."""
        turn = running_turn(self.memory)
        return query if turn is None else above(turn.template or "", above(turn.context or "", query))

    def record_action(self, action: Any) -> None:
        """Records an action of the running turn, a text or an object; it is stored with the interaction.

        Values without a JSON form are recorded as text, up to 16,384 characters.
        """
        self.turn.actions.append(recordable(action))

    def record_outcome(self, outcome: Any) -> None:
        """Records the outcome of the running turn, like an action; it is stored with the interaction."""
        self.turn.outcome = recordable(outcome)

    @property
    def instructions(self) -> str:
        """Returns the instructions for a model that reads `prompt` and has the `tools`."""
        told = memory_instructions(tool.name for tool in self.tools().definitions)
        return told if self.template is None else f"{told}\n{self.template.instructions()}"

    def tools(self, names: Sequence[str] = USUAL_TOOLS, *, confirmations: Confirmations | None = None) -> MemoryTools:
        """Returns the memory tools for this agent's scope and session, and `fill_template` for its template.

        A server that creates an agent for each request passes the same `confirmations` to all of them, and
        the session in `settings.scope`. Otherwise the next agent cannot confirm what an earlier call proposed
        to forget.
        """
        scope = self.settings.scope.model_copy(update={"session_id": self.session_id, "task_id": None})
        return MemoryTools(
            self.memory.api,
            scope,
            tools=names,
            template=self.template,
            confirmations=confirmations or self._confirmations,
        )

    async def _store_interaction(
        self,
        query: str,
        response: str,
        task_id: str | None = None,
        *,
        actions: Sequence[Any] = (),
        outcome: Any = None,
        **options: Any,
    ) -> StoreResult | None:
        """Stores a query and its response, once in a turn. `options` are those of `memory.store`."""
        return await self.memory.add_interaction(
            query, response, task_id, actions=actions, outcome=outcome, **{"session_id": self.session_id, **options}
        )

    async def _answer(self, turn: AgentTurn) -> str:
        try:
            answer = await self.process_query(turn.query, turn.task_id)
        except BaseException as error:
            # A canceled turn has no outcome.
            if isinstance(error, Exception) and self.settings.remember_errors:
                turn.outcome, turn.ends = error_words(error, whole=self.settings.whole_errors), True
                await self.memory.store_turn(turn)
            raise
        if isinstance(answer, str):
            return answer
        return "" if answer is None else said(answer)

    def _raise_refusal(self) -> None:
        refused, self._refused = self._refused, None
        if refused is not None:
            raise refused


def _earlier(role: str, text: str) -> Turn:
    return Turn(role=role, content=holdable(text, MAX_QUERY_CHARS))
