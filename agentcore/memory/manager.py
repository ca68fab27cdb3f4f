"""MemoryManager: the in-process memory of one agent, one instance per caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore import __version__
from agentcore.errors import InvalidParams, NotFound
from agentcore.limits import limits_in_force
from agentcore.memory.api import Caller, MemoryApi, Method, P, ParamsT, ResultT
from agentcore.memory.deriving import consolidating, sessions
from agentcore.memory.forgetting import erasing, removing, restoring
from agentcore.memory.keys import read_cursor, write_cursor
from agentcore.memory.models import Dropped, JsonObject, MemoryType, Receipt
from agentcore.memory.params.agent_settings import (
    ConfigureParams,
    ConfigureResult,
    ConsolidateParams,
    ConsolidateResult,
    SettingsParams,
    SettingsResult,
    rules_of,
)
from agentcore.memory.params.archived import (
    ArchivedParams,
    ArchivedResult,
    EraseParams,
    EraseResult,
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
from agentcore.memory.params.memories import (
    CapabilitiesParams,
    CapabilitiesResult,
    CompleteTaskParams,
    CompleteTaskResult,
    CountParams,
    CountResult,
    DeleteParams,
    DeleteResult,
    GetContextParams,
    GetContextResult,
    GetParams,
    GetResult,
    LayerStats,
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
from agentcore.memory.parts import MemoryParts
from agentcore.memory.pruning import STRATEGIES
from agentcore.memory.recall import recalling
from agentcore.memory.recall.searching import Search
from agentcore.memory.writing import changing, configuring
from agentcore.memory.writing.changing import Changing, Judging, Renewing, Updating
from agentcore.memory.writing.document_vectors import OTHER_MODEL
from agentcore.memory.writing.storing import Storing
from agentcore.telemetry import Steps

FEATURES = (
    "batch_store",
    "idempotency",
    "lexical_search",
    "links",
    "working_memory",
    "archive",
    "ttl",
    "as_of",
    "explain",
    "receipts",
    "reranker",
    "query_rewriting",
    "history",
    "revert",
    "feedback",
    "sessions",
    "summaries",
    "supersession",
    "consolidation",
    "erase",
    "session_summaries",
    "period_summaries",
    "model_facts",
    "model_summaries",
    "model_judge",
)
_PLACES: dict[str, Callable[[Any], Any]] = {
    "timestamp": datetime.fromisoformat,
    "importance": lambda place: _within(float(place), 1.0),
    "access_count": lambda place: _within(int(place), 2**31 - 1),
}


class MemoryManager(MemoryApi):
    """The in-process memory of the caller's agent."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._operations = MemoryOperations(parts, caller)

    async def call(self, method: Method[P, ParamsT, ResultT], params: ParamsT) -> ResultT:
        operation: Callable[[ParamsT], Awaitable[ResultT]] = getattr(self._operations, method.attribute)
        return await operation(params)


