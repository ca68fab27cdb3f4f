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
from agentcore.agents.session_memory.table import SESSION_MEMORIES, open_session_memory

__all__ = [
    "CAPABILITIES",
    "SESSION_MEMORIES",
    "Capability",
    "EssentialSessionMemory",
    "MemoryUsage",
    "RetrieveOptions",
    "ScoredMessage",
    "SessionListing",
    "SessionMemory",
    "SessionMessage",
    "SessionParts",
    "SessionSummary",
    "SummarizeOptions",
    "TimeRange",
    "open_session_memory",
]
