"""Sets an agent's own rules (layers, consolidation, models) and aliases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from agentcore.errors import InvalidParams
from agentcore.llm_options import MICROS, LlmUseOptions
from agentcore.memory.aliases import MAX_FORM_TERMS, checked, keyed
from agentcore.memory.api import Caller
from agentcore.memory.consequences.capacity import watch_capacity
from agentcore.memory.consequences.staleness import QUEUE_PERIODS
from agentcore.memory.cursors import read_cursor, write_cursor
from agentcore.memory.lexical import phrase, phrase_key
from agentcore.memory.models import MemoryType
from agentcore.memory.params.aliases import DeleteAliasParams, KnownAlias, ListAliasesParams, SetAliasParams
from agentcore.memory.params.layers import (
    ConfigureParams,
    LayerRules,
    OwnRules,
    changed_rules,
    layer_warnings,
    rules_of,
)
from agentcore.memory.params.llm import LlmUse, warnings_of
from agentcore.memory.parts import MemoryParts
from agentcore.memory.rows.owned_rows import Row
from agentcore.memory.storage import MemoryTransaction
from agentcore.summary_rules import SummaryRules, rules_in_force

_OF_NO_MEMORY = UUID(int=0)
CONSOLIDATION = {"consolidate", "archive_sources_after_days"}


async def rules(parts: MemoryParts, caller: Caller) -> dict[str, Any]:
    """What holds for the caller's agent, and what of it is its own."""
    own = await parts.storage.own_rules(caller.agent_id)
    async with parts.storage.transaction(caller.agent_id) as transaction:
        wish, _ = await transaction.clusters.settings()
        models = await _models(parts, transaction)
    return _with_warnings({**_told(parts, own, wish), **models})


async def configure(parts: MemoryParts, caller: Caller, params: ConfigureParams) -> dict[str, Any]:
    """Change the agent's own rules; what holds then."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        own = changed_rules(await transaction.rules.hold(), params.layers or {})
        await transaction.rules.set(own)
        wish, _ = await transaction.clusters.settings()
        wish = {**wish, **params.model_dump(include=CONSOLIDATION, exclude_none=True)}
        await transaction.clusters.wish(wish)
        before, rules_before = await transaction.llm.wishes(), await transaction.llm.summary_rules()
        await transaction.llm.wish(_changed_wishes(before, params))
        if params.summaries is not None:
            await _follow_summaries(transaction, rules_before)
        models = await _models(parts, transaction, params.summaries)
        changed = [layer.value for layer in params.layers or {}]
        await watch_capacity(transaction, parts.capacities, changed, parts.clock())
    return _with_warnings({**_told(parts, own, wish), **models})


def _with_warnings(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "warnings": [*layer_warnings(result["layers"]), *result["warnings"]]}


def _changed_wishes(wishes: Mapping[str, Any], params: ConfigureParams) -> dict[str, Any]:
    """Returns the agent's changed settings for models; the provider `none` clears its other fields."""
    changed = {**wishes, **params.model_dump(include={"extract_facts", "summaries"}, exclude_none=True)}
    if params.summaries is not None and params.summaries.provider == "none":
        changed["summaries"] = {"provider": "none"}
    elif params.summaries is not None and params.summaries.provider == "default":
        del changed["summaries"]
    return changed


async def _follow_summaries(transaction: MemoryTransaction, before: SummaryRules | None) -> None:
    rules = await transaction.llm.summary_rules()
    if rules is None:
        await transaction.llm.leave_summaries()
    elif rules.period not in (None, None if before is None else before.period):
        await transaction.jobs.enqueue(QUEUE_PERIODS)


async def _models(
    parts: MemoryParts, transaction: MemoryTransaction, given: SummaryRules | None = None
) -> dict[str, Any]:
    """Returns the settings for models, today's cost and warnings; `given` are the settings just changed."""
    wishes, used = await transaction.llm.wishes(), await transaction.llm.usage_today()
    options = LlmUseOptions() if parts.meter is None else parts.meter.options
    rules = rules_in_force(wishes.get("summaries"), parts.storage.service_rules)
    extract_facts = bool(wishes.get("extract_facts", options.extract_facts))
    return {
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


def _told(parts: MemoryParts, own: OwnRules, wish: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "layers": rules_of(parts.layer_rules, own),
        "own": {MemoryType(layer): LayerRules(**each) for layer, each in own.items()},
        "consolidate": bool(wish.get("consolidate")),
        "archive_sources_after_days": int(wish.get("archive_sources_after_days", 0)),
    }


async def set_alias(parts: MemoryParts, caller: Caller, params: SetAliasParams) -> None:
    """Keep what the caller says. Raises InvalidParams where the words could not be looked up."""
    pair = checked(params.alias, params.means)
    if pair is None:
        for field in ("alias", "means"):
            if not 0 < len(phrase(getattr(params, field))) <= MAX_FORM_TERMS:
                problem = f"{field} needs one to {MAX_FORM_TERMS} words that are no stop words"
                raise InvalidParams(problem, data={"field": field})
        raise InvalidParams("means says the same words as alias", data={"field": "means"})
    async with parts.storage.transaction(caller.agent_id) as transaction:
        await transaction.aliases.set(keyed(caller.agent_id, pair))


async def delete_alias(parts: MemoryParts, caller: Caller, params: DeleteAliasParams) -> int:
    """Remove every meaning of an alias; how many there were."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        return await transaction.aliases.delete(phrase_key(caller.agent_id, phrase(params.alias)))


async def list_aliases(
    parts: MemoryParts, caller: Caller, params: ListAliasesParams
) -> tuple[list[KnownAlias], str | None]:
    """One page, and the cursor of the next if there is one. Raises InvalidParams for a foreign cursor."""
    after = None if params.cursor is None else read_cursor(params.cursor, _place)
    rows = await parts.storage.aliases(caller.agent_id, after, params.limit + 1)
    page = rows[: params.limit]
    cursor = write_cursor(_place_of(page[-1])) if len(rows) > params.limit else None
    return [KnownAlias.model_construct(**row) for row in page], cursor


def _place_of(row: Row) -> list[str]:
    return [row["alias"], row["means"], str(row["memory_id"] or _OF_NO_MEMORY)]


def _place(alias: Any, means: Any, memory_id: Any) -> tuple[str, str, str]:
    if "\0" in f"{alias}{means}".encode().decode():
        raise ValueError("no page ends there")
    return str(alias), str(means), str(UUID(memory_id))
