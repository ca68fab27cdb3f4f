"""How an agent's layers forget: what holds for it, and what is set for it alone."""

from __future__ import annotations

from typing import Any

from agentcore.memory.api import Caller
from agentcore.memory.capacity import watch_capacity
from agentcore.memory.layer_params import ConfigureParams, LayerRules, OwnRules, changed_rules, rules_of
from agentcore.memory.models import MemoryType
from agentcore.memory.parts import MemoryParts


async def rules(parts: MemoryParts, caller: Caller) -> dict[str, Any]:
    """What holds for the caller's agent, and what of it is its own."""
    return _told(parts, await parts.storage.own_rules(caller.agent_id))


async def configure(parts: MemoryParts, caller: Caller, params: ConfigureParams) -> dict[str, Any]:
    """Change the agent's own rules; what holds then."""
    async with parts.storage.transaction(caller.agent_id) as transaction:
        own = changed_rules(await transaction.rules.hold(), params.layers)
        await transaction.rules.set(own)
        changed = [layer.value for layer in params.layers]
        await watch_capacity(transaction, parts.capacities, changed, parts.clock())
    return _told(parts, own)


def _told(parts: MemoryParts, own: OwnRules) -> dict[str, Any]:
    return {
        "layers": rules_of(parts.policy.layers, own),
        "own": {MemoryType(layer): LayerRules(**each) for layer, each in own.items()},
    }
