"""Session memory of an agent framework."""

from collections.abc import Mapping

from agentcore.agents.session_memory.memory import BasicSessionMemory as BasicSessionMemory
from agentcore.agents.session_memory.memory import SessionContext as SessionContext
from agentcore.agents.session_memory.memory import SessionMemory as SessionMemory
from agentcore.agents.session_memory.memory import SessionParts as SessionParts
from agentcore.agents.session_memory.memory import session_context as session_context
from agentcore.agents.session_memory.messages import CAPABILITIES as CAPABILITIES
from agentcore.agents.session_memory.messages import Capability as Capability
from agentcore.agents.session_memory.messages import MemoryUsage as MemoryUsage
from agentcore.agents.session_memory.messages import RetrieveOptions as RetrieveOptions
from agentcore.agents.session_memory.messages import ScoredMessage as ScoredMessage
from agentcore.agents.session_memory.messages import SessionListing as SessionListing
from agentcore.agents.session_memory.messages import SessionMessage as SessionMessage
from agentcore.agents.session_memory.messages import SessionSummary as SessionSummary
from agentcore.agents.session_memory.messages import SummarizeOptions as SummarizeOptions
from agentcore.agents.session_memory.messages import TimeRange as TimeRange
from agentcore.agents.session_memory.selection import ImportanceWeighting as ImportanceWeighting
from agentcore.agents.session_memory.selection import SelectionStrategy as SelectionStrategy
from agentcore.agents.session_memory.selection import SlidingWindow as SlidingWindow
from agentcore.agents.session_memory.selection import Summarization as Summarization
from agentcore.agents.session_memory.selection import TokenBudget as TokenBudget
from agentcore.registry import resolve

_HERE = "agentcore.agents.session_memory"
# name -> module:class; the class has `over(parts)`.
SESSION_MEMORIES: Mapping[str, str] = {
    "in_memory": f"{_HERE}.in_memory:InMemorySessionMemory",
    "in_memory_vector": f"{_HERE}.in_memory:InMemoryVectorSessionMemory",
    "redis": f"{_HERE}.redis_memory:RedisSessionMemory",
    "vector": f"{_HERE}.vector:VectorSessionMemory",
    "hierarchical": f"{_HERE}.hierarchical:HierarchicalSessionMemory",
}


def open_session_memory(name: str, parts: SessionParts | None = None) -> SessionMemory:
    """Creates the session memory of this name or path `module:class`. Raises ConfigurationError."""
    made: SessionMemory = resolve(name, SESSION_MEMORIES, kind="session memory").over(parts or SessionParts())
    return made
