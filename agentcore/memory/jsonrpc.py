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
from agentcore.limits import MAX_IDS, MAX_PAGE
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

# What a call costs beside its 1 unit, for the rate limit: docs/operations.md explains it.
ROWS_A_UNIT = 50
EMBEDS_ONE = frozenset({"memory.store", "memory.retrieve", "memory.get_context", "memory.update"})
READS_MANY = frozenset({
    "memory.prune", "memory.clear", "memory.restore", "memory.consolidate", "memory.summarize",
    "memory.erase", "memory.end_session"})
UNITS_OF_MANY = 20


@dataclass(frozen=True)
class MemoryCall:
    """What one call acts on: the caller's own memory."""

    memory: MemoryApi
    caller: Caller


class DiscoverParams(Strict):
    """Nothing to say."""


def cost_of(method: str, params: dict[str, Any] | list[Any]) -> int:
    """Returns the units that a call costs: 1, and 1 for each text to embed and for every 50 rows to read."""
    names = POSITIONAL.get(method, ())
    given = params if isinstance(params, dict) else dict(zip(names, params, strict=False))
    lists = {name: len(each) for name, each in given.items() if isinstance(each, list)}
    numbers = {name: max(0, each) for name, each in given.items() if isinstance(each, int)}
    texts = lists.get("items", 0) + lists.get("messages", 0) + (method in EMBEDS_ONE)
    asked = numbers.get("k", 0) + numbers.get("limit", 0) + numbers.get("max_tokens", 0) // 20
    rows = min(asked, MAX_PAGE) + min(lists.get("memory_ids", 0), MAX_IDS)
    return 1 + texts + rows // ROWS_A_UNIT + (UNITS_OF_MANY if method in READS_MANY else 0)


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
