"""The memory API over HTTP."""

from agentcore.client.connection import ENDPOINT, TokenSource
from agentcore.client.memory_client import MemoryClient
from agentcore.client.sync_client import SyncMemoryClient

__all__ = ["ENDPOINT", "MemoryClient", "SyncMemoryClient", "TokenSource"]
