"""Ends a conversation."""

from __future__ import annotations

from typing import Any

from agentcore.agents.scope import SESSION_MESSAGES, MemoryScope
from agentcore.agents.working_template import namespace_of
from agentcore.errors import Conflict
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.memories import CountParams
from agentcore.memory.params.sessions import EndSessionParams, EndSessionResult

OTHERS_SPEAK = (
    "Others than this user have memories in the session {!r}, and its summary would tell them of each other. "
    "Give each user's sessions ids of their own."
)


async def end_session(
    memory: MemoryApi, session_id: str, scope: MemoryScope | None = None, *, summarize: bool = True
) -> EndSessionResult:
    """Ends a session. Raises Conflict if it contains memories outside the scope."""
    scope = scope or MemoryScope()
    filters = scope.filters()
    if filters:
        own = await memory.count(CountParams(session_id=session_id, consistent=True, **filters))
        whole = await memory.count(CountParams(session_id=session_id, consistent=True))
        beside = await _kept_beside(memory, session_id, filters)
        if "namespace" in filters:
            template = CountParams(session_id=session_id, namespace=namespace_of(scope), consistent=True)
            beside += (await memory.count(template)).count
        if whole.count - own.count != beside:
            raise Conflict(OTHERS_SPEAK.format(session_id))
    return await memory.end_session(EndSessionParams(session_id=session_id, summarize=summarize))


async def _kept_beside(memory: MemoryApi, session_id: str, filters: dict[str, Any]) -> int:
    if filters.get("namespace") == SESSION_MESSAGES:
        return 0
    beside = await memory.count(CountParams(session_id=session_id, namespace=SESSION_MESSAGES, consistent=True))
    if "namespace" in filters or not beside.count:
        return beside.count
    own = await memory.count(
        CountParams(session_id=session_id, consistent=True, **(filters | {"namespace": SESSION_MESSAGES}))
    )
    return beside.count - own.count
