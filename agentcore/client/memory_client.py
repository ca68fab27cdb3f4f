"""One agent's memory over HTTP: every method of `MemoryApi`, tried again where that is safe.

Errors come back as the classes of `agentcore.errors`, the same as in-process.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import logging
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TypeVar, cast

import httpx
import stamina
from pydantic import ValidationError
from starlette.types import ASGIApp

from agentcore.client.batch import Batch
from agentcore.client.connection import NOT_SENT, Body, Connection, Sender
from agentcore.client.credential import Credential, TokenSource
from agentcore.client.sendable import sendable, whole
from agentcore.client.tracing import checked_a2a_context, checked_traceparent
from agentcore.errors import (
    AuthenticationFailed,
    ConfigurationError,
    DependencyUnavailable,
    InternalError,
    NotReady,
    RateLimited,
)
from agentcore.memory.api import MemoryApi
from agentcore.memory.methods import METHODS
from agentcore.memory.models import Receipt, Strict
from agentcore.memory.params.aliases import (
    DeleteAliasParams,
    DeleteAliasResult,
    ListAliasesParams,
    ListAliasesResult,
    SetAliasParams,
    SetAliasResult,
)
from agentcore.memory.params.archive import ArchivedParams, ArchivedResult, RestoreParams, RestoreResult
from agentcore.memory.params.changes import (
    FeedbackParams,
    FeedbackResult,
    HistoryParams,
    HistoryResult,
    RevertParams,
    RevertResult,
    UpdateParams,
    UpdateResult,
)
from agentcore.memory.params.consolidation import ConsolidateParams, ConsolidateResult
from agentcore.memory.params.empty_results import EMPTY_RESULTS, UNAVAILABLE, degraded_receipt
from agentcore.memory.params.erasing import EraseParams, EraseResult
from agentcore.memory.params.layers import (
    ConfigureParams,
    ConfigureResult,
    SettingsParams,
    SettingsResult,
)
from agentcore.memory.params.memories import (
    CompleteTaskParams,
    CompleteTaskResult,
    ContextParams,
    ContextResult,
    CountParams,
    CountResult,
    DeleteParams,
    DeleteResult,
    GetParams,
    GetResult,
    ListParams,
    ListResult,
    PruneParams,
    PruneResult,
    RetrieveParams,
    RetrieveResult,
    StoreBatchParams,
    StoreBatchResult,
    StoreParams,
    StoreResult,
)
from agentcore.memory.params.overview import CapabilitiesParams, CapabilitiesResult, StatsParams, StatsResult
from agentcore.memory.params.sessions import (
    AddSessionParams,
    AddSessionResult,
    ClearParams,
    ClearResult,
    EndSessionParams,
    EndSessionResult,
    SummarizeParams,
    SummarizeResult,
)

LONGEST_RETRY_WAIT_SECONDS = 60.0

_METHODS = {method.attribute: method for method in METHODS}

ResultT = TypeVar("ResultT", bound=Strict)

logger = logging.getLogger(__name__)
# stamina logs each wait: where nobody has set up logging, Python would print that to stderr, without a cause.
logging.getLogger("stamina").addHandler(logging.NullHandler())


class MemoryClient(MemoryApi):
    """One agent's memory, over HTTP. Use it as an async context manager.

    `token` is a JWT, or a callable that gives one (asked again, once, when the service refuses it; in a
    thread, for no longer than `timeout_seconds`, where it is not async).
    A call is tried again only where it cannot store, change or delete twice; a try has `timeout_seconds`.
    With `fail_open`, a search, a context or a summary is empty where the service cannot give one within
    `timeout_seconds` in all: a warning is logged, and the receipt says so. Bad params and tokens still raise.
    """

    def __init__(self, url: str, token: TokenSource, *, timeout_seconds: float = 30.0, max_attempts: int = 3,
                 fail_open: bool = False, traceparent: str | None = None,
                 transport: httpx.AsyncBaseTransport | None = None) -> None:
        if max_attempts < 1 or timeout_seconds <= 0:
            raise ConfigurationError([
                f"max_attempts is at least 1 and timeout_seconds above 0, not {max_attempts} and "
                f"{timeout_seconds}."])
        self._connection = Connection(url, timeout_seconds=timeout_seconds, transport=transport)
        self.url = self._connection.url
        self._sender: Sender = self._connection
        self._credential = Credential(token, timeout_seconds)
        self._timeout_seconds = timeout_seconds
        self._fail_open = fail_open
        self._traceparent = checked_traceparent(traceparent)
        self._a2a_context: dict[str, Any] | None = None
        self._ids = itertools.count(1)
        self._retrying = stamina.AsyncRetryingCaller(
            attempts=max_attempts, timeout=None, wait_initial=0.1, wait_max=5.0, wait_jitter=0.1)

    @classmethod
    def in_process(cls, app: ASGIApp, token: TokenSource, **options: Any) -> Self:
        """A client of an application in this process (`create_app(runtime)`), without a socket."""
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        return cls("http://in-process", token, transport=transport, **options)

    @property
    def fails_open_after_seconds(self) -> float | None:
        return self._timeout_seconds if self._fail_open else None

    async def __aenter__(self) -> Self:
        self._connection.must_be_open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; the client, and every view of it, raises ClientClosed afterwards."""
        await self._connection.close()

    def traced(self, *, traceparent: str | None = None, a2a_context: Mapping[str, Any] | None = None) -> Self:
        """The same client and connections; each call carries a W3C `traceparent` and an `a2a_context`.

        Raises InvalidParams for what no header and no JSON can carry.
        """
        view = copy.copy(self)
        view._traceparent = checked_traceparent(traceparent)
        view._a2a_context = checked_a2a_context(a2a_context)
        return view

    def batched(self) -> Self:
        """The same client; calls made at the same time (`asyncio.gather`) go as one JSON-RPC batch."""
        view = copy.copy(self)
        view._sender = Batch(self._connection)
        return view

    async def store(self, params: StoreParams) -> StoreResult:
        _must_fit("store", params)
        return await self._call("store", params, StoreResult, repeatable=params.idempotency_key is not None)

    async def store_batch(self, params: StoreBatchParams) -> StoreBatchResult:
        _must_fit("store_batch", params)
        self._connection.must_be_open()
        items = sendable(params.items)
        if items:
            keyed = all(item.idempotency_key is not None for item in items)
            sent = params.model_copy(update={"items": items})
            stored = await self._call("store_batch", sent, StoreBatchResult, repeatable=keyed)
        else:
            stored = StoreBatchResult(success=False, results=[], receipt=Receipt())
        return whole(params.items, stored)

    async def retrieve(self, params: RetrieveParams) -> RetrieveResult:
        return await self._call("retrieve", params, RetrieveResult)

    async def get_context(self, params: ContextParams) -> ContextResult:
        return await self._call("get_context", params, ContextResult)

    async def update(self, params: UpdateParams) -> UpdateResult:
        return await self._call("update", params, UpdateResult)

    async def history(self, params: HistoryParams) -> HistoryResult:
        return await self._call("history", params, HistoryResult)

    async def revert(self, params: RevertParams) -> RevertResult:
        return await self._call("revert", params, RevertResult)

    async def feedback(self, params: FeedbackParams) -> FeedbackResult:
        return await self._call("feedback", params, FeedbackResult)

    async def prune(self, params: PruneParams) -> PruneResult:
        _must_fit("prune", params)
        return await self._call("prune", params, PruneResult, repeatable=params.dry_run)

    async def restore(self, params: RestoreParams) -> RestoreResult:
        _must_fit("restore", params)
        return await self._call("restore", params, RestoreResult, repeatable=params.dry_run)

    async def archived(self, params: ArchivedParams = ArchivedParams()) -> ArchivedResult:
        return await self._call("archived", params, ArchivedResult)

    async def get(self, params: GetParams) -> GetResult:
        return await self._call("get", params, GetResult)

    async def list(self, params: ListParams = ListParams()) -> ListResult:
        return await self._call("list", params, ListResult)

    async def count(self, params: CountParams = CountParams()) -> CountResult:
        return await self._call("count", params, CountResult)

    async def delete(self, params: DeleteParams) -> DeleteResult:
        return await self._call("delete", params, DeleteResult)

    async def stats(self, params: StatsParams = StatsParams()) -> StatsResult:
        return await self._call("stats", params, StatsResult)

    async def erase(self, params: EraseParams) -> EraseResult:
        return await self._call("erase", params, EraseResult)

    async def capabilities(self, params: CapabilitiesParams = CapabilitiesParams()) -> CapabilitiesResult:
        return await self._call("capabilities", params, CapabilitiesResult)

    async def complete_task(self, params: CompleteTaskParams) -> CompleteTaskResult:
        return await self._call("complete_task", params, CompleteTaskResult)

    async def add_session(self, params: AddSessionParams) -> AddSessionResult:
        _must_fit("add_session", params)
        self._connection.must_be_open()
        messages = sendable(params.messages)
        if messages:
            keyed = all(message.message_id is not None for message in messages)
            sent = params.model_copy(update={"messages": messages})
            added = await self._call("add_session", sent, AddSessionResult, repeatable=keyed)
        else:
            added = AddSessionResult(
                success=True, session_id=params.session_id, stored_count=0, results=[], receipt=Receipt())
        return whole(params.messages, added)

    async def end_session(self, params: EndSessionParams) -> EndSessionResult:
        return await self._call("end_session", params, EndSessionResult)

    async def summarize(self, params: SummarizeParams) -> SummarizeResult:
        return await self._call("summarize", params, SummarizeResult)

    async def clear(self, params: ClearParams) -> ClearResult:
        return await self._call("clear", params, ClearResult)

    async def settings(self, params: SettingsParams = SettingsParams()) -> SettingsResult:
        return await self._call("settings", params, SettingsResult)

    async def configure(self, params: ConfigureParams) -> ConfigureResult:
        return await self._call("configure", params, ConfigureResult, repeatable=True)

    async def consolidate(self, params: ConsolidateParams = ConsolidateParams()) -> ConsolidateResult:
        return await self._call("consolidate", params, ConsolidateResult, repeatable=True)

    async def set_alias(self, params: SetAliasParams) -> SetAliasResult:
        return await self._call("set_alias", params, SetAliasResult, repeatable=True)

    async def delete_alias(self, params: DeleteAliasParams) -> DeleteAliasResult:
        return await self._call("delete_alias", params, DeleteAliasResult)

    async def list_aliases(self, params: ListAliasesParams = ListAliasesParams()) -> ListAliasesResult:
        return await self._call("list_aliases", params, ListAliasesResult)

    async def _call(self, attribute: str, params: Strict, result: type[ResultT], *,
                    repeatable: bool = False) -> ResultT:
        _must_fit(attribute, params)
        method = _METHODS[attribute]
        safe = repeatable or method.scope == "memory:read"
        # Only what the caller gave: the service's defaults are the service's business.
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": next(self._ids), "method": method.name,
                                "params": params.model_dump(mode="json", exclude_unset=True)}
        if self._a2a_context is not None:
            body["a2a_context"] = self._a2a_context
        if self._fail_open and attribute in EMPTY_RESULTS:
            return await self._or_empty(attribute, body, result)
        return await self._result(body, safe, result)

    async def _or_empty(self, attribute: str, body: Body, result: type[ResultT]) -> ResultT:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._result(body, True, result)
        except TimeoutError:
            reason = f"The service at {self.url} did not answer within {self._timeout_seconds:g} s."
        except UNAVAILABLE as failure:
            reason = failure.message
        logger.warning("%s goes without memory: %s", body["method"], reason)
        return cast(ResultT, EMPTY_RESULTS[attribute](degraded_receipt(reason)))

    async def _result(self, body: Body, safe: bool, result: type[ResultT]) -> ResultT:
        async def attempt() -> Any:
            return await self._authenticated(body)

        answer = await self._retrying(lambda error: _again(error, safe), attempt)
        try:
            # A newer service may say more than this client knows.
            return result.model_validate(answer, extra="ignore")
        except ValidationError as cause:
            raise InternalError(
                f"The service answered {body['method']} with a result this client cannot read: "
                f"{cause.error_count()} fields are missing or of another type.") from cause

    async def _authenticated(self, body: Body) -> Any:
        token = await self._credential.token()
        try:
            return await self._sender.send(body, token, self._traceparent)
        except AuthenticationFailed:
            if not self._credential.renewable:
                raise
        renewed = await self._credential.token(refused=token)
        return await self._sender.send(body, renewed, self._traceparent)


def _must_fit(attribute: str, params: object) -> None:
    """Raises TypeError for what is no instance of the method's params, and names their class."""
    kind = _METHODS[attribute].params
    if not isinstance(params, kind):
        raise TypeError(f"{attribute} takes a {kind.__name__} (from agentcore.params), not a "
                        f"{type(params).__name__}: {attribute}({kind.__name__}(...))")


def _again(error: Exception, repeatable: bool) -> bool | float:
    """Whether to try again, or in how many seconds."""
    if isinstance(error, RateLimited):
        wait = error.data.get("retry_after_seconds")
        if not isinstance(wait, int | float):
            return True
        return float(wait) if wait <= LONGEST_RETRY_WAIT_SECONDS else False
    if isinstance(error, NotReady):
        return True
    unsure = isinstance(error, DependencyUnavailable) and error.retryable
    return unsure and (repeatable or isinstance(error.__cause__, NOT_SENT))
