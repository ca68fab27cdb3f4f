"""What changes and forgets memories, one short method an operation: updates, pasts, sessions, rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentcore.memory.api import Caller
from agentcore.memory.deriving import consolidating, sessions
from agentcore.memory.forgetting import erasing
from agentcore.memory.models import Dropped, Receipt
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
from agentcore.memory.writing import changing, configuring, reverting, updating
from agentcore.memory.writing.changing import Changing
from agentcore.memory.writing.renewing import Renewing
from agentcore.telemetry import Steps


class LifecycleOperations:
    """The operations on the life of the caller's agent's memories; `MemoryOperations` adds the others."""

    def __init__(self, parts: MemoryParts, caller: Caller) -> None:
        self._parts = parts.for_caller(caller)
        self._caller = caller

    async def update(self, params: UpdateParams) -> UpdateResult:
        if params.updates.renew is not None:
            return UpdateResult(**await self._changed(Renewing(self._parts, self._caller, params.memory_id)))
        return UpdateResult(**await self._changed(updating.Updating(self._parts, self._caller, params)))

    async def history(self, params: HistoryParams) -> HistoryResult:
        steps = self._parts.steps()
        with steps("fetch"):
            standing, changes, cursor = await reverting.changes(self._parts, self._caller, params)
        return HistoryResult(**standing, changes=changes, next_cursor=cursor, receipt=receipt_of(steps))

    async def revert(self, params: RevertParams) -> RevertResult:
        return RevertResult(**await self._changed(reverting.Reverting(self._parts, self._caller, params)))

    async def feedback(self, params: FeedbackParams) -> FeedbackResult:
        judging = updating.Judging(self._parts, self._caller, params)
        changed = await self._changed(judging)
        return FeedbackResult(**changed, relevance_score=judging.relevance_score)

    async def _changed(self, changing: Changing | Renewing) -> dict[str, Any]:
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
            summary, read = await sessions.summary_of(
                self._parts, self._caller, conditions, params.max_tokens
            )
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
