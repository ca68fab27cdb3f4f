"""Memory as a session of the OpenAI Agents SDK, and the memory tools as its function tools."""

from __future__ import annotations

import asyncio
import itertools
import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from agentcore.agents.ending import end_session
from agentcore.agents.failing_open import deadline, if_answered
from agentcore.agents.openai_tools import response_tools
from agentcore.agents.recordable import holdable
from agentcore.agents.scope import MemoryScope
from agentcore.agents.tools import USUAL_TOOLS, MemoryTools, ToolDefinition
from agentcore.agents.working_template import PLACEHOLDER_CONTENT, WorkingTemplate
from agentcore.errors import AgentCoreError, AuthenticationFailed, NotAuthorised
from agentcore.integrations import listed, not_installed, store_all
from agentcore.limits import MAX_BATCH_ITEMS, MAX_PAGE
from agentcore.memory.api import UNAVAILABLE, MemoryApi
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.memories import DeleteParams, StoreParams
from agentcore.memory.params.sessions import EndSessionResult

try:
    from agents import FunctionTool
    from agents.items import TResponseInputItem
    from agents.memory import SessionABC, SessionSettings
    from agents.memory.session_settings import resolve_session_limit
    from agents.tool_context import ToolContext
except ImportError as cause:
    raise not_installed("openai-agents", cause) from cause

KEPT = "openai_agents"
TAG = "openai-agents"
SAID_IMPORTANCE = {"user": 0.5, "assistant": 0.4}
NEW_ITEMS_WAIT = "an Agents SDK session (its new items wait)"
# Failures unrelated to the item: it stays pending.
WAITED_OUT: tuple[type[AgentCoreError], ...] = (*UNAVAILABLE, AuthenticationFailed, NotAuthorised)
# Calls, their outputs, reasoning: needed to continue a session, not to be found.
OTHER_IMPORTANCE = 0.1


