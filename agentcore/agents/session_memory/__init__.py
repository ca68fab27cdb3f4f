"""A framework's session memory: kept in this process, in Redis, by the service, or in tiers."""

from collections.abc import Mapping

from agentcore.agents.session_memory.memory import (
    EssentialSessionMemory,
    SessionContext,
    SessionMemory,
    SessionParts,
    session_context,
)
from agentcore.agents.session_memory.messages import (
    CAPABILITIES,
    Capability,
    MemoryUsage,
    RetrieveOptions,
    ScoredMessage,
    SessionListing,
    SessionMessage,
    SessionSummary,
    SummarizeOptions,
    TimeRange,
)
from agentcore.agents.session_memory.strategies import (
    ImportanceWeighting,
    SelectionStrategy,
    SlidingWindow,
    Summarization,
    TokenBudget,
)
from agentcore.registry import resolve

_HERE = "agentcore.agents.session_memory"
# name -> module:class; the class has `over(parts)`.
SESSION_MEMORIES: Mapping[str, str] = {
    "in_memory": f"{_HERE}.in_memory:InMemorySessionMemory",
    "in_memory_vector": f"{_HERE}.in_memory_vector:InMemoryVectorSessionMemory",
    "redis": f"{_HERE}.redis_memory:RedisSessionMemory",
    "vector": f"{_HERE}.vector:VectorSessionMemory",
    "hierarchical": f"{_HERE}.hierarchical:HierarchicalSessionMemory",
}


def open_session_memory(name: str, parts: SessionParts | None = None) -> SessionMemory:
    """The session memory of that name, or of the path `module:class`, with its usual bounds.

    Raises ConfigurationError where there is none, or where a part that it needs is not given.
    """
    made: SessionMemory = resolve(name, SESSION_MEMORIES, kind="session memory").over(parts or SessionParts())
    return made


__all__ = [
    "CAPABILITIES",
    "SESSION_MEMORIES",
    "Capability",
    "EssentialSessionMemory",
    "ImportanceWeighting",
    "MemoryUsage",
    "RetrieveOptions",
    "ScoredMessage",
    "SelectionStrategy",
    "SessionContext",
    "SessionListing",
    "SessionMemory",
    "SessionMessage",
    "SessionParts",
    "SessionSummary",
    "SlidingWindow",
    "Summarization",
    "SummarizeOptions",
    "TimeRange",
    "TokenBudget",
    "open_session_memory",
    "session_context",
]
