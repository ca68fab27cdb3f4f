"""A framework's session memory: kept in this process, in Redis, by the service, or in tiers."""

from agentcore.agents.session_memory.memory import EssentialSessionMemory, SessionMemory, SessionParts
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
from agentcore.agents.session_memory.session_context import SessionContext, session_context
from agentcore.agents.session_memory.strategies import (
    ImportanceWeighting,
    SelectionStrategy,
    SlidingWindow,
    Summarization,
    TokenBudget,
)
from agentcore.agents.session_memory.table import SESSION_MEMORIES, open_session_memory

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
