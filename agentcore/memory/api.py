"""The memory API as Python sees it: one method for each RPC method, the same in-process and over HTTP.

`MemoryManager` and the client both implement `MemoryApi`; `METHODS` names each operation once, and the RPC
method table, the client, the OpenRPC document and the method reference are derived from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from agentcore.memory.alias_params import (
    DeleteAliasParams,
    DeleteAliasResult,
    ListAliasesParams,
    ListAliasesResult,
    SetAliasParams,
    SetAliasResult,
)
from agentcore.memory.archive_params import ArchivedParams, ArchivedResult, RestoreParams, RestoreResult
from agentcore.memory.models import Interaction, MemorySummary, Strict
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
    UpdateParams,
    UpdateResult,
)

Scope = Literal["memory:read", "memory:write", "memory:admin"]
SCOPES: tuple[Scope, ...] = ("memory:read", "memory:write", "memory:admin")


@dataclass(frozen=True)
class Caller:
    """On whose behalf a call is made: the token's subject, and where the call came from."""

    agent_id: str
    token_id: str | None = None
    trace_id: str | None = None
    a2a_context: Mapping[str, Any] | None = None


ParamsT = TypeVar("ParamsT", bound=Strict)
ResultT = TypeVar("ResultT", bound=Strict)


class MemoryApi(ABC):
    """One agent's memory. Every method acts for the agent it was opened for, and for nobody else.

    Errors are the classes of `agentcore.errors`, the same in-process and over HTTP.
    """

    @abstractmethod
    async def store(self, params: StoreParams) -> StoreResult: ...

    @abstractmethod
    async def store_batch(self, params: StoreBatchParams) -> StoreBatchResult: ...

    @abstractmethod
    async def retrieve(self, params: RetrieveParams) -> RetrieveResult: ...

    @abstractmethod
    async def get_context(self, params: ContextParams) -> ContextResult: ...

    @abstractmethod
    async def update(self, params: UpdateParams) -> UpdateResult: ...

    @abstractmethod
    async def prune(self, params: PruneParams) -> PruneResult: ...

    @abstractmethod
    async def restore(self, params: RestoreParams) -> RestoreResult: ...

    @abstractmethod
    async def archived(self, params: ArchivedParams) -> ArchivedResult: ...

    @abstractmethod
    async def get(self, params: GetParams) -> GetResult: ...

    @abstractmethod
    async def list(self, params: ListParams) -> ListResult: ...

    @abstractmethod
    async def count(self, params: CountParams) -> CountResult: ...

    @abstractmethod
    async def delete(self, params: DeleteParams) -> DeleteResult: ...

    @abstractmethod
    async def stats(self, params: StatsParams) -> StatsResult: ...

    @abstractmethod
    async def capabilities(self, params: CapabilitiesParams) -> CapabilitiesResult: ...

    @abstractmethod
    async def complete_task(self, params: CompleteTaskParams) -> CompleteTaskResult: ...

    @abstractmethod
    async def set_alias(self, params: SetAliasParams) -> SetAliasResult: ...

    @abstractmethod
    async def delete_alias(self, params: DeleteAliasParams) -> DeleteAliasResult: ...

    @abstractmethod
    async def list_aliases(self, params: ListAliasesParams) -> ListAliasesResult: ...

    async def add_interaction(self, interaction: Interaction, **options: Any) -> StoreResult:
        """Store an interaction; `options` are the other fields of `StoreParams`."""
        return await self.store(StoreParams(interaction=interaction, **options))

    async def retrieve_memories(self, query: str, k: int = 5, **options: Any) -> tuple[MemorySummary, ...]:
        """The `k` best memories for a query, best first; `options` as in `RetrieveParams`."""
        return tuple((await self.retrieve(RetrieveParams(query=query, k=k, **options))).memories)

    async def get_relevant_context(
        self, query: str, task_id: str | None = None, max_tokens: int = 2_000, **options: Any
    ) -> str:
        """A prompt-ready context of at most `max_tokens` tokens; `options` as `ContextParams` has them."""
        params = ContextParams(query=query, task_id=task_id, max_tokens=max_tokens, **options)
        return (await self.get_context(params)).context


