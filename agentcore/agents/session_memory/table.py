"""The session memories by name: a new one is a file and a line here."""

from __future__ import annotations

from collections.abc import Mapping

from agentcore.agents.session_memory.memory import SessionMemory, SessionParts
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
