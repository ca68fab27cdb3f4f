"""The memory API: one `Method` for each RPC method, the same in process and over HTTP.

The RPC methods, the OpenRPC document and the method reference derive from `METHODS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, ParamSpec, Self, TypeAlias, TypeVar, cast, get_args, overload
from uuid import UUID

from pydantic import ValidationError

from agentcore.errors import (
    AgentCoreError,
    DependencyUnavailable,
    InternalError,
    InvalidParams,
    NotReady,
    RateLimited,
    field_path,
    problem_sentence,
)
from agentcore.memory.models import Interaction, JsonObject, MemorySummary, Receipt, Strict
from agentcore.memory.params import agent_settings, changes, memories, sessions
from agentcore.memory.params import archived as archives
from agentcore.memory.params import jobs as job_params

Scope = Literal["memory:read", "memory:write", "memory:admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
# Units of the rate limit that a call costs in addition to 1: see docs/operations.md.
EMBEDS_ONE, READS_MANY = 1, 20
# Types of positional arguments.
Positional = str | UUID | Interaction | Sequence[Any]

P = ParamSpec("P")
ParamsT = TypeVar("ParamsT", bound=Strict)
ResultT = TypeVar("ResultT", bound=Strict)
ReturnT = TypeVar("ReturnT")


@dataclass(frozen=True)
class Caller:
    """Identity behind a call; `users`: those that the token is bound to."""

    agent_id: str
    token_id: str | None = None
    trace_id: str | None = None
    a2a_context: Mapping[str, Any] | None = None
    users: frozenset[str | None] | None = None


class Method(Generic[P, ParamsT, ResultT]):
    """One operation: its models, scope and summary; callable on a `MemoryApi` instance.

    `positional`: params that may be passed by position. `rest`: the field that collects unknown names.
    `for_users`: allowed for a token bound to users. `cost`: units of the rate limit in addition to 1.
    `admin_fields`: params that require the scope memory:admin.
    """

    def __init__(
        self,
        params: Callable[P, ParamsT],
        result: type[ResultT],
        scope: Scope,
        summary: str,
        *,
        positional: tuple[str, ...] = (),
        rest: str | None = None,
        for_users: bool = False,
        cost: int = 0,
        admin_fields: tuple[str, ...] = (),
    ) -> None:
        self.params = cast(type[ParamsT], params)
        self.result, self.scope, self.summary = result, scope, summary
        self.positional, self.rest, self.for_users, self.cost = positional, rest, for_users, cost
        self.admin_fields = admin_fields
        self.__doc__ = summary

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute = name
        self.name = f"memory.{name}"

    @overload
    def __get__(self, memory: None, kind: type) -> Self: ...

    @overload
    def __get__(self, memory: MemoryApi, kind: type) -> Call[P, ParamsT, Coroutine[Any, Any, ResultT]]: ...

    def __get__(self, memory: MemoryApi | None, kind: type) -> Self | Call[P, ParamsT, Coroutine[Any, Any, ResultT]]:
        if memory is None:
            return self
        asked = memory
        return Call(self, lambda params: asked.call(self, params))

    def read(self, /, *given: Any, **fields: Any) -> ParamsT:
        """Returns the validated params of a call.

        Raises InvalidParams for invalid fields, TypeError for an unexpected positional argument.
        """
        if len(given) == 1 and not fields and isinstance(given[0], self.params):
            return given[0]
        named = self._by_name(given)
        if twice := sorted(named.keys() & fields.keys()):
            raise TypeError(f"{self.attribute} got {', '.join(twice)} twice")
        try:
            return self.params(**self._nested({**named, **fields}))
        except ValidationError as cause:
            # Not chained to `cause`, which quotes the values.
            raise self._invalid(cause) from None

    def _by_name(self, given: tuple[Any, ...]) -> JsonObject:
        # JSON-RPC allows only an interaction by position; Python callers may also pass a text.
        says_content = self.attribute == "store" and bool(given) and isinstance(given[0], str)
        names = ("content",) if says_content else self.positional
        fits = not given or isinstance(given[0], str | UUID | Interaction | Sequence)
        if len(given) > len(names) or not fits:
            if names and given[0] is None:
                raise TypeError(f"{self.attribute}: {names[0]} is None")
            kind = self.params.__name__
            raise TypeError(
                f"{self.attribute} takes a {kind} (from agentcore.params) or its fields by name "
                f"({', '.join([*self.params.model_fields][:3])}, ...), not a {type(given[0]).__name__}"
            )
        return dict(zip(names, given, strict=False))

    def _invalid(self, cause: ValidationError) -> InvalidParams:
        found = [
            (field_path(each["loc"]) or "params", problem_sentence(dict(each)))
            for each in cause.errors(include_url=False, include_context=False, include_input=False)
        ]
        problems = [{"field": field, "problem": problem} for field, problem in dict.fromkeys(found)]
        said = "; ".join(f"{each['field']} {each['problem']}" for each in problems)
        return InvalidParams(f"{self.name}: {said}", data={"errors": problems})

    def _nested(self, fields: JsonObject) -> JsonObject:
        if self.rest is None:
            return fields
        own = {name: value for name, value in fields.items() if name in self.params.model_fields}
        others = {name: value for name, value in fields.items() if name not in own}
        return {**own, self.rest: {**own.get(self.rest, {}), **others}} if others else own


class Call(Generic[P, ParamsT, ReturnT]):
    """A method bound to one memory; accepts its params object or its fields."""

    def __init__(self, method: Method[P, ParamsT, Any], run: Callable[[ParamsT], ReturnT]) -> None:
        self._method, self._run = method, run
        self.__doc__ = method.__doc__

    @overload
    def __call__(self, params: ParamsT, /) -> ReturnT: ...

    @overload
    def __call__(self, *args: P.args, **fields: P.kwargs) -> ReturnT: ...

    @overload
    def __call__(self, first: Positional, /, *more: Any, **fields: Any) -> ReturnT: ...

    def __call__(self, *args: Any, **fields: Any) -> ReturnT:
        return self._run(self._method.read(*args, **fields))


class MemoryApi(ABC):
    """One agent's memory. Every method acts only on the agent that it was opened for.

    A method accepts its params (`StoreParams(...)`) or their fields (`store("text", user_id="anna")`).
    Errors are the classes of `agentcore.errors`, the same in-process and over HTTP.
    """

    @abstractmethod
    async def call(self, method: Method[P, ParamsT, ResultT], params: ParamsT) -> ResultT: ...

    @property
    def fails_open_after_seconds(self) -> float | None:
        """Timeout after which a read returns an empty result; None: reads raise instead."""
        return None

    store = Method(
        memories.StoreParams,
        memories.StoreResult,
        "memory:write",
        "Store an interaction, or a plain content, as one memory.",
        positional=("interaction",),
        for_users=True,
        cost=EMBEDS_ONE,
    )
    store_batch = Method(
        memories.StoreBatchParams,
        memories.StoreBatchResult,
        "memory:write",
        "Store up to 1,000 memories in one transaction, with a result for each; invalid ones are rejected, the others "
        "stored.",
        positional=("items",),
        for_users=True,
    )
    retrieve = Method(
        memories.RetrieveParams,
        memories.RetrieveResult,
        "memory:read",
        "Find the memories that matter for a query, best first.",
        positional=("query", "k", "memory_types"),
        for_users=True,
        admin_fields=("weights",),
        cost=EMBEDS_ONE,
    )
    get_context = Method(
        memories.GetContextParams,
        memories.GetContextResult,
        "memory:read",
        "Build a prompt-ready context for a query inside a token budget.",
        positional=("query", "task_id", "max_tokens"),
        for_users=True,
        cost=EMBEDS_ONE,
    )
    update = Method(
        changes.UpdateParams,
        changes.UpdateResult,
        "memory:write",
        "Correct, extend or re-weigh a memory; the change is kept in its history.",
        positional=("memory_id", "updates"),
        rest="updates",
        for_users=True,
        cost=EMBEDS_ONE,
    )
    history = Method(
        changes.HistoryParams,
        changes.HistoryResult,
        "memory:read",
        "What was changed in a memory, when and by whom, the latest first.",
        positional=("memory_id",),
        for_users=True,
    )
    revert = Method(
        changes.RevertParams,
        changes.RevertResult,
        "memory:write",
        "Bring a memory back to how it stood at an earlier version; nothing of its history goes.",
        positional=("memory_id", "version"),
        for_users=True,
    )
    feedback = Method(
        changes.FeedbackParams,
        changes.FeedbackResult,
        "memory:write",
        "Say how a memory served: helpful, unhelpful or wrong moves its relevance score.",
        positional=("memory_id", "verdict"),
        for_users=True,
    )
    prune = Method(
        memories.PruneParams,
        memories.PruneResult,
        "memory:write",
        "Archive and remove memories of a layer by a strategy.",
        positional=("memory_layer", "strategy"),
        cost=READS_MANY,
    )
    restore = Method(
        archives.RestoreParams,
        archives.RestoreResult,
        "memory:write",
        "Bring archived memories back as they were, with vector, history, links and use.",
        cost=READS_MANY,
    )
    archived = Method(
        archives.ArchivedParams,
        archives.ArchivedResult,
        "memory:read",
        "Archived memories page by page, those archived last first.",
        for_users=True,
    )
    get = Method(
        memories.GetParams,
        memories.GetResult,
        "memory:read",
        "One memory, whole, by its id.",
        positional=("memory_id",),
        for_users=True,
    )
    list = Method(
        memories.ListParams,
        memories.ListResult,
        "memory:read",
        "Memories page by page, by time, importance or access count.",
        for_users=True,
    )
    count = Method(
        memories.CountParams,
        memories.CountResult,
        "memory:read",
        "How many memories match.",
        for_users=True,
        cost=READS_MANY,
    )
    facets = Method(
        memories.FacetsParams,
        memories.FacetsResult,
        "memory:read",
        "Count the values of users, sessions, tags and other fields.",
        positional=("fields",),
        for_users=True,
        cost=READS_MANY,
    )
    project = Method(
        memories.ProjectParams,
        memories.ProjectResult,
        "memory:read",
        "Project the vectors of memories onto two axes, for a map.",
        for_users=True,
        cost=10 * READS_MANY,
    )
    delete = Method(
        memories.DeleteParams,
        memories.DeleteResult,
        "memory:write",
        "Delete memories by id, or by a filter with confirm; says how many went.",
        for_users=True,
        cost=READS_MANY,
    )
    stats = Method(
        memories.StatsParams,
        memories.StatsResult,
        "memory:read",
        "Counts by layer, links, archived memories and accesses.",
        for_users=True,
        cost=READS_MANY,
    )
    capabilities = Method(
        memories.CapabilitiesParams,
        memories.CapabilitiesResult,
        "memory:read",
        "What this service can do, and its limits.",
        for_users=True,
    )
    complete_task = Method(
        memories.CompleteTaskParams,
        memories.CompleteTaskResult,
        "memory:write",
        "End a task: its working memory is cleared, its lasting memories stay.",
        positional=("task_id",),
    )
    add_session = Method(
        sessions.AddSessionParams,
        sessions.AddSessionResult,
        "memory:write",
        "Store a conversation, or more of one: a memory for each message.",
        positional=("session_id", "messages"),
        for_users=True,
    )
    end_session = Method(
        sessions.EndSessionParams,
        sessions.EndSessionResult,
        "memory:write",
        "End a session: its working memory is promoted or ends, summaries of what was said are kept.",
        positional=("session_id",),
        cost=READS_MANY,
    )
    summarize = Method(
        sessions.SummarizeParams,
        sessions.SummarizeResult,
        "memory:read",
        "A summary of the memories that match, in their own sentences: no model is asked. It is not kept.",
        for_users=True,
        cost=READS_MANY,
    )
    clear = Method(
        sessions.ClearParams,
        sessions.ClearResult,
        "memory:write",
        "Delete a session, a user's memories or all; says how many went.",
        cost=READS_MANY,
    )
    settings = Method(
        agent_settings.SettingsParams,
        agent_settings.SettingsResult,
        "memory:read",
        "The agent's rules: how its layers forget, whether its episodes are consolidated.",
    )
    configure = Method(
        agent_settings.ConfigureParams,
        agent_settings.ConfigureResult,
        "memory:admin",
        "Give an agent rules of its own: how its layers forget, whether episodes are consolidated.",
    )
    consolidate = Method(
        agent_settings.ConsolidateParams,
        agent_settings.ConsolidateResult,
        "memory:write",
        "Give episodic memories that tell one thing together a summary that points to them.",
        cost=READS_MANY,
    )
    jobs = Method(
        job_params.JobsParams,
        job_params.JobsResult,
        "memory:admin",
        "List the agent's background jobs, newest first; those that succeeded are deleted.",
    )
    change_job = Method(
        job_params.ChangeJobParams,
        job_params.ChangeJobResult,
        "memory:admin",
        "Retry a failed background job of the agent, or cancel one that waits or runs.",
    )
    erase = Method(
        archives.EraseParams,
        archives.EraseResult,
        "memory:admin",
        "Erase all of the agent, or of a user within it, from every place; with a signed receipt.",
        cost=READS_MANY,
    )

    async def add_interaction(self, /, interaction: Interaction, **options: Any) -> memories.StoreResult:
        """Stores an interaction; `options` are the other fields of `StoreParams`."""
        return await self.store(memories.StoreParams(interaction=interaction, **options))

    async def retrieve_memories(self, /, query: str, k: int = 5, **options: Any) -> tuple[MemorySummary, ...]:
        """Returns the `k` best memories, best first; `options` as in `RetrieveParams`."""
        return tuple((await self.retrieve(memories.RetrieveParams(query=query, k=k, **options))).memories)

    async def get_relevant_context(
        self, /, query: str, task_id: str | None = None, max_tokens: int = 2_000, **options: Any
    ) -> str:
        """Returns a prompt-ready context; `options` as in `GetContextParams`."""
        params = memories.GetContextParams(query=query, task_id=task_id, max_tokens=max_tokens, **options)
        return (await self.get_context(params)).context


AnyMethod: TypeAlias = Method[Any, Any, Any]


def methods_of(api: type) -> tuple[AnyMethod, ...]:
    """Returns the methods of an API class, those of its bases first."""
    own = {name: each for base in reversed(api.__mro__) for name, each in vars(base).items()}
    return tuple(each for each in own.values() if isinstance(each, Method))


METHODS: tuple[AnyMethod, ...] = methods_of(MemoryApi)


# Failures of the service. The caller's own errors (params, token, scope) are always raised.
UNAVAILABLE: tuple[type[AgentCoreError], ...] = (DependencyUnavailable, NotReady, RateLimited, InternalError)

# Empty results by the attribute of `MemoryApi`, for reads that fail open.
EMPTY_RESULTS: Mapping[str, Callable[[Receipt], Strict]] = {
    "retrieve": lambda receipt: memories.RetrieveResult(memories=[], receipt=receipt),
    "get_context": lambda receipt: memories.GetContextResult(
        context="", token_count=0, memory_ids=[], encoding=None, receipt=receipt
    ),
    "summarize": lambda receipt: sessions.SummarizeResult(
        summary="", token_count=0, memory_ids=[], memory_count=0, receipt=receipt
    ),
}


_NOT_ASKED = "memory was not asked: "


def degraded_receipt(reason: str) -> Receipt:
    return Receipt(degraded=[f"{_NOT_ASKED}{reason}"])


def was_not_asked(receipt: Receipt) -> bool:
    """Whether a result is empty because memory was unavailable."""
    return any(part.startswith(_NOT_ASKED) for part in receipt.degraded)
