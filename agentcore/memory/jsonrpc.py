"""The memory.* methods as the RPC edge answers them, derived from `METHODS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentcore.errors import (
    AuthenticationFailed,
    Conflict,
    DependencyUnavailable,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    NotAuthorised,
    NotFound,
    NotReady,
    ParseError,
    RateLimited,
    TooLarge,
)
from agentcore.memory.api import Caller, MemoryApi
from agentcore.memory.methods import METHODS
from agentcore.memory.models import Strict
from agentcore.openrpc import openrpc_document
from agentcore.rpc import RpcMethod

DISCOVER = "rpc.discover"
TITLE = "AgentCore Memory"
# The version of the contract, not of the package: it grows when params or results do.
CONTRACT_VERSION = "1.0.0"
ERRORS = (
    ParseError, InvalidRequest, MethodNotFound, InvalidParams, InternalError, NotFound, Conflict, TooLarge,
    RateLimited, DependencyUnavailable, NotReady, AuthenticationFailed, NotAuthorised,
)
# What an array of params gives, in order, method by method. Everything else goes by name.
POSITIONAL = {
    "memory.store": ("interaction",),
    "memory.store_batch": ("items",),
    "memory.retrieve": ("query", "k", "memory_types"),
    "memory.get_context": ("query", "task_id", "max_tokens"),
    "memory.update": ("memory_id", "updates"),
    "memory.history": ("memory_id",),
    "memory.revert": ("memory_id", "version"),
    "memory.feedback": ("memory_id", "verdict"),
    "memory.prune": ("memory_layer", "strategy"),
    "memory.get": ("memory_id",),
    "memory.complete_task": ("task_id",),
    "memory.add_session": ("session_id", "messages"),
    "memory.end_session": ("session_id",),
    "memory.set_alias": ("alias", "means"),
    "memory.delete_alias": ("alias",),
}


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
            summary=method.summary, scope=method.scope, positional=POSITIONAL.get(method.name, ()),
            reads=method.scope == "memory:read",
        )
        for method in METHODS
    ]
    document = service_document(methods)

    async def discover(call: MemoryCall, params: DiscoverParams) -> dict[str, Any]:
        return document

    return [*methods, RpcMethod(
        name=DISCOVER, params=DiscoverParams, result=dict[str, Any], handler=discover,
        summary="The OpenRPC document of this service.", reads=True)]


def service_document(methods: Sequence[RpcMethod[MemoryCall]]) -> dict[str, Any]:
    """The OpenRPC document of the memory methods; discovery itself is no part of it."""
    described = [method for method in methods if method.name != DISCOVER]
    return openrpc_document(described, ERRORS, title=TITLE, version=CONTRACT_VERSION)


def _handler(attribute: str) -> Callable[[MemoryCall, Any], Awaitable[Any]]:
    async def call_memory(call: MemoryCall, params: Any) -> Any:
        return await getattr(call.memory, attribute)(params)

    return call_memory
