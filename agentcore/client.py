"""The memory API over HTTP: one agent's token, one connection pool, retries where they are safe.

Errors come back as the classes of `agentcore.errors`, the same as in-process.
"""

from __future__ import annotations

import asyncio
import copy
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import stamina
from pydantic import ValidationError

from agentcore.errors import (
    AgentCoreError,
    AuthenticationFailed,
    ClientClosed,
    ConfigurationError,
    DependencyUnavailable,
    NotReady,
    RateLimited,
    TooLarge,
    from_wire,
)
from agentcore.memory.alias_params import (
    DeleteAliasParams,
    DeleteAliasResult,
    ListAliasesParams,
    ListAliasesResult,
    SetAliasParams,
    SetAliasResult,
)
from agentcore.memory.api import MemoryApi
from agentcore.memory.archive_params import ArchivedParams, ArchivedResult, RestoreParams, RestoreResult
from agentcore.memory.change_params import (
    FeedbackParams,
    FeedbackResult,
    HistoryParams,
    HistoryResult,
    RevertParams,
    RevertResult,
    UpdateParams,
    UpdateResult,
)
from agentcore.memory.consolidation_params import ConsolidateParams, ConsolidateResult
from agentcore.memory.erase_params import EraseParams, EraseResult
from agentcore.memory.layer_params import (
    ConfigureParams,
    ConfigureResult,
    SettingsParams,
    SettingsResult,
)
from agentcore.memory.methods import METHODS
from agentcore.memory.models import Strict
from agentcore.memory.params import (
    CapabilitiesParams,
    CapabilitiesResult,
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
    StatsParams,
    StatsResult,
    StoreBatchParams,
    StoreBatchResult,
    StoreParams,
    StoreResult,
)
from agentcore.memory.session_params import (
    AddSessionParams,
    AddSessionResult,
    ClearParams,
    ClearResult,
    EndSessionParams,
    EndSessionResult,
    SummarizeParams,
    SummarizeResult,
)

ENDPOINT = "/api/v1/jsonrpc"
LONGEST_RETRY_WAIT_SECONDS = 60.0
TokenSource = str | Callable[[], str | Awaitable[str]]

_METHODS = {method.attribute: method for method in METHODS}
# The request never left this process, so even a call that must not run twice may be tried again.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
_BY_STATUS: Mapping[int, type[AgentCoreError]] = {
    401: AuthenticationFailed, 413: TooLarge, 429: RateLimited,
    502: DependencyUnavailable, 503: DependencyUnavailable, 504: DependencyUnavailable,
}
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")

ResultT = TypeVar("ResultT", bound=Strict)

# stamina logs each wait: where nobody has set up logging, Python would print that to stderr, without a cause.
logging.getLogger("stamina").addHandler(logging.NullHandler())


class Credential:
    """The bearer token: asked for when first needed, and again when the service refuses it."""

    def __init__(self, source: TokenSource) -> None:
        self._source = source
        self._token: str | None = None
        self._lock = asyncio.Lock()
        self.renewable = callable(source)

    async def token(self, refused: str | None = None) -> str:
        """The token to use; `refused` is the one the service did not accept, if any."""
        async with self._lock:
            if self._token is None or self._token == refused:
                self._token = _checked(await self._fetch())
            return self._token

    async def _fetch(self) -> str:
        if isinstance(self._source, str):
            return self._source
        given = self._source()
        return given if isinstance(given, str) else await given


def _checked(token: str) -> str:
    stripped = token.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise AuthenticationFailed("The token is not a JWT: it is empty, or holds characters no token has.")
    return stripped