@dataclass(frozen=True)
class Method(Generic[ParamsT, ResultT]):
    """One operation: its wire name, the `MemoryApi` attribute behind it, its models and its scope."""

    name: str
    attribute: str
    params: type[ParamsT]
    result: type[ResultT]
    scope: Scope
    summary: str


METHODS: tuple[Method[Any, Any], ...] = (
    Method(
        "memory.store",
        "store",
        StoreParams,
        StoreResult,
        "memory:write",
        "Store an interaction, or a plain content, as one memory.",
    ),
    Method(
        "memory.store_batch",
        "store_batch",
        StoreBatchParams,
        StoreBatchResult,
        "memory:write",
        "Store up to 1,000 memories in one transaction, with a result for each.",
    ),
    Method(
        "memory.retrieve",
        "retrieve",
        RetrieveParams,
        RetrieveResult,
        "memory:read",
        "Find the memories that matter for a query, best first.",
    ),
    Method(
        "memory.get_context",
        "get_context",
        ContextParams,
        ContextResult,
        "memory:read",
        "Build a prompt-ready context for a query inside a token budget.",
    ),
    Method(
        "memory.update",
        "update",
        UpdateParams,
        UpdateResult,
        "memory:write",
        "Correct, extend or re-weigh a memory; the change is kept in its history.",
    ),
    Method(
        "memory.prune",
        "prune",
        PruneParams,
        PruneResult,
        "memory:write",
        "Archive and remove memories of a layer by a strategy.",
    ),
    Method(
        "memory.restore",
        "restore",
        RestoreParams,
        RestoreResult,
        "memory:write",
        "Bring archived memories back as they were, with vector, history, links and use.",
    ),
    Method(
        "memory.archived",
        "archived",
        ArchivedParams,
        ArchivedResult,
        "memory:read",
        "Archived memories page by page, those archived last first.",
    ),
    Method("memory.get", "get", GetParams, GetResult, "memory:read", "One memory, whole, by its id."),
    Method(
        "memory.list",
        "list",
        ListParams,
        ListResult,
        "memory:read",
        "Memories page by page, by time, importance or access count.",
    ),
    Method("memory.count", "count", CountParams, CountResult, "memory:read", "How many memories match."),
    Method(
        "memory.delete",
        "delete",
        DeleteParams,
        DeleteResult,
        "memory:write",
        "Delete memories by id, or by a filter with confirm; says how many went.",
    ),
    Method(
        "memory.stats",
        "stats",
        StatsParams,
        StatsResult,
        "memory:read",
        "Counts by layer, links, archived memories and accesses.",
    ),
    Method(
        "memory.capabilities",
        "capabilities",
        CapabilitiesParams,
        CapabilitiesResult,
        "memory:read",
        "What this service can do, and its limits.",
    ),
    Method(
        "memory.complete_task",
        "complete_task",
        CompleteTaskParams,
        CompleteTaskResult,
        "memory:write",
        "End a task: its working memory is cleared, its lasting memories stay.",
    ),
    Method(
        "memory.set_alias",
        "set_alias",
        SetAliasParams,
        SetAliasResult,
        "memory:write",
        "Say what something is called too: each form then finds what was said in the other.",
    ),
    Method(
        "memory.delete_alias",
        "delete_alias",
        DeleteAliasParams,
        DeleteAliasResult,
        "memory:write",
        "Take an alias away, whether it was set or learnt.",
    ),
    Method(
        "memory.list_aliases",
        "list_aliases",
        ListAliasesParams,
        ListAliasesResult,
        "memory:read",
        "The aliases that apply, page by page: those set, and those learnt from memories.",
    ),
)
