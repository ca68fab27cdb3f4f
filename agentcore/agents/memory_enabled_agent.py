"""`MemoryEnabledAgent`: subclass it, override `process_query`, and the agent remembers.

    class MyAgent(MemoryEnabledAgent):
        async def process_query(self, query: str, task_id: str) -> str:
            return await self.llm.generate(self.prompt(query))

    agent = MyAgent(memory)             # memory: any MemoryApi, see open_memory.py
    answer = await agent.run("What is my budget?")
"""

from __future__ import annotations

import logging
import uuid
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from pydantic import ValidationError

from agentcore.agents.agent_memory import AgentMemory, described
from agentcore.agents.agent_settings import AgentSettings
from agentcore.agents.instructions import memory_instructions
from agentcore.agents.prefetch import above
from agentcore.agents.tools import USUAL_TOOLS, MemoryTools
from agentcore.agents.turn import CURRENT, Turn
from agentcore.errors import AgentCoreError
from agentcore.memory.api import MemoryApi
from agentcore.memory.params import MAX_QUERY_CHARS, StoreResult
from agentcore.memory.params import Turn as EarlierTurn

# So many of the last things said complete a vague query.
MOST_SAID = 6

logger = logging.getLogger(__name__)


class MemoryEnabledAgent(ABC):
    """An agent with memory: what matters is there before a query is processed, what happened is stored after.

    One object holds one conversation; several may share a memory. `run` drives a turn. A `process_query` that
    gets its context and stores its interaction by itself may be called directly as well, and is stored once
    either way. Memory that does not answer holds no turn up: its context is empty, and a warning is logged.
    """

    def __init__(self, memory: MemoryApi, settings: AgentSettings | None = None) -> None:
        self.settings = settings or AgentSettings()
        self.memory = AgentMemory(memory, self.settings)
        self.session_id = self.settings.scope.session_id or f"session-{uuid.uuid4()}"
        self._said: deque[EarlierTurn] = deque(maxlen=MOST_SAID)
        self.task_id = self.settings.scope.task_id or self.session_id

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
                       remember: bool | None = None) -> Turn:
        """The same, and all that is known of the turn."""
        turn = Turn(
            self.memory, query, task_id or self.task_id, self.session_id, history=tuple(self._said),
            recalls=self.settings.recall if recall is None else recall,
            remembers=self.settings.remember if remember is None else remember)
        token = CURRENT.set(turn)
        try:
            async with _Remembering(self, turn):
                await self.memory.get_relevant_context(query, turn.task_id)
                turn.response = await self.process_query(query, turn.task_id)
        finally:
            CURRENT.reset(token)
        if turn.remembers:
            self._said += (_earlier("user", query), _earlier("assistant", turn.response))
        return turn

    def prompt(self, query: str) -> str:
        """The query, below what memory holds for the running turn, fenced as data."""
        turn = CURRENT.get()
        return above("" if turn is None else turn.context or "", query)

    def record_action(self, action: Any) -> None:
        """Note something done in the running turn: a text or an object; stored with the interaction."""
        self._turn().actions.append(action)

    def record_outcome(self, outcome: Any) -> None:
        """Say how the running turn ended: a text or an object; stored with the interaction."""
        self._turn().outcome = outcome

    @property
    def instructions(self) -> str:
        """What to tell a model that reads `prompt` and has the `tools`."""
        return memory_instructions(USUAL_TOOLS)

    def tools(self, names: Sequence[str] = USUAL_TOOLS) -> MemoryTools:
        """The memory tools within this agent's scope and conversation."""
        scope = self.settings.scope.model_copy(update={"session_id": self.session_id, "task_id": None})
        return MemoryTools(self.memory.api, scope, tools=names)

    async def _store_interaction(
        self, query: str, response: str, task_id: str | None = None, *, actions: Sequence[Any] = (),
        outcome: Any = None, **options: Any,
    ) -> StoreResult | None:
        """Store what was asked and answered; within a turn once. `options` are those of `memory.store`."""
        return await self.memory.add_interaction(
            query, response, task_id, actions=actions, outcome=outcome,
            **{"session_id": self.session_id, **options})

    def _turn(self) -> Turn:
        turn = CURRENT.get()
        if turn is None:
            raise RuntimeError("no turn is running: call this within process_query, driven by run()")
        return turn


def _earlier(role: str, text: str) -> EarlierTurn:
    return EarlierTurn(role=role, content=text.replace("\x00", "")[:MAX_QUERY_CHARS])


class _Remembering:
    """Stores a turn when it ends, unless it is stored: with its response, or with the error it failed by."""

    def __init__(self, agent: MemoryEnabledAgent, turn: Turn) -> None:
        self._agent = agent
        self._turn = turn

    async def __aenter__(self) -> None:
        """Nothing to do before."""

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        turn = self._turn
        if error is not None:
            if not isinstance(error, Exception) or not self._agent.settings.remember_errors:
                return
            turn.outcome = described(error)
        # Whatever goes wrong here, neither the answer nor the error is lost for it.
        try:
            await self._agent.memory.add_interaction(
                turn.query, turn.response, turn.task_id, session_id=turn.session_id)
        except (AgentCoreError, ValidationError) as failure:
            logger.error("the turn was not stored: %s", type(failure).__name__)
            turn.problems.append(f"store: {failure}")
