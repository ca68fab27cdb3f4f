"""MemoryManager: the in-process memory of one agent, one instance per caller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from agentcore import __version__
from agentcore.errors import InvalidParams, NotFound
from agentcore.limits import MAX_COUNTED_MEMORIES, limits_in_force
from agentcore.memory.api import Caller, MemoryApi, Method, P, ParamsT, ResultT
from agentcore.memory.deriving import consolidating, sessions
from agentcore.memory.forgetting import erasing, removing, restoring
from agentcore.memory.keys import read_cursor, write_cursor
from agentcore.memory.models import Dropped, JsonObject, MemoryType, Receipt
from agentcore.memory.params import agent_settings, changes, memories
from agentcore.memory.params import archived as archives
from agentcore.memory.params import jobs as job_params
from agentcore.memory.params import sessions as session_params
from agentcore.memory.parts import MemoryParts
from agentcore.memory.pruning import STRATEGIES
from agentcore.memory.recall import projecting, recalling
from agentcore.memory.recall.searching import Search
from agentcore.memory.writing import changing, configuring
from agentcore.memory.writing.changing import Changing, Judging, Updating
from agentcore.memory.writing.document_vectors import OTHER_MODEL
from agentcore.memory.writing.storing import Storing

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


class MemoryOperations:
    """Implements each method of `MemoryApi`; one instance per call, whose steps it times."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts, self._caller, self._steps = parts, caller, parts.steps()

    def _receipt(self, degraded: Sequence[str] = ()) -> Receipt:
        return Receipt(degraded=[*degraded], timings_ms=self._steps.timings_ms)

    def _filter_receipt(self, conditions: Mapping[str, Any]) -> Receipt:
        return Receipt(searched={"filters": sorted(conditions)}, timings_ms=self._steps.timings_ms)

    async def store(self, params: memories.StoreParams) -> memories.StoreResult:
        storing = Storing(self._parts, self._caller, [params])
        with self._steps("store"):
            [result] = await storing.run()
        if storing.errors:
            raise storing.errors[0]
        return result.model_copy(update={"receipt": self._receipt(storing.degraded)})

    async def store_batch(self, params: memories.StoreBatchParams) -> memories.StoreBatchResult:
        storing = Storing(self._parts, self._caller, params.items)
        with self._steps("store"):
            results = await storing.run()
        return memories.StoreBatchResult(
            success=all(result.success for result in results), results=results, receipt=self._receipt(storing.degraded)
        )

    async def retrieve(self, params: memories.RetrieveParams) -> memories.RetrieveResult:
        search = Search(self._parts, self._caller, params, params.conditions(), self._steps)
        found = await search.run(params.k, self._parts.policy.retrieve_cut_offs)
        given = [memory.memory_id for memory in found.memories]
        self._parts.accesses.note(self._caller.agent_id, given, self._parts.clock())
        return memories.RetrieveResult(memories=found.memories, traces=found.traces, receipt=found.receipt)

    async def get_context(self, params: memories.GetContextParams) -> memories.GetContextResult:
        return await recalling.context(self._parts, self._caller, params)

    async def prune(self, params: memories.PruneParams) -> memories.PruneResult:
        with self._steps("prune"):
            removed = await removing.Pruning(self._parts, self._caller, params).run()
        return memories.PruneResult(
            pruned_count=0 if params.dry_run else len(removed.memory_ids),
            memory_ids=removed.memory_ids,
            dry_run=params.dry_run,
            complete=removed.complete,
            receipt=self._receipt(),
        )

    async def restore(self, params: archives.RestoreParams) -> archives.RestoreResult:
        with self._steps("restore"):
            restored = await restoring.Restoring(self._parts, self._caller, params).run()
        count = 0 if params.dry_run else len(restored.memory_ids)
        degraded = [OTHER_MODEL] if restored.waiting_for_embedding_ids else []
        return archives.RestoreResult(
            restored_count=count, dry_run=params.dry_run, **vars(restored), receipt=self._receipt(degraded)
        )

    async def archived(self, params: archives.ArchivedParams) -> archives.ArchivedResult:
        with self._steps("search"):
            memories, cursor = await restoring.archived(self._parts, self._caller, params)
        receipt = self._filter_receipt(params.conditions())
        return archives.ArchivedResult(memories=memories, next_cursor=cursor, receipt=receipt)

    async def get(self, params: memories.GetParams) -> memories.GetResult:
        with self._steps("fetch"):
            records = await self._parts.storage.get(
                self._caller.agent_id, [params.memory_id], primary=params.consistent
            )
        if params.memory_id not in records:
            raise NotFound(data={"memory_id": str(params.memory_id)})
        return memories.GetResult(memory=records[params.memory_id], receipt=self._receipt())

    async def list(self, params: memories.ListParams) -> memories.ListResult:
        place, after_id = _place(params)
        with self._steps("search"):
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
        with self._steps("fetch"):
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
        return memories.ListResult(
            memories=[records[page[place]["memory_id"]] for place in fitting],
            next_cursor=write_cursor(_place_of(params, page[last])) if len(rows) > last + 1 else None,
            receipt=self._filter_receipt(params.conditions()),
        )

    async def count(self, params: memories.CountParams) -> memories.CountResult:
        with self._steps("search"):
            count = await self._parts.storage.count(
                self._caller.agent_id, params.conditions(), primary=params.consistent
            )
        return memories.CountResult(count=count, receipt=self._filter_receipt(params.conditions()))

    async def facets(self, params: memories.FacetsParams) -> memories.FacetsResult:
        with self._steps("search"):
            rows = await self._parts.storage.count_values(
                self._caller.agent_id, params.conditions(), params.fields, MAX_COUNTED_MEMORIES, params.limit
            )
        facets: dict[memories.FacetField, list[memories.FacetValue]] = {field: [] for field in params.fields}
        for row in rows if rows[0]["field"] is not None else ():
            counted = memories.FacetValue(value=row["value"], count=row["count"], newest=row["newest"])
            facets[row["field"]].append(counted)
        memory_count = rows[0]["memories"]
        return memories.FacetsResult(
            facets=facets,
            memory_count=memory_count,
            complete=memory_count < MAX_COUNTED_MEMORIES,
            receipt=self._filter_receipt(params.conditions()),
        )

    async def project(self, params: memories.ProjectParams) -> memories.ProjectResult:
        return await projecting.project(self._parts, self._caller.agent_id, params, self._steps)

    async def delete(self, params: memories.DeleteParams) -> memories.DeleteResult:
        with self._steps("delete"):
            deleted = await removing.delete(self._parts, self._caller, params)
        return memories.DeleteResult(
            deleted_count=deleted.count,
            reinstated_count=len(deleted.reinstated),
            complete=deleted.complete,
            receipt=self._receipt(),
        )

    async def stats(self, params: memories.StatsParams) -> memories.StatsResult:
        with self._steps("search"):
            rows = {row["memory_type"]: row for row in await self._parts.storage.layers(self._caller.agent_id)}
            totals = await self._parts.storage.totals(self._caller.agent_id)
            own = await self._parts.storage.own_rules(self._caller.agent_id)
        rules = agent_settings.rules_of(self._parts.policy.layers, own)
        layers = {
            layer: memories.LayerStats(**_layer(rows.get(layer.value), rules[layer].capacity or 0))
            for layer in MemoryType
        }
        return memories.StatsResult(
            total=sum(layer.count for layer in layers.values()),
            layers=layers,
            **totals,
            receipt=self._filter_receipt({}),
        )

    async def capabilities(self, params: memories.CapabilitiesParams) -> memories.CapabilitiesResult:
        archive, embedder = self._parts.archive, self._parts.embedder
        return memories.CapabilitiesResult(
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

    async def update(self, params: changes.UpdateParams) -> changes.UpdateResult:
        if params.updates.renew is None:
            return changes.UpdateResult(**await self._changed(Updating(self._parts, self._caller, params)))
        with self._steps("renew"):
            version = await changing.renew(self._parts, self._caller, params.memory_id)
        return changes.UpdateResult(success=True, memory_id=params.memory_id, version=version, receipt=self._receipt())

    async def history(self, params: changes.HistoryParams) -> changes.HistoryResult:
        with self._steps("fetch"):
            standing, entries, cursor = await changing.changes(self._parts, self._caller, params)
        return changes.HistoryResult(**standing, changes=entries, next_cursor=cursor, receipt=self._receipt())

    async def revert(self, params: changes.RevertParams) -> changes.RevertResult:
        return changes.RevertResult(**await self._changed(changing.Reverting(self._parts, self._caller, params)))

    async def feedback(self, params: changes.FeedbackParams) -> changes.FeedbackResult:
        judging = Judging(self._parts, self._caller, params)
        changed = await self._changed(judging)
        return changes.FeedbackResult(**changed, relevance_score=judging.relevance_score)

    async def _changed(self, changing: Changing) -> JsonObject:
        with self._steps(changing.operation):
            version = await changing.run()
        receipt = self._receipt(changing.degraded)
        return {"success": True, "memory_id": changing.memory_id, "version": version, "receipt": receipt}

    async def complete_task(self, params: memories.CompleteTaskParams) -> memories.CompleteTaskResult:
        with self._steps("complete"):
            cleared = await changing.complete_task(self._parts, self._caller, params.task_id)
        return memories.CompleteTaskResult(success=True, cleared_count=cleared, receipt=self._receipt())

    async def add_session(self, params: session_params.AddSessionParams) -> session_params.AddSessionResult:
        with self._steps("store"):
            results, degraded = await sessions.add(self._parts, self._caller, params)
        return session_params.AddSessionResult(
            success=all(result.success or result.code is None for result in results),
            session_id=params.session_id,
            stored_count=sum(result.status == "stored" for result in results),
            results=results,
            receipt=self._receipt(degraded),
        )

    async def end_session(self, params: session_params.EndSessionParams) -> session_params.EndSessionResult:
        with self._steps("end"):
            ended = await sessions.end(self._parts, self._caller, params)
        return session_params.EndSessionResult(
            success=True,
            session_id=params.session_id,
            promoted_count=ended.promoted_count,
            ended_count=ended.ended_count,
            summary_id=ended.summary_ids[-1] if ended.summary_ids else None,
            summary_ids=[*ended.summary_ids],
            summary=ended.summary,
            summary_pending=ended.summary_pending,
            receipt=self._receipt(),
        )

    async def summarize(self, params: session_params.SummarizeParams) -> session_params.SummarizeResult:
        conditions = params.conditions()
        with self._steps("summarize"):
            summary, read = await sessions.summary_of(self._parts, self._caller, conditions, params.max_tokens)
        return session_params.SummarizeResult(
            summary=summary.text,
            token_count=summary.token_count,
            memory_ids=[*summary.memory_ids],
            memory_count=read,
            receipt=self._filter_receipt(conditions),
        )

    async def clear(self, params: session_params.ClearParams) -> session_params.ClearResult:
        with self._steps("delete"):
            cleared = await sessions.clear(self._parts, self._caller, params)
        return session_params.ClearResult(
            cleared_count=cleared.count,
            reinstated_count=len(cleared.reinstated),
            complete=cleared.complete,
            receipt=self._receipt(),
        )

    async def settings(self, params: agent_settings.SettingsParams) -> agent_settings.SettingsResult:
        with self._steps("fetch"):
            rules = await configuring.rules(self._parts, self._caller)
        return agent_settings.SettingsResult(**rules, receipt=self._receipt())

    async def configure(self, params: agent_settings.ConfigureParams) -> agent_settings.ConfigureResult:
        with self._steps("configure"):
            rules = await configuring.configure(self._parts, self._caller, params)
        return agent_settings.ConfigureResult(success=True, **rules, receipt=self._receipt())

    async def jobs(self, params: job_params.JobsParams) -> job_params.JobsResult:
        with self._steps("fetch"):
            rows = await self._parts.jobs.page(state=params.state, agent_id=self._caller.agent_id, limit=params.limit)
        return job_params.JobsResult(jobs=job_params.entries(rows), receipt=self._receipt())

    async def change_job(self, params: job_params.ChangeJobParams) -> job_params.ChangeJobResult:
        with self._steps("change job"):
            previous = await self._parts.jobs.change(self._caller.agent_id, params.job_id, params.action)
        return job_params.ChangeJobResult(
            job_id=params.job_id, previous_state=job_params.JobState(previous), receipt=self._receipt()
        )

    async def consolidate(self, params: agent_settings.ConsolidateParams) -> agent_settings.ConsolidateResult:
        work = consolidating.Consolidating(self._parts, self._caller, params)
        with self._steps("consolidate"):
            done = await work.run()
        young = [Dropped(reason="too_young", count=done.too_young_count)] if done.too_young_count else []
        return agent_settings.ConsolidateResult(
            success=True,
            dry_run=params.dry_run,
            clusters=done.clusters,
            looked_at_count=done.looked_at_count,
            archived_count=len(done.archived),
            complete=done.complete,
            receipt=self._receipt(work.degraded).model_copy(update={"dropped": young}),
        )

    async def erase(self, params: archives.EraseParams) -> archives.EraseResult:
        with self._steps("erase"):
            done = await erasing.Erasing(self._parts, self._caller, params).run()
        return archives.EraseResult(verified=done.verified, **vars(done), receipt=self._receipt())


class MemoryManager(MemoryApi):
    """The in-process memory of the caller's agent."""

    operations: type[MemoryOperations] = MemoryOperations

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts, self._caller = parts.for_caller(caller), caller

    async def call(self, method: Method[P, ParamsT, ResultT], params: ParamsT) -> ResultT:
        operations = self.operations(self._parts, self._caller)
        operation: Callable[[ParamsT], Awaitable[ResultT]] = getattr(operations, method.attribute)
        return await operation(params)


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


def _place_of(params: memories.ListParams, row: Mapping[str, Any]) -> list[Any]:
    place = row["place"]
    text = place.isoformat() if isinstance(place, datetime) else place
    return [params.order_by, params.descending, text, str(row["memory_id"])]


def _within(place: Any, most: float) -> Any:
    if not 0 <= place <= most:
        raise ValueError("no page ends there")
    return place


def _place(params: memories.ListParams) -> tuple[Any, UUID | None]:
    if params.cursor is None:
        return None, None

    def understood(order_by: Any, descending: Any, place: Any, memory_id: Any) -> tuple[Any, UUID]:
        if (order_by, descending) != (params.order_by, params.descending):
            raise InvalidParams("cursor belongs to another order", data={"field": "cursor"})
        return _PLACES[params.order_by](place), UUID(memory_id)

    return read_cursor(params.cursor, understood)
