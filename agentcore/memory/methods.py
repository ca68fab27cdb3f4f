"""Every operation of the memory API, named once: its wire name, params, result, scope and what it does.

The RPC method table, the client, the OpenRPC document and the method reference are derived from `METHODS`.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from agentcore.errors import InvalidParams, NotAuthorised
from agentcore.memory.api import Scope
from agentcore.memory.models import Strict
from agentcore.memory.params.aliases import (
    DeleteAliasParams,
    DeleteAliasResult,
    ListAliasesParams,
    ListAliasesResult,
    SetAliasParams,
    SetAliasResult,
)
from agentcore.memory.params.archive import (
    ArchivedParams,
    ArchivedResult,
    ArchiveFilters,
    RestoreParams,
    RestoreResult,
)
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
    Filters,
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

ParamsT = TypeVar("ParamsT", bound=Strict)
ResultT = TypeVar("ResultT", bound=Strict)
FOR_USERS = frozenset(
    ("store", "store_batch", "add_session", "retrieve", "get_context", "get", "list", "count", "archived",
     "stats", "summarize", "update", "history", "revert", "feedback", "delete", "capabilities"))


@dataclass(frozen=True)
class Method(Generic[ParamsT, ResultT]):
    """One operation: its wire name, its models and its scope."""

    name: str
    params: type[ParamsT]
    result: type[ResultT]
    scope: Scope
    summary: str

    @property
    def attribute(self) -> str:
        """The attribute of `MemoryApi` behind it."""
        return self.name.removeprefix("memory.")

    @property
    def for_users(self) -> bool:
        """Whether a token bound to users may call it; the others act on all users of the agent."""
        return self.attribute in FOR_USERS


METHODS: tuple[Method[Any, Any], ...] = (
    Method("memory.store", StoreParams, StoreResult, "memory:write",
           "Store an interaction, or a plain content, as one memory."),
    Method("memory.store_batch", StoreBatchParams, StoreBatchResult, "memory:write",
           "Store up to 1,000 memories in one transaction, with a result for each."),
    Method("memory.retrieve", RetrieveParams, RetrieveResult, "memory:read",
           "Find the memories that matter for a query, best first."),
    Method("memory.get_context", ContextParams, ContextResult, "memory:read",
           "Build a prompt-ready context for a query inside a token budget."),
    Method("memory.update", UpdateParams, UpdateResult, "memory:write",
           "Correct, extend or re-weigh a memory; the change is kept in its history."),
    Method("memory.history", HistoryParams, HistoryResult, "memory:read",
           "What was changed in a memory, when and by whom, the latest first."),
    Method("memory.revert", RevertParams, RevertResult, "memory:write",
           "Bring a memory back to how it stood at an earlier version; nothing of its history goes."),
    Method("memory.feedback", FeedbackParams, FeedbackResult, "memory:write",
           "Say how a memory served: helpful, unhelpful or wrong moves its relevance score."),
    Method("memory.prune", PruneParams, PruneResult, "memory:write",
           "Archive and remove memories of a layer by a strategy."),
    Method("memory.restore", RestoreParams, RestoreResult, "memory:write",
           "Bring archived memories back as they were, with vector, history, links and use."),
    Method("memory.archived", ArchivedParams, ArchivedResult, "memory:read",
           "Archived memories page by page, those archived last first."),
    Method("memory.get", GetParams, GetResult, "memory:read", "One memory, whole, by its id."),
    Method("memory.list", ListParams, ListResult, "memory:read",
           "Memories page by page, by time, importance or access count."),
    Method("memory.count", CountParams, CountResult, "memory:read", "How many memories match."),
    Method("memory.delete", DeleteParams, DeleteResult, "memory:write",
           "Delete memories by id, or by a filter with confirm; says how many went."),
    Method("memory.stats", StatsParams, StatsResult, "memory:read",
           "Counts by layer, links, archived memories and accesses."),
    Method("memory.capabilities", CapabilitiesParams, CapabilitiesResult, "memory:read",
           "What this service can do, and its limits."),
    Method("memory.complete_task", CompleteTaskParams, CompleteTaskResult, "memory:write",
           "End a task: its working memory is cleared, its lasting memories stay."),
    Method("memory.add_session", AddSessionParams, AddSessionResult, "memory:write",
           "Store a conversation, or more of one: a memory for each message."),
    Method("memory.end_session", EndSessionParams, EndSessionResult, "memory:write",
           "End a session: its working memory is promoted or ends, summaries of what was said are kept."),
    Method(
        "memory.summarize",
        SummarizeParams,
        SummarizeResult,
        "memory:read",
        "A summary of the memories that match, in their own sentences: no model is asked. It is not kept.",
    ),
    Method("memory.clear", ClearParams, ClearResult, "memory:write",
           "Delete a session, a user's memories or all; says how many went."),
    Method("memory.settings", SettingsParams, SettingsResult, "memory:read",
           "The agent's rules: how its layers forget, whether its episodes are consolidated."),
    Method("memory.configure", ConfigureParams, ConfigureResult, "memory:admin",
           "Give an agent rules of its own: how its layers forget, whether episodes are consolidated."),
    Method("memory.consolidate", ConsolidateParams, ConsolidateResult, "memory:write",
           "Give episodic memories that tell one thing together a summary that points to them."),
    Method("memory.erase", EraseParams, EraseResult, "memory:admin",
           "Erase all of the agent, or of a user within it, from every place; with a signed receipt."),
    Method("memory.set_alias", SetAliasParams, SetAliasResult, "memory:write",
           "Say what something is called too: each form then finds what was said in the other."),
    Method("memory.delete_alias", DeleteAliasParams, DeleteAliasResult, "memory:write",
           "Take an alias away, whether it was set or learnt."),
    Method("memory.list_aliases", ListAliasesParams, ListAliasesResult, "memory:read",
           "The aliases that apply, page by page: those set, and those learnt from memories."),
)


def within_users(method: Method[Any, Any], params: Any, users: Set[str | None]) -> Any:
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
