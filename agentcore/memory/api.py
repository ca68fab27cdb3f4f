"""The memory API as Python sees it: one method for each RPC method, the same in-process and over HTTP.

`MemoryManager` and the client both implement `MemoryApi`; `methods.METHODS` names each operation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentcore.memory.models import Interaction, MemorySummary
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

Scope = Literal["memory:read", "memory:write", "memory:admin"]
SCOPES: tuple[Scope, ...] = ("memory:read", "memory:write", "memory:admin")


@dataclass(frozen=True)
class Caller:
    """On whose behalf a call is made: the token's subject, its users, and where the call came from."""

    agent_id: str
    token_id: str | None = None
    trace_id: str | None = None
    a2a_context: Mapping[str, Any] | None = None
    users: frozenset[str | None] | None = None


class MemoryApi(ABC):
    """One agent's memory. Every method acts for the agent it was opened for, and for nobody else.

    Errors are the classes of `agentcore.errors`, the same in-process and over HTTP.
    """

    @property
    def fails_open_after_seconds(self) -> float | None:
        """How long a read waits before it is empty, of a memory that fails open; else None: it raises."""
        return None

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
    async def history(self, params: HistoryParams) -> HistoryResult: ...

    @abstractmethod
    async def revert(self, params: RevertParams) -> RevertResult: ...

    @abstractmethod
    async def feedback(self, params: FeedbackParams) -> FeedbackResult: ...

    @abstractmethod
    async def prune(self, params: PruneParams) -> PruneResult: ...

    @abstractmethod
    async def restore(self, params: RestoreParams) -> RestoreResult: ...

    @abstractmethod
    async def archived(self, params: ArchivedParams = ArchivedParams()) -> ArchivedResult: ...

    @abstractmethod
    async def get(self, params: GetParams) -> GetResult: ...

    @abstractmethod
    async def list(self, params: ListParams = ListParams()) -> ListResult: ...

    @abstractmethod
    async def count(self, params: CountParams = CountParams()) -> CountResult: ...

    @abstractmethod
    async def delete(self, params: DeleteParams) -> DeleteResult: ...

    @abstractmethod
    async def stats(self, params: StatsParams = StatsParams()) -> StatsResult: ...

    @abstractmethod
    async def capabilities(self, params: CapabilitiesParams = CapabilitiesParams()) -> CapabilitiesResult: ...

    @abstractmethod
    async def complete_task(self, params: CompleteTaskParams) -> CompleteTaskResult: ...

    @abstractmethod
    async def add_session(self, params: AddSessionParams) -> AddSessionResult: ...

    @abstractmethod
    async def end_session(self, params: EndSessionParams) -> EndSessionResult: ...

    @abstractmethod
    async def summarize(self, params: SummarizeParams) -> SummarizeResult: ...

    @abstractmethod
    async def clear(self, params: ClearParams) -> ClearResult: ...

    @abstractmethod
    async def settings(self, params: SettingsParams = SettingsParams()) -> SettingsResult: ...

    @abstractmethod
    async def configure(self, params: ConfigureParams) -> ConfigureResult: ...

    @abstractmethod
    async def consolidate(self, params: ConsolidateParams = ConsolidateParams()) -> ConsolidateResult: ...

    @abstractmethod
    async def erase(self, params: EraseParams) -> EraseResult: ...

    @abstractmethod
    async def set_alias(self, params: SetAliasParams) -> SetAliasResult: ...

    @abstractmethod
    async def delete_alias(self, params: DeleteAliasParams) -> DeleteAliasResult: ...

    @abstractmethod
    async def list_aliases(self, params: ListAliasesParams = ListAliasesParams()) -> ListAliasesResult: ...

    async def add_interaction(self, /, interaction: Interaction, **options: Any) -> StoreResult:
        """Store an interaction; `options` are the other fields of `StoreParams`."""
        return await self.store(StoreParams(interaction=interaction, **options))

    async def retrieve_memories(
        self, /, query: str, k: int = 5, **options: Any
    ) -> tuple[MemorySummary, ...]:
        """The `k` best memories for a query, best first; `options` as in `RetrieveParams`."""
        return tuple((await self.retrieve(RetrieveParams(query=query, k=k, **options))).memories)

    async def get_relevant_context(
        self, /, query: str, task_id: str | None = None, max_tokens: int = 2_000, **options: Any
    ) -> str:
        """A prompt-ready context of at most `max_tokens` tokens; `options` as `ContextParams` has them."""
        params = ContextParams(query=query, task_id=task_id, max_tokens=max_tokens, **options)
        return (await self.get_context(params)).context
