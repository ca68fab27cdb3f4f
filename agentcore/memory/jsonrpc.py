"""The memory.* methods as the RPC edge answers them, derived from `METHODS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentcore.errors import WIRE_ERRORS
from agentcore.memory.api import METHODS, Caller, MemoryApi
from agentcore.memory.models import Strict
from agentcore.openrpc import openrpc_document
from agentcore.rpc import RpcMethod

DISCOVER = "rpc.discover"
TITLE = "AgentCore Memory"
# The version of the contract, not of the package: it grows when params or results do.
CONTRACT_VERSION = "1.0.0"


@dataclass(frozen=True)
class MemoryCall:
    """What one call acts on: the caller's own memory."""

    memory: MemoryApi
    caller: Caller


class DiscoverParams(Strict):
    """Nothing to say."""


def memory_methods() -> list[RpcMethod[MemoryCall]]:
    """Every `memory.*` method, and `rpc.discover`, which needs a token but no scope."""
    methods = [
        RpcMethod(
            name=method.name, params=method.params, result=method.result, handler=_handler(method.attribute),
            summary=method.summary, scope=method.scope, positional=method.positional,
        )
        for method in METHODS
    ]
    document = service_document(methods)

    async def discover(call: MemoryCall, params: DiscoverParams) -> dict[str, Any]:
        return document

    return [*methods, RpcMethod(
        name=DISCOVER, params=DiscoverParams, result=dict[str, Any], handler=discover,
        summary="The OpenRPC document of this service.")]


def service_document(methods: Sequence[RpcMethod[MemoryCall]]) -> dict[str, Any]:
    """The OpenRPC document of the memory methods; discovery itself is no part of it."""
    described = [method for method in methods if method.name != DISCOVER]
    return openrpc_document(described, WIRE_ERRORS, title=TITLE, version=CONTRACT_VERSION)


def _handler(attribute: str) -> Callable[[MemoryCall, Any], Awaitable[Any]]:
    async def call_memory(call: MemoryCall, params: Any) -> Any:
        return await getattr(call.memory, attribute)(params)

    return call_memory
