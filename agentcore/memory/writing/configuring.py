"""Sets an agent's own rules: layers, consolidation, models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentcore.memory.api import Caller
from agentcore.memory.consequences.pending_work import QUEUE_PERIODS, watch_capacity
from agentcore.memory.models import JsonObject, MemoryType
from agentcore.memory.params.agent_settings import (
    ConfigureParams,
    LayerRules,
    LlmUse,
    OwnRules,
    changed_rules,
    layer_warnings,
    rules_of,
    warnings_of,
)
from agentcore.memory.parts import MemoryParts
from agentcore.memory.storage import MemoryTransaction
from agentcore.structured_settings import MICROS, LlmUseOptions
from agentcore.summary_rules import SummaryRules, rules_in_force

CONSOLIDATION = {"consolidate", "archive_sources_after_days"}


async def rules(parts: MemoryParts, caller: Caller) -> JsonObject:
    """Returns the agent's effective rules, and which of them are its own."""
    own = await parts.storage.own_rules(caller.agent_id)
    async with parts.storage.transaction(caller.agent_id) as transaction:
        wish, _ = await transaction.clusters.settings()
        models = await _models(parts, transaction, wish)
    return _with_warnings({**_told(parts, own, wish), **models})


async def configure(parts: MemoryParts, caller: Caller, params: ConfigureParams) -> JsonObject:
    """Changes the agent's own rules; returns those then in force."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        own = changed_rules(await transaction.rules.hold(), params.layers or {})
        await transaction.rules.set(own)
        wish, _ = await transaction.clusters.settings()
        wish = {**wish, **params.model_dump(include=CONSOLIDATION, exclude_none=True)}
        await transaction.clusters.configure(wish)
        before, rules_before = await transaction.llm.own_settings(), await transaction.llm.summary_rules()
        await transaction.llm.configure(_changed_wishes(before, params))
        if params.summaries is not None:
            await _follow_summaries(transaction, rules_before)
        models = await _models(parts, transaction, wish, params.summaries)
        changed = [layer.value for layer in params.layers or {}]
        await watch_capacity(transaction, parts.capacities, changed, parts.clock())
    return _with_warnings({**_told(parts, own, wish), **models})


def _with_warnings(result: JsonObject) -> JsonObject:
    return {**result, "warnings": [*layer_warnings(result["layers"]), *result["warnings"]]}


def _changed_wishes(wishes: Mapping[str, Any], params: ConfigureParams) -> JsonObject:
    changed = {**wishes, **params.model_dump(include={"extract_facts", "summaries"}, exclude_none=True)}
    if params.summaries is not None and params.summaries.provider == "none":
        changed["summaries"] = {"provider": "none"}
    elif params.summaries is not None and params.summaries.provider == "default":
        del changed["summaries"]
    return changed


async def _follow_summaries(transaction: MemoryTransaction, before: SummaryRules | None) -> None:
    rules = await transaction.llm.summary_rules()
    if rules is None:
        await transaction.llm.dequeue_session_messages()
    elif rules.period not in (None, None if before is None else before.period):
        await transaction.jobs.enqueue(QUEUE_PERIODS)


async def _models(
    parts: MemoryParts, transaction: MemoryTransaction, wish: Mapping[str, Any], given: SummaryRules | None = None
) -> JsonObject:
    wishes, used = await transaction.llm.own_settings(), await transaction.llm.usage_today()
    options = LlmUseOptions() if parts.meter is None else parts.meter.options
    rules = rules_in_force(wishes.get("summaries"), parts.storage.service_rules)
    extract_facts = bool(wishes.get("extract_facts", options.extract_facts))
    return {
        "own_settings": sorted({*wish, *wishes}),
        "extract_facts": extract_facts,
        "summaries": rules,
        "llm_use": LlmUse(
            requests=used["calls"],
            refused=used["refused"],
            tokens=used["tokens"],
            cost=float(used["cost_micros"] / MICROS),
            tokens_a_day=options.tokens_a_day,
            cost_a_day=float(options.cost_a_day),
        ),
        "warnings": warnings_of(
            rules,
            given=given,
            extract_facts=extract_facts,
            has_extractor=parts.extractor is not None,
            has_summariser=parts.summariser is not None,
            has_embedder=parts.embedder is not None,
            by_default=wishes.get("summaries") is None and parts.storage.service_rules is None,
        ),
    }


def _told(parts: MemoryParts, own: OwnRules, wish: Mapping[str, Any]) -> JsonObject:
    return {
        "layers": rules_of(parts.layer_rules, own),
        "own": {MemoryType(layer): LayerRules(**each) for layer, each in own.items()},
        "consolidate": bool(wish.get("consolidate")),
        "archive_sources_after_days": int(wish.get("archive_sources_after_days", 0)),
    }