class MemoryClient(MemoryApi):
    """One agent's memory, over HTTP. Use it as an async context manager.

    `token` is a JWT, or a callable that gives one (asked again, once, when the service refuses it).
    `transport=httpx.ASGITransport(app)` speaks to an application in this process, without a socket.
    A call is tried again only where that cannot store, change or delete twice.
    """

    def __init__(self, url: str, token: TokenSource, *, timeout_seconds: float = 30.0, max_attempts: int = 3,
                 traceparent: str | None = None, transport: httpx.AsyncBaseTransport | None = None) -> None:
        base = url.rstrip("/").removesuffix(ENDPOINT)
        if not base.startswith(("http://", "https://")):
            raise ConfigurationError([f"The service's URL starts with http:// or https:// (got {url!r})."])
        self.url = base
        self._credential = Credential(token)
        self._timeout_seconds = timeout_seconds
        self._traceparent = traceparent
        self._a2a_context: dict[str, Any] | None = None
        self._ids = itertools.count(1)
        self._retrying = stamina.AsyncRetryingCaller(
            attempts=max_attempts, timeout=None, wait_initial=0.1, wait_max=5.0, wait_jitter=0.1)
        # A proxy of the environment is for other hosts: it cannot reach this machine's loopback.
        direct = {f"all://{host}": None for host in _LOOPBACK} if transport is None else None
        try:
            self._http = httpx.AsyncClient(base_url=base, timeout=timeout_seconds, transport=transport,
                                           mounts=direct)
        except httpx.InvalidURL as cause:
            raise ConfigurationError([f"The service's URL {url!r} is not a URL: {cause}."]) from cause

    async def __aenter__(self) -> Self:
        self._must_be_open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None,
                        trace: TracebackType | None) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections; the client, and every view of it, raises ClientClosed afterwards."""
        await self._http.aclose()

    def _must_be_open(self) -> None:
        if self._http.is_closed:
            raise ClientClosed

    def traced(self, *, traceparent: str | None = None, a2a_context: Mapping[str, Any] | None = None) -> Self:
        """The same client and connections; each call carries a W3C `traceparent` and an `a2a_context`."""
        view = copy.copy(self)
        view._traceparent = traceparent
        view._a2a_context = None if a2a_context is None else dict(a2a_context)
        return view

    async def store(self, params: StoreParams) -> StoreResult:
        return await self._call("store", params, StoreResult, repeatable=params.idempotency_key is not None)

    async def store_batch(self, params: StoreBatchParams) -> StoreBatchResult:
        keyed = all(item.idempotency_key is not None for item in params.items)
        return await self._call("store_batch", params, StoreBatchResult, repeatable=keyed)

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
        return await self._call("prune", params, PruneResult, repeatable=params.dry_run)

    async def restore(self, params: RestoreParams) -> RestoreResult:
        return await self._call("restore", params, RestoreResult, repeatable=params.dry_run)

    async def archived(self, params: ArchivedParams) -> ArchivedResult:
        return await self._call("archived", params, ArchivedResult)

    async def get(self, params: GetParams) -> GetResult:
        return await self._call("get", params, GetResult)

    async def list(self, params: ListParams) -> ListResult:
        return await self._call("list", params, ListResult)

    async def count(self, params: CountParams) -> CountResult:
        return await self._call("count", params, CountResult)

    async def delete(self, params: DeleteParams) -> DeleteResult:
        return await self._call("delete", params, DeleteResult)

    async def stats(self, params: StatsParams) -> StatsResult:
        return await self._call("stats", params, StatsResult)

    async def erase(self, params: EraseParams) -> EraseResult:
        return await self._call("erase", params, EraseResult)

    async def capabilities(self, params: CapabilitiesParams) -> CapabilitiesResult:
        return await self._call("capabilities", params, CapabilitiesResult)

    async def complete_task(self, params: CompleteTaskParams) -> CompleteTaskResult:
        return await self._call("complete_task", params, CompleteTaskResult)

    async def add_session(self, params: AddSessionParams) -> AddSessionResult:
        keyed = all(message.message_id is not None for message in params.messages)
        return await self._call("add_session", params, AddSessionResult, repeatable=keyed)

    async def end_session(self, params: EndSessionParams) -> EndSessionResult:
        return await self._call("end_session", params, EndSessionResult)

    async def summarize(self, params: SummarizeParams) -> SummarizeResult:
        return await self._call("summarize", params, SummarizeResult)

    async def clear(self, params: ClearParams) -> ClearResult:
        return await self._call("clear", params, ClearResult)

    async def settings(self, params: SettingsParams) -> SettingsResult:
        return await self._call("settings", params, SettingsResult)

    async def configure(self, params: ConfigureParams) -> ConfigureResult:
        return await self._call("configure", params, ConfigureResult, repeatable=True)

    async def consolidate(self, params: ConsolidateParams) -> ConsolidateResult:
        return await self._call("consolidate", params, ConsolidateResult, repeatable=True)

    async def set_alias(self, params: SetAliasParams) -> SetAliasResult:
        return await self._call("set_alias", params, SetAliasResult, repeatable=True)

    async def delete_alias(self, params: DeleteAliasParams) -> DeleteAliasResult:
        return await self._call("delete_alias", params, DeleteAliasResult)

    async def list_aliases(self, params: ListAliasesParams) -> ListAliasesResult:
        return await self._call("list_aliases", params, ListAliasesResult)

    async def _call(self, attribute: str, params: Strict, result: type[ResultT], *,
                    repeatable: bool = False) -> ResultT:
        method = _METHODS[attribute]
        safe = repeatable or method.scope == "memory:read"
        # Only what the caller gave: the service's defaults are the service's business.
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": next(self._ids), "method": method.name,
                                "params": params.model_dump(mode="json", exclude_unset=True)}
        if self._a2a_context is not None:
            body["a2a_context"] = self._a2a_context

        async def attempt() -> Any:
            return await self._authenticated(body)

        answer = await self._retrying(lambda error: _again(error, safe), attempt)
        try:
            # A newer service may say more than this client knows.
            return result.model_validate(answer, extra="ignore")
        except ValidationError as cause:
            raise AgentCoreError(f"The service answered {method.name} with a result this client cannot read: "
                                 f"{cause.error_count()} fields are missing or of another type.") from cause

    async def _authenticated(self, body: Mapping[str, Any]) -> Any:
        token = await self._credential.token()
        try:
            return await self._send(body, token)
        except AuthenticationFailed:
            if not self._credential.renewable:
                raise
        return await self._send(body, await self._credential.token(refused=token))

    async def _send(self, body: Mapping[str, Any], token: str) -> Any:
        self._must_be_open()
        headers = {"Authorization": f"Bearer {token}"}
        if self._traceparent is not None:
            headers["traceparent"] = self._traceparent
        try:
            response = await self._http.post(ENDPOINT, json=body, headers=headers)
        except httpx.TimeoutException as cause:
            raise DependencyUnavailable(
                f"The service at {self.url} did not answer within {self._timeout_seconds:g} s.") from cause
        except httpx.RequestError as cause:
            reason = str(cause) or type(cause).__name__
            raise DependencyUnavailable(
                f"No service answers at {self.url} ({reason}): does `agentcore serve` run there? "
                "AGENTCORE_URL names another place to the command line.") from cause
        return _result_of(response, self.url)


def _again(error: Exception, repeatable: bool) -> bool | float:
    """Whether to try again, or in how many seconds."""
    if isinstance(error, RateLimited):
        wait = error.data.get("retry_after_seconds")
        if not isinstance(wait, int | float):
            return True
        return float(wait) if wait <= LONGEST_RETRY_WAIT_SECONDS else False
    if isinstance(error, NotReady):
        return True
    return isinstance(error, DependencyUnavailable) and (repeatable or isinstance(error.__cause__, _NOT_SENT))


def _result_of(response: httpx.Response, url: str) -> Any:
    """The `result` of a JSON-RPC answer; raises its error, or says why it is no such answer."""
    answer = _object_in(response)
    if "result" in answer:
        return answer["result"]
    error = answer.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        raise _status_error(response, url)
    data = dict(error["data"]) if isinstance(error.get("data"), dict) else {}
    if (seconds := _retry_after_seconds(response)) is not None:
        data.setdefault("retry_after_seconds", seconds)
    raise from_wire(error["code"], str(error.get("message") or ""), data)


def _object_in(response: httpx.Response) -> dict[str, Any]:
    try:
        answer = response.json()
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


def _status_error(response: httpx.Response, url: str) -> AgentCoreError:
    known = _BY_STATUS.get(response.status_code)
    message = f"{url} answered HTTP {response.status_code} without a JSON-RPC answer"
    if known is None:
        return AgentCoreError(f"{message}: is it the memory service?")
    seconds = _retry_after_seconds(response)
    return known(f"{message}.", data=None if seconds is None else {"retry_after_seconds": seconds})


def _retry_after_seconds(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None
