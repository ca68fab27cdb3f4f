"""Memory as google-adk's memory service, and the memory tools as ADK tools. An app is a namespace."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from agentcore.agents.ending import end_session
from agentcore.agents.failing_open import if_answered
from agentcore.agents.recordable import holdable, searchable
from agentcore.agents.scope import MemoryScope
from agentcore.agents.tool_operations import Confirmations
from agentcore.agents.tools import USUAL_TOOLS, MemoryTools, ToolDefinition, definition_of, definitions_of
from agentcore.agents.working_template import WorkingTemplate
from agentcore.errors import JsonRpcErrorCode, NotFound
from agentcore.integrations import listed, not_installed, store_all
from agentcore.limits import MAX_PAGE
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import MemorySummary, MemoryType
from agentcore.memory.params.memories import DeleteParams, GetParams, RetrieveParams, StoreParams
from agentcore.memory.params.sessions import EndSessionResult

try:
    from google.adk.events.event import Event
    from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
    from google.adk.memory.memory_entry import MemoryEntry
    from google.adk.sessions.session import Session
    from google.adk.tools.base_tool import BaseTool
    from google.adk.tools.tool_context import ToolContext
    from google.genai import types
except ImportError as cause:
    raise not_installed("google-adk", cause) from cause

MODEL = "model"
MODEL_IMPORTANCE = 0.4
MOST_SESSIONS = 1_000
# Fields of `custom_metadata` that are options of a store; the others are stored as metadata.
_STORE_FIELDS = ("importance", "tags", "ttl_seconds")
_KEPT_FIELDS = ("role", "author")


class AgentCoreMemoryService(BaseMemoryService):
    """The `memory_service` of a Runner, over any `MemoryApi`. `limit`: the maximum of hits of a search.

    Stores the text of an event. `importance`, `tags` and `ttl_seconds` in `custom_metadata` are those of
    `memory.store`; its other fields are returned with the memory.

    Over a memory that fails open, a failed `add_session_to_memory` logs a warning: ADK has the session, and
    the next call stores all of it. Data that is passed only once (`add_events_to_memory`, `add_memory`) and
    deletions raise.
    """

    def __init__(self, memory: MemoryApi, *, limit: int = 10) -> None:
        self._memory = memory
        self._limit = limit
        # Ids of stored events by session: for a long session only new ones are looked up.
        self._kept: dict[MemoryScope, set[str | None]] = {}

    async def add_session_to_memory(self, session: Session) -> None:
        """Stores the session's events; of a session added before, the new ones."""
        await if_answered(
            self._memory,
            "an ADK session (the next call keeps it)",
            None,
            self.add_events_to_memory(
                app_name=session.app_name, user_id=session.user_id, events=session.events, session_id=session.id
            ),
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Stores these events, each once; an event that was deleted is not stored again with its session."""
        own = MemoryScope(namespace=app_name, user_id=user_id, session_id=session_id)
        kept = self._kept.get(own, set())
        items = [
            item
            for event in events
            if event.id not in kept
            if (item := _of_event(event, own, custom_metadata or {})) is not None
        ]
        known = await self._known(own, items) if session_id is not None and items else frozenset()
        new = [item for item in items if item.external_id not in known]
        # The same event with other text, as after a change of `custom_metadata`: the stored one stays.
        await store_all(self._memory, new, pass_over=frozenset({JsonRpcErrorCode.CONFLICT}))
        if session_id is not None:
            self._remember(own, items)

    def _remember(self, own: MemoryScope, items: Iterable[StoreParams]) -> None:
        # Moved to the end: the first is the longest idle, and is evicted.
        self._kept[own] = self._kept.pop(own, set()) | {item.external_id for item in items}
        if len(self._kept) > MOST_SESSIONS:
            del self._kept[next(iter(self._kept))]

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Stores facts verbatim in the semantic layer. Raises Conflict if an id exists with another text."""
        own = MemoryScope(namespace=app_name, user_id=user_id)
        items = [_of_entry(entry, own, custom_metadata or {}) for entry in memories]
        await store_all(self._memory, [item for item in items if item is not None])

    async def end_session(self, session: Session, *, summarize: bool = True) -> EndSessionResult | None:
        """Ends a session that was added: stores a summary that later sessions of its user can find.

        Returns the result of `memory.end_session`; None if a memory that fails open is unavailable. Raises
        Conflict if another user or app has a session of the same id.
        """
        own = MemoryScope(namespace=session.app_name, user_id=session.user_id)
        return await if_answered(
            self._memory,
            "the end of an ADK session",
            None,
            end_session(self._memory, session.id, own, summarize=summarize),
        )

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Returns the best matches, best first; may be empty."""
        if not (asked := searchable(query)):
            return SearchMemoryResponse()
        found = await self._memory.retrieve(
            RetrieveParams(query=asked, k=self._limit, namespace=app_name, user_id=user_id)
        )
        return SearchMemoryResponse(memories=[_entry(memory) for memory in found.memories])

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Deletes one memory by the id of its entry; ignores an id that this user does not own."""
        with suppress(NotFound, ValueError):
            wanted = UUID(memory_id or "")
            record = (await self._memory.get(GetParams(memory_id=wanted, consistent=True))).memory
            if MemoryScope(namespace=app_name, user_id=user_id).holds(record):
                await self._memory.delete(DeleteParams(memory_ids=[wanted]))

    async def _known(self, own: MemoryScope, items: Iterable[StoreParams]) -> frozenset[str | None]:
        first = min(item.timestamp for item in items if item.timestamp is not None)
        records = listed(
            self._memory, session_id=own.session_id, after=first, limit=MAX_PAGE, consistent=True, **own.filters()
        )
        return frozenset([record.external_id async for record in records])


class AgentCoreTool(BaseTool):
    """One memory tool as an ADK tool, scoped to the app and user of the call."""

    def __init__(
        self,
        memory: MemoryApi,
        definition: ToolDefinition,
        confirmations: Confirmations,
        template: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(name=definition.name, description=definition.description)
        self._memory = memory
        self._definition = definition
        self._confirmations = confirmations
        self._template = template

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=dict(self._definition.parameters)
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> str:
        """Calls the tool; returns its answer as text for the model."""
        session = tool_context.session
        scope = MemoryScope(namespace=session.app_name, user_id=session.user_id, session_id=session.id)
        own = MemoryScope(namespace=session.app_name, user_id=session.user_id)
        template = None if self._template is None else WorkingTemplate(self._memory, self._template, own)
        tools = MemoryTools(
            self._memory,
            scope,
            tools=() if template else (self.name,),
            confirmations=self._confirmations,
            template=template,
        )
        return await tools.call(self.name, args)


def memory_tools(
    memory: MemoryApi, *, tools: Sequence[str] = USUAL_TOOLS, template: Mapping[str, str] | None = None
) -> list[BaseTool]:
    """Returns the memory tools for an agent's `tools`.

    With `template`, the fields of a `WorkingTemplate`, adds `fill_template`: one for each user of an app.
    """
    confirmations = Confirmations()
    bound: list[BaseTool] = [AgentCoreTool(memory, each, confirmations) for each in definitions_of(tools)]
    if template is not None:
        filling = definition_of(WorkingTemplate(memory, template))
        bound.append(AgentCoreTool(memory, filling, confirmations, template))
    return bound


def _of_event(event: Event, own: MemoryScope, custom: Mapping[str, object]) -> StoreParams | None:
    text = "" if event.partial else _text(event.content)
    if not text:
        return None
    role = (event.content.role if event.content is not None else None) or "user"
    given: dict[str, Any] = {"importance": MODEL_IMPORTANCE} if role == MODEL else {}
    return StoreParams(
        content=text,
        timestamp=datetime.fromtimestamp(event.timestamp, UTC),
        external_id=event.id,
        idempotency_key=_key("event", own, event.id),
        **_speaking(role, event.author),
        **given | _given(custom, role=role, author=event.author),
        **own.labels(),
    )


def _of_entry(entry: MemoryEntry, own: MemoryScope, custom: Mapping[str, object]) -> StoreParams | None:
    text = _text(entry.content)
    if not text:
        return None
    role = entry.content.role or "user"
    said: Mapping[str, object] = {**entry.custom_metadata, **custom}
    return StoreParams(
        content=text,
        memory_type=MemoryType.SEMANTIC,
        timestamp=_moment(entry.timestamp),
        external_id=entry.id,
        idempotency_key=None if entry.id is None else _key("memory", own, entry.id),
        **_speaking(role, entry.author),
        **_given(said, role=role, author=entry.author),
        **own.labels(),
    )


def _entry(memory: MemorySummary) -> MemoryEntry:
    said = memory.metadata
    return MemoryEntry(
        id=str(memory.memory_id),
        author=said.get("author") or memory.speaker,
        content=types.Content(role=said.get("role") or "user", parts=[types.Part(text=memory.content)]),
        timestamp=memory.timestamp.isoformat(),
        custom_metadata={name: each for name, each in said.items() if name not in _KEPT_FIELDS},
    )


def _text(content: types.Content | None) -> str:
    parts = (content.parts if content is not None else None) or []
    said = " ".join(part.text for part in parts if part.text and not part.thought)
    return holdable(said).strip()


def _speaking(role: str, author: str | None) -> dict[str, Any]:
    speaker = "assistant" if role == MODEL else author
    return {"speaker": speaker} if speaker else {}


def _given(custom: Mapping[str, object], **kept: str | None) -> dict[str, Any]:
    own = {name: custom[name] for name in _STORE_FIELDS if name in custom}
    rest = {name: each for name, each in custom.items() if name not in own}
    return {**own, "metadata": {**rest, **{name: each for name, each in kept.items() if each}}}


def _moment(timestamp: str | None) -> datetime | None:
    with suppress(ValueError):
        return datetime.fromisoformat(timestamp or "")
    return None


def _key(kind: str, own: MemoryScope, own_id: str) -> str:
    parts = ("google-adk", kind, own.namespace or "", own.user_id or "", own.session_id or "", own_id)
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()