class MemoryOperations:
    """Implements each method of `MemoryApi`."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts.for_caller(caller)
        self._caller = caller

    async def store(self, params: StoreParams) -> StoreResult:
        steps = self._parts.steps()
        storing = Storing(self._parts, self._caller, [params])
        with steps("store"):
            [result] = await storing.run()
        if storing.errors:
            raise storing.errors[0]
        return result.model_copy(update={"receipt": receipt_of(steps, storing.degraded)})

    async def store_batch(self, params: StoreBatchParams) -> StoreBatchResult:
        steps = self._parts.steps()
        storing = Storing(self._parts, self._caller, params.items)
        with steps("store"):
            results = await storing.run()
        return StoreBatchResult(
            success=all(result.success for result in results),
            results=results,
            receipt=receipt_of(steps, storing.degraded),
        )

    async def retrieve(self, params: RetrieveParams) -> RetrieveResult:
        steps = self._parts.steps()
        search = Search(self._parts, self._caller, params, params.conditions(), steps)
        found = await search.run(params.k, self._parts.policy.retrieve_cut_offs)
        given = [memory.memory_id for memory in found.memories]
        self._parts.accesses.note(self._caller.agent_id, given, self._parts.clock())
        return RetrieveResult(memories=found.memories, receipt=found.receipt)

    async def get_context(self, params: GetContextParams) -> GetContextResult:
        return await recalling.context(self._parts, self._caller, params)

    async def prune(self, params: PruneParams) -> PruneResult:
        steps = self._parts.steps()
        with steps("prune"):
            removed = await removing.Pruning(self._parts, self._caller, params).run()
        return PruneResult(
            pruned_count=0 if params.dry_run else len(removed.memory_ids),
            memory_ids=removed.memory_ids,
            dry_run=params.dry_run,
            complete=removed.complete,
            receipt=receipt_of(steps),
        )

    async def restore(self, params: RestoreParams) -> RestoreResult:
        steps = self._parts.steps()
        with steps("restore"):
            restored = await restoring.Restoring(self._parts, self._caller, params).run()
        count = 0 if params.dry_run else len(restored.memory_ids)
        degraded = [OTHER_MODEL] if restored.waiting_for_embedding_ids else []
        return RestoreResult(
            restored_count=count, dry_run=params.dry_run, **vars(restored), receipt=receipt_of(steps, degraded)
        )

    async def archived(self, params: ArchivedParams) -> ArchivedResult:
        steps = self._parts.steps()
        with steps("search"):
            memories, cursor = await restoring.archived(self._parts, self._caller, params)
        receipt = filter_receipt(params.conditions(), steps)
        return ArchivedResult(memories=memories, next_cursor=cursor, receipt=receipt)

    async def get(self, params: GetParams) -> GetResult:
        steps = self._parts.steps()
        with steps("fetch"):
            records = await self._parts.storage.get(
                self._caller.agent_id, [params.memory_id], primary=params.consistent
            )
        if params.memory_id not in records:
            raise NotFound(data={"memory_id": str(params.memory_id)})
        return GetResult(memory=records[params.memory_id], receipt=receipt_of(steps))

    async def list(self, params: ListParams) -> ListResult:
        steps = self._parts.steps()
        place, after_id = _place(params)
        with steps("search"):
            rows = await self._parts.storage.page(
                self._caller.agent_id,
                params.conditions(),
                order_by=params.order_by,
                descending=params.descending,
                place=place,
                after_id=after_id,
                limit=params.limit + 1,
                primary=params.consistent,
            )
        page = rows[: params.limit]
        with steps("fetch"):
            records = await self._parts.storage.get(
                self._caller.agent_id,
                [row["memory_id"] for row in page],
                primary=params.consistent,
                vectors=params.vectors,
            )
            if params.vectors:
                vectors = await self._parts.storage.own_vectors(
                    self._caller.agent_id, list(records), primary=params.consistent
                )
                own = ((each, {"embedding": vector}) for each, vector in vectors.items())
                records |= {each: records[each].model_copy(update=update) for each, update in own}
        # The page ends with the last record inside the size limit.
        fitting = [place for place, row in enumerate(page) if row["memory_id"] in records]
        last = fitting[-1] if fitting else len(page) - 1
        return ListResult(
            memories=[records[page[place]["memory_id"]] for place in fitting],
            next_cursor=write_cursor(_place_of(params, page[last])) if len(rows) > last + 1 else None,
            receipt=filter_receipt(params.conditions(), steps),
        )

    async def count(self, params: CountParams) -> CountResult:
        steps = self._parts.steps()
        with steps("search"):
            count = await self._parts.storage.count(
                self._caller.agent_id, params.conditions(), primary=params.consistent
            )
        return CountResult(count=count, receipt=filter_receipt(params.conditions(), steps))

    async def delete(self, params: DeleteParams) -> DeleteResult:
        steps = self._parts.steps()
        with steps("delete"):
            deleted = await removing.delete(self._parts, self._caller, params)
        return DeleteResult(
            deleted_count=deleted.count,
            reinstated_count=len(deleted.reinstated),
            complete=deleted.complete,
            receipt=receipt_of(steps),
        )

    async def stats(self, params: StatsParams) -> StatsResult:
        steps = self._parts.steps()
        with steps("search"):
            rows = {row["memory_type"]: row for row in await self._parts.storage.layers(self._caller.agent_id)}
            totals = await self._parts.storage.totals(self._caller.agent_id)
            own = await self._parts.storage.own_rules(self._caller.agent_id)
        rules = rules_of(self._parts.policy.layers, own)
        layers = {
            layer: LayerStats(**_layer(rows.get(layer.value), rules[layer].capacity or 0)) for layer in MemoryType
        }
        return StatsResult(
            total=sum(layer.count for layer in layers.values()),
            layers=layers,
            **totals,
            receipt=filter_receipt({}, steps),
        )

    async def capabilities(self, params: CapabilitiesParams) -> CapabilitiesResult:
        archive, embedder = self._parts.archive, self._parts.embedder
        return CapabilitiesResult(
            version=__version__,
            embedding_model=None if embedder is None else embedder.model,
            embedding_dimensions=self._parts.policy.embedding_dimensions,
            vector_store=self._parts.vectors.name,
            archive="none" if archive is None else archive.name,
            memory_types=list(MemoryType),
            pruning_strategies=sorted(STRATEGIES),
            features=_features(self._parts),
            limits=limits_in_force(self._parts.policy.limits_set),
            receipt=Receipt(),
        )

    async def update(self, params: UpdateParams) -> UpdateResult:
        if params.updates.renew is not None:
            return UpdateResult(**await self._changed(Renewing(self._parts, self._caller, params.memory_id)))
        return UpdateResult(**await self._changed(Updating(self._parts, self._caller, params)))

    async def history(self, params: HistoryParams) -> HistoryResult:
        steps = self._parts.steps()
        with steps("fetch"):
            standing, changes, cursor = await changing.changes(self._parts, self._caller, params)
        return HistoryResult(**standing, changes=changes, next_cursor=cursor, receipt=receipt_of(steps))

    async def revert(self, params: RevertParams) -> RevertResult:
        return RevertResult(**await self._changed(changing.Reverting(self._parts, self._caller, params)))

    async def feedback(self, params: FeedbackParams) -> FeedbackResult:
        judging = Judging(self._parts, self._caller, params)
        changed = await self._changed(judging)
        return FeedbackResult(**changed, relevance_score=judging.relevance_score)

    async def _changed(self, changing: Changing | Renewing) -> JsonObject:
        steps = self._parts.steps()
        with steps(changing.operation):
            version = await changing.run()
        receipt = receipt_of(steps, changing.degraded)
        return {"success": True, "memory_id": changing.memory_id, "version": version, "receipt": receipt}

    async def complete_task(self, params: CompleteTaskParams) -> CompleteTaskResult:
        steps = self._parts.steps()
        with steps("complete"):
            cleared = await changing.complete_task(self._parts, self._caller, params.task_id)
        return CompleteTaskResult(success=True, cleared_count=cleared, receipt=receipt_of(steps))

    async def add_session(self, params: AddSessionParams) -> AddSessionResult:
        steps = self._parts.steps()
        with steps("store"):
            results, degraded = await sessions.add(self._parts, self._caller, params)
        return AddSessionResult(
            success=all(result.success or result.code is None for result in results),
            session_id=params.session_id,
            stored_count=sum(result.status == "stored" for result in results),
            results=results,
            receipt=receipt_of(steps, degraded),
        )

    async def end_session(self, params: EndSessionParams) -> EndSessionResult:
        steps = self._parts.steps()
        with steps("end"):
            ended = await sessions.end(self._parts, self._caller, params)
        return EndSessionResult(
            success=True,
            session_id=params.session_id,
            promoted_count=ended.promoted_count,
            ended_count=ended.ended_count,
            summary_id=ended.summary_ids[-1] if ended.summary_ids else None,
            summary_ids=[*ended.summary_ids],
            summary=ended.summary,
            summary_pending=ended.summary_pending,
            receipt=receipt_of(steps),
        )

    async def summarize(self, params: SummarizeParams) -> SummarizeResult:
        steps, conditions = self._parts.steps(), params.conditions()
        with steps("summarize"):
            summary, read = await sessions.summary_of(self._parts, self._caller, conditions, params.max_tokens)
        return SummarizeResult(
            summary=summary.text,
            token_count=summary.token_count,
            memory_ids=[*summary.memory_ids],
            memory_count=read,
            receipt=filter_receipt(conditions, steps),
        )

    async def clear(self, params: ClearParams) -> ClearResult:
        steps = self._parts.steps()
        with steps("delete"):
            cleared = await sessions.clear(self._parts, self._caller, params)
        return ClearResult(
            cleared_count=cleared.count,
            reinstated_count=len(cleared.reinstated),
            complete=cleared.complete,
            receipt=receipt_of(steps),
        )

    async def settings(self, params: SettingsParams) -> SettingsResult:
        steps = self._parts.steps()
        with steps("fetch"):
            rules = await configuring.rules(self._parts, self._caller)
        return SettingsResult(**rules, receipt=receipt_of(steps))

    async def configure(self, params: ConfigureParams) -> ConfigureResult:
        steps = self._parts.steps()
        with steps("configure"):
            rules = await configuring.configure(self._parts, self._caller, params)
        return ConfigureResult(success=True, **rules, receipt=receipt_of(steps))

    async def consolidate(self, params: ConsolidateParams) -> ConsolidateResult:
        steps = self._parts.steps()
        work = consolidating.Consolidating(self._parts, self._caller, params)
        with steps("consolidate"):
            done = await work.run()
        return ConsolidateResult(
            success=True,
            dry_run=params.dry_run,
            clusters=done.clusters,
            looked_at_count=done.looked_at_count,
            archived_count=len(done.archived),
            complete=done.complete,
            receipt=receipt_of(steps, work.degraded).model_copy(update={"dropped": _young(done)}),
        )

    async def erase(self, params: EraseParams) -> EraseResult:
        steps = self._parts.steps()
        with steps("erase"):
            done = await erasing.Erasing(self._parts, self._caller, params).run()
        return EraseResult(verified=done.verified, **vars(done), receipt=receipt_of(steps))


def _young(done: consolidating.Consolidated) -> list[Dropped]:
    return [Dropped(reason="too_young", count=done.too_young_count)] if done.too_young_count else []


def receipt_of(steps: Steps, degraded: Sequence[str] = ()) -> Receipt:
    return Receipt(degraded=[*degraded], timings_ms=steps.timings_ms)


def filter_receipt(conditions: Mapping[str, Any], steps: Steps) -> Receipt:
    return Receipt(searched={"filters": sorted(conditions)}, timings_ms=steps.timings_ms)


def _features(parts: MemoryParts) -> list[str]:
    optional = {
        "archive": parts.archive,
        "reranker": parts.reranker,
        "query_rewriting": parts.rewriter,
        "model_facts": parts.extractor,
        "model_summaries": parts.summariser,
        "model_judge": parts.fact_judge,
    }
    return [name for name in FEATURES if name not in optional or optional[name] is not None]


def _layer(row: Mapping[str, Any] | None, capacity: int) -> JsonObject:
    values = {name: value for name, value in (row or {"count": 0}).items() if name != "memory_type"}
    return {**values, "capacity": capacity}


def _place_of(params: ListParams, row: Mapping[str, Any]) -> list[Any]:
    place = row["place"]
    text = place.isoformat() if isinstance(place, datetime) else place
    return [params.order_by, params.descending, text, str(row["memory_id"])]


def _within(place: Any, most: float) -> Any:
    if not 0 <= place <= most:
        raise ValueError("no page ends there")
    return place


def _place(params: ListParams) -> tuple[Any, UUID | None]:
    """Parses the cursor. Raises InvalidParams if it belongs to another order."""
    if params.cursor is None:
        return None, None

    def understood(order_by: Any, descending: Any, place: Any, memory_id: Any) -> tuple[Any, UUID]:
        if (order_by, descending) != (params.order_by, params.descending):
            raise InvalidParams("cursor belongs to another order", data={"field": "cursor"})
        return _PLACES[params.order_by](place), UUID(memory_id)

    return read_cursor(params.cursor, understood)