class AgentCoreSession(SessionABC):
    """A session for `Runner.run(..., session=...)`, over any `MemoryApi`, within `scope`.

    Sessions of the same id and scope are the same session, in any process.

    Over a memory that fails open, a run continues while it is unavailable: new items stay pending in this
    object, in order, until a later call succeeds. Removals (`pop_item`, `clear_session`) raise.
    """

    def __init__(
        self,
        session_id: str,
        memory: MemoryApi,
        scope: MemoryScope | None = None,
        *,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._memory = memory
        self._scope = (scope or MemoryScope()).filters()
        self._waiting: list[list[StoreParams]] = []
        self._adding = asyncio.Lock()

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the items in order; with a limit (default: that of the settings) only the last ones."""
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None and most <= 0:
            return []
        until = deadline(self._memory)
        if self._waiting:
            half = None if until is None else (asyncio.get_running_loop().time() + until) / 2
            await if_answered(self._memory, NEW_ITEMS_WAIT, None, self._add_waiting(), until=half)
        records = await if_answered(self._memory, "an Agents SDK session", [], self._last(most), until=until)
        stored = {record.metadata[KEPT].get("key") for record in records}
        # An item may be stored although the response was lost: deduplicate by key.
        waiting = (each for added in self._waiting for each in added if each.metadata[KEPT]["key"] not in stored)
        items = [*map(_item, records), *map(_item, waiting)]
        return items if most is None else items[-most:]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Appends items."""
        added = [self._stored(place, cast(Mapping[str, Any], item)) for place, item in enumerate(items)]
        if self._memory.fails_open_after_seconds is None:
            await store_all(self._memory, added)
            return
        self._waiting.append(added)
        await if_answered(self._memory, NEW_ITEMS_WAIT, None, self._add_waiting())

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes and returns the last item; None if there is none."""
        await self._add_waiting()
        for record in await self._last(1):
            gone = await self._memory.delete(DeleteParams(memory_ids=[record.memory_id]))
            if gone.deleted_count:
                return _item(record)
        return None

    async def clear_session(self) -> None:
        """Deletes all items of the session; memories that the tools saved in it stay."""
        async with self._adding:
            complete = False
            while not complete:
                complete = (await self._memory.delete(DeleteParams(**self._own(), confirm=True))).complete
            self._waiting.clear()

    async def end(self, *, summarize: bool = True) -> EndSessionResult | None:
        """Ends the conversation: stores a summary that other sessions can find; its items stay.

        Returns the result of `memory.end_session`; None if a memory that fails open is unavailable. Raises
        Conflict if the session contains memories outside the scope.
        """
        return await if_answered(self._memory, "the end of an Agents SDK session", None, self._ended(summarize))

    async def _ended(self, summarize: bool) -> EndSessionResult | None:
        await self._add_waiting()
        return await end_session(self._memory, self.session_id, MemoryScope(**self._scope), summarize=summarize)

    async def _add_waiting(self) -> None:
        problem: AgentCoreError | None = None
        async with self._adding:
            while self._waiting:
                batch = self._waiting[0][:MAX_BATCH_ITEMS]
                try:
                    await store_all(self._memory, batch)
                except WAITED_OUT:
                    raise
                except AgentCoreError as failure:
                    if len(batch) > 1:  # retry one by one to isolate invalid ones; idempotent
                        self._waiting[:1] = [[each] for each in self._waiting[0]]
                        continue
                    problem = problem or failure
                self._waiting[:1] = [left] if (left := self._waiting[0][len(batch) :]) else []
        if problem is not None:
            raise problem

    def _own(self) -> dict[str, Any]:
        return {"session_id": self.session_id, "tags": [TAG], **self._scope}

    async def _last(self, most: int | None) -> list[MemoryRecord]:
        found: list[MemoryRecord] = []
        async for record in listed(self._memory, limit=min(MAX_PAGE, most or MAX_PAGE), consistent=True, **self._own()):
            if KEPT in record.metadata:
                found.append(record)
            if most is not None and len(found) >= most:
                break
        return sorted(found, key=lambda record: (record.timestamp, record.metadata[KEPT]["place"]))

    def _stored(self, place: int, item: Mapping[str, Any]) -> StoreParams:
        speaker = _speaker(item)
        key = f"item:{uuid.uuid4()}"
        return StoreParams(
            # An item without text is not searchable, and no summary quotes it.
            content=_said(item) or PLACEHOLDER_CONTENT,
            speaker=speaker,
            tags=[TAG],
            importance=SAID_IMPORTANCE.get(speaker, OTHER_IMPORTANCE),
            session_id=self.session_id,
            # Sessions keep repetitions, and keep items until they are cleared.
            ttl_seconds=None,
            force=True,
            metadata={KEPT: {"item": json.dumps(item), "place": place, "key": key}},
            # Makes a retry after a lost response idempotent.
            idempotency_key=key,
            **self._scope,
        )


def memory_tools(
    memory: MemoryApi,
    scope: MemoryScope | None = None,
    *,
    tools: Sequence[str] = USUAL_TOOLS,
    template: WorkingTemplate | None = None,
) -> list[FunctionTool]:
    """Returns the memory tools for an agent's `tools`."""
    answering = MemoryTools(memory, scope, tools=tools, template=template)
    return [_function_tool(answering, tool) for tool in answering.definitions]


def _function_tool(tools: MemoryTools, tool: ToolDefinition) -> FunctionTool:
    async def answer(context: ToolContext[Any], arguments: str) -> str:
        apart = tools.apart_from({PLACEHOLDER_CONTENT, *_being_said(context.turn_input)})
        return await apart.call(tool.name, arguments)

    [described] = response_tools([tool])
    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=described["parameters"],
        on_invoke_tool=answer,
        strict_json_schema=described["strict"],
    )


def _being_said(turn_input: Sequence[Any]) -> set[str]:
    newest = itertools.dropwhile(lambda item: _speaker(item) != "user", reversed(turn_input))
    return {_said(item) for item in itertools.takewhile(lambda item: _speaker(item) == "user", newest)}


def _item(record: MemoryRecord | StoreParams) -> TResponseInputItem:
    return cast(TResponseInputItem, json.loads(record.metadata[KEPT]["item"]))


def _speaker(item: Mapping[str, Any]) -> str:
    role = item.get("role")
    return role if isinstance(role, str) and role else "tool"


def _said(item: Mapping[str, Any]) -> str:
    said = " ".join(_texts(item.get("content") or "")) if "role" in item else ""
    return holdable(said).strip()


def _texts(content: Any) -> Iterable[str]:
    for part in content if isinstance(content, list) else [content]:
        text = part.get("text") or part.get("refusal") if isinstance(part, Mapping) else part
        if isinstance(text, str):
            yield text
