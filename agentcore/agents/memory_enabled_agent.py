"""`MemoryEnabledAgent`: subclass it, override `process_query`, and the agent remembers.

    class MyAgent(MemoryEnabledAgent):
        async def process_query(self, query: str, task_id: str) -> str:
            return await self.llm.generate(self.prompt(query))

    async with MyAgent(memory) as agent:    # memory: any MemoryApi, see open_memory.py
        answer = await agent.run("What is my budget?")
"""

from __future__ import annotations

import logging
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from agentcore.agents.agent_memory import AgentMemory
from agentcore.agents.agent_turn import AgentTurn, running, running_turn
from agentcore.agents.instructions import memory_instructions
from agentcore.agents.prefetch import above
from agentcore.agents.recordable import error_words, holdable, recordable, said
from agentcore.agents.scope import AgentSettings
from agentcore.agents.tool_operations import Confirmations
from agentcore.agents.tools import USUAL_TOOLS, MemoryTools
from agentcore.agents.working_template import WorkingTemplate
from agentcore.errors import AgentCoreError
from agentcore.limits import MAX_QUERY_CHARS
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.memories import StoreResult, Turn
from agentcore.memory.params.sessions import EndSessionResult

# So many of the last things said complete a vague query.
MOST_SAID = 6

logger = logging.getLogger(__name__)


class MemoryEnabledAgent(ABC):
    """An agent with memory: what matters is there before a query is processed, what happened is stored after.

    One object holds one conversation, which `end`, or the end of an `async with`, ends; several may share a
    memory. `run` drives a turn. A `process_query` that gets its context and stores its interaction by itself
    may be called directly as well, and is stored once either way. Memory that does not answer holds no turn
    up: its context is empty, and a warning is logged. An answer is never lost for what could not be stored:
    where the token was refused for it, the next `run` raises that. With `settings.template` the agent keeps a
    working template, `self.template`.
    """

    def __init__(self, memory: MemoryApi, settings: AgentSettings | None = None) -> None:
        self.settings = settings or AgentSettings()
        self.session_id = self.settings.scope.session_id or f"session-{uuid.uuid4()}"
        self.memory = AgentMemory(memory, self.settings, self.session_id)
        self._said: deque[Turn] = deque(maxlen=MOST_SAID)
        self.task_id = self.settings.scope.task_id or self.session_id
        self.template = None if self.settings.template is None else WorkingTemplate(
            memory, self.settings.template, self.settings.scope)
        self._confirmations = Confirmations()
        self._refused: AgentCoreError | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        """End the conversation, of an agent that remembers; what else goes wrong is raised before this."""
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
        """The agent's own work: answer the query; `self.prompt(query)` is it with what memory holds."""

    async def run(self, query: str, task_id: str | None = None, *, recall: bool | None = None,
                  remember: bool | None = None) -> str:
        """Answer a query with memory: look it up, process it, store it.

        `recall=False` and `remember=False` do this one without looking and without storing.
        """
        turn = await self.run_turn(query, task_id, recall=recall, remember=remember)
        return turn.response or ""

    async def run_turn(self, query: str, task_id: str | None = None, *, recall: bool | None = None,
                       remember: bool | None = None) -> AgentTurn:
        """The same, and all that is known of the turn."""
        turn = AgentTurn(
            self.memory, query, task_id or self.task_id, self.session_id, history=tuple(self._said),
            recalls=self.settings.recall if recall is None else recall,
            remembers=self.settings.remember if remember is None else remember,
            patience_seconds=self.settings.timeout_seconds)
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
        """End the conversation: its notes last or are over, and a summary is kept for those that follow.

        What `memory.end_session` gives; None, with a warning, where memory does not answer. Ended again, it
        keeps the same summary unless more was said.
        """
        return await self.memory.end_session(self.session_id, summarize=summarize)

    @property
    def turn(self) -> AgentTurn:
        """The running turn, with what memory gave for it. Raises RuntimeError beyond `process_query`."""
        turn = running_turn(self.memory)
        if turn is None:
            raise RuntimeError("no turn is running: call this within process_query, driven by run()")
        return turn

    def prompt(self, query: str) -> str:
        """The query, below the template and what memory holds for the running turn, fenced as data."""
        turn = running_turn(self.memory)
        return query if turn is None else above(turn.template or "", above(turn.context or "", query))

    def record_action(self, action: Any) -> None:
        """Note something done in the running turn: a text or an object; stored with the interaction.

        What JSON has no form for is noted as its text, at most 16,384 characters of it.
        """
        self.turn.actions.append(recordable(action))

    def record_outcome(self, outcome: Any) -> None:
        """Say how the running turn ended, noted as an action is; stored with the interaction."""
        self.turn.outcome = recordable(outcome)

    @property
    def instructions(self) -> str:
        """What to tell a model that reads `prompt` and has the `tools`."""
        told = memory_instructions(tool.name for tool in self.tools().definitions)
        return told if self.template is None else f"{told}\n{self.template.instructions()}"

    def tools(self, names: Sequence[str] = USUAL_TOOLS, *,
              confirmations: Confirmations | None = None) -> MemoryTools:
        """The memory tools within this agent's scope and conversation, with `fill_template` where it has one.

        A server that makes an agent for each request gives all of them its `confirmations`, and the session
        in `settings.scope`; else what one call proposes to forget the next of this agent confirms.
        """
        scope = self.settings.scope.model_copy(update={"session_id": self.session_id, "task_id": None})
        return MemoryTools(self.memory.api, scope, tools=names, template=self.template,
                           confirmations=confirmations or self._confirmations)

    async def _store_interaction(
        self, query: str, response: str, task_id: str | None = None, *, actions: Sequence[Any] = (),
        outcome: Any = None, **options: Any,
    ) -> StoreResult | None:
        """Store what was asked and answered; within a turn once. `options` are those of `memory.store`."""
        return await self.memory.add_interaction(
            query, response, task_id, actions=actions, outcome=outcome,
            **{"session_id": self.session_id, **options})

    async def _answer(self, turn: AgentTurn) -> str:
        """What `process_query` answers, as a text; a failure of it is stored as the outcome, and raised."""
        try:
            answer = await self.process_query(turn.query, turn.task_id)
        except BaseException as error:
            # A turn that was cancelled has no outcome.
            if isinstance(error, Exception) and self.settings.remember_errors:
                turn.outcome, turn.ends = error_words(error, whole=self.settings.whole_errors), True
                await self.memory.store_turn(turn)
            raise
        return answer if isinstance(answer, str) else _as_text(answer)

    def _raise_refusal(self) -> None:
        refused, self._refused = self._refused, None
        if refused is not None:
            raise refused


def _as_text(answer: Any) -> str:
    return "" if answer is None else said(answer)


def _earlier(role: str, text: str) -> Turn:
    return Turn(role=role, content=holdable(text, MAX_QUERY_CHARS))
