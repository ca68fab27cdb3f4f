"""The memory.* methods as the RPC edge answers them, derived from `METHODS`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from agentcore.errors import WIRE_ERRORS, InvalidParams, NotAuthorised
from agentcore.memory.api import METHODS, AnyMethod, Caller, MemoryApi
from agentcore.memory.models import Strict
from agentcore.memory.params.archive import ArchiveFilters
from agentcore.memory.params.memories import DeleteParams, Filters, StoreBatchParams, StoreParams
from agentcore.memory.params.sessions import AddSessionParams
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
            name=method.name, params=method.params, result=method.result, handler=_handler(method),
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


def _handler(method: AnyMethod) -> Callable[[MemoryCall, Any], Awaitable[Any]]:
    async def call_memory(call: MemoryCall, params: Any) -> Any:
        if call.caller.users is not None:
            params = within_users(method, params, call.caller.users)
        return await getattr(call.memory, method.attribute)(params)

    return call_memory


def within_users(method: AnyMethod, params: Any, users: Set[str | None]) -> Any:
    """Restrict the params of a call to the users of its token: narrow filters, fill in the user of a store.

    Raises NotAuthorised for a method that acts on all users and for a store for another one, InvalidParams
    where a store must name one of several users. Rows by id are hidden by row security.
    """
    if not method.for_users:
        raise NotAuthorised(f"This token is bound to users, and {method.name} acts on all of them.")
    if isinstance(params, DeleteParams) and (params.all or params.memory_ids):
        return params.model_copy(update={"all": False, "user_id": [*users]})
    if isinstance(params, Filters | ArchiveFilters):
        asked = params.user_id if isinstance(params.user_id, list) else [params.user_id]
        narrowed = [*users] if params.user_id is None else [each for each in asked if each in users]
        return params.model_copy(update={"user_id": narrowed})
    if isinstance(params, StoreBatchParams):
        return params.model_copy(update={"items": [_owned(each, users) for each in params.items]})
    return _owned(params, users) if isinstance(params, StoreParams | AddSessionParams) else params


def _owned(params: Any, users: Set[str | None]) -> Any:
    given = params.user_id or getattr(getattr(params, "interaction", None), "user_id", None)
    if given in users:
        return params
    if given is not None:
        raise NotAuthorised("This token is not bound to the user that the memory is stored for.")
    if len(users) > 1:
        raise InvalidParams("user_id is missing: this token is bound to several users",
                            data={"field": "user_id"})
    return params.model_copy(update={"user_id": next(iter(users))})
