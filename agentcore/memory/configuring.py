"""An agent's own rules: how its layers forget, and whether its episodes are consolidated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentcore.memory.api import Caller
from agentcore.memory.capacity import watch_capacity
from agentcore.memory.layer_params import ConfigureParams, LayerRules, OwnRules, changed_rules, rules_of
from agentcore.memory.models import MemoryType
from agentcore.memory.parts import MemoryParts


async def rules(parts: MemoryParts, caller: Caller) -> dict[str, Any]:
    """What holds for the caller's agent, and what of it is its own."""
    own = await parts.storage.own_rules(caller.agent_id)
    async with parts.storage.transaction(caller.agent_id) as transaction:
        wish, _ = await transaction.clusters.settings()
    return _told(parts, own, wish)


async def configure(parts: MemoryParts, caller: Caller, params: ConfigureParams) -> dict[str, Any]:
    """Change the agent's own rules; what holds then."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        own = changed_rules(await transaction.rules.hold(), params.layers or {})
        await transaction.rules.set(own)
        wish, _ = await transaction.clusters.settings()
        wish = {**wish, **params.model_dump(exclude={"layers"}, exclude_none=True)}
        await transaction.clusters.wish(wish)
        changed = [layer.value for layer in params.layers or {}]
        await watch_capacity(transaction, parts.capacities, changed, parts.clock())
    return _told(parts, own, wish)


def _told(parts: MemoryParts, own: OwnRules, wish: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "layers": rules_of(parts.policy.layers, own),
        "own": {MemoryType(layer): LayerRules(**each) for layer, each in own.items()},
        "consolidate": bool(wish.get("consolidate")),
        "archive_sources_after_days": int(wish.get("archive_sources_after_days", 0)),
    }
