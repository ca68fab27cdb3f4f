"""AgentCore Memory: a memory service for AI agents. Each exported name is imported when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentcore.agents.memory_enabled_agent import MemoryEnabledAgent as MemoryEnabledAgent
    from agentcore.agents.open_memory import open_memory as open_memory
    from agentcore.client import MemoryClient as MemoryClient
    from agentcore.client import SyncMemoryClient as SyncMemoryClient
    from agentcore.client import TokenSource as TokenSource
    from agentcore.errors import *  # noqa: F403
    from agentcore.params import *  # noqa: F403

__version__ = "0.1.0"

_SOURCES = {
    "MemoryEnabledAgent": "agentcore.agents.memory_enabled_agent",
    "open_memory": "agentcore.agents.open_memory",
    "MemoryClient": "agentcore.client",
    "SyncMemoryClient": "agentcore.client",
    "TokenSource": "agentcore.client",
}


def _params() -> list[str]:
    return [name for name in vars(import_module("agentcore.params")) if name[0].isupper()]


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return sorted([*_SOURCES, *import_module("agentcore.errors").__all__, *_params()])
    source = _SOURCES.get(name)
    # Submodule names are lower case: the import system resolves them after the AttributeError.
    if source is None and name[:1].isupper():
        if name in import_module("agentcore.errors").__all__:
            source = "agentcore.errors"
        elif name in _params():
            source = "agentcore.params"
    if source is None:
        raise AttributeError(f"module 'agentcore' has no attribute {name!r}")
    return globals().setdefault(name, getattr(import_module(source), name))


def __dir__() -> list[str]:
    return [*globals(), *__getattr__("__all__")]
