"""The settings in force and where they come from; a form for those of the agent."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from starlette.responses import Response

from agentcore.config import Settings
from agentcore.console.visit import Visit
from agentcore.errors import InvalidParams
from agentcore.limits import LIMITS
from agentcore.memory.models import MemoryType
from agentcore.memory.params.agent_settings import LayerRules, SettingsResult
from agentcore.summary_rules import SummaryRules

# Defaults of this version. A rule of a layer that is not in LAYER_DEFAULTS is 0: none.
DEFAULTS = {"consolidate": False, "archive_sources_after_days": 0, "extract_facts": False, "summaries": None}
LAYER_DEFAULTS = {(MemoryType.WORKING, "ttl_seconds"): Settings.model_fields["memory_working_ttl"].default}
TEXTS = ("trigger", "period", "prompt")
NUMBERS = ("user_turns", "message_count", "inactivity_seconds", "max_tokens")


class InForce(NamedTuple):
    """A value in force; `origin`: agent, operator or default; `own`: the agent's value of a layer, True of others."""

    value: Any
    origin: str
    own: Any = None


def _in_force(value: Any, default: Any, own: Any) -> InForce:
    origin = "agent" if own is not None else "default" if value == default else "operator"
    return InForce(value, origin, own)


async def settings(visit: Visit) -> Response:
    return await _show(visit)


async def _show(visit: Visit, problem: str = "") -> Response:
    capabilities, found = await asyncio.gather(visit.memory.capabilities(), visit.memory.settings())
    return visit.render(
        "settings.html",
        422 if problem else 200,
        problem=problem,
        capabilities=capabilities,
        settings=found,
        layers={
            layer: {
                name: _in_force(value, LAYER_DEFAULTS.get((layer, name), 0), getattr(found.own.get(layer), name, None))
                for name, value in rules
            }
            for layer, rules in found.layers.items()
        },
        rules={
            name: _in_force(getattr(found, name), default, True if name in found.own_settings else None)
            for name, default in DEFAULTS.items()
        },
        summaries=found.summaries or SummaryRules(),
        limits=[(each, _in_force(capabilities.limits[each.name], each.value, None)) for each in LIMITS],
    )


async def configure(visit: Visit) -> Response:
    """Changes one part of the agent's settings; a problem is shown above the form, with what was entered."""
    part = _CHANGES.get(visit.text("part", "rules"))
    if part is None:
        return await _show(visit, "This part of the settings is unknown.")
    try:
        changes = part(visit, await visit.memory.settings())
        if not changes:
            raise InvalidParams("Nothing was changed.")
        await visit.memory.configure(**changes)
    except InvalidParams as error:
        return await _show(visit, error.message)
    return visit.go("/settings?done=saved")


def _layers(visit: Visit, found: SettingsResult) -> dict[str, Any]:
    """Returns what differs from the agent's own rules; an empty field resets one to the service's."""
    layers: dict[str, dict[str, Any]] = {}
    for layer in MemoryType:
        for name in LayerRules.model_fields:
            given = visit.number(f"{layer.value}.{name}")
            if given != getattr(found.own.get(layer), name, None):
                layers.setdefault(layer.value, {})[name] = given
    return {"layers": layers} if layers else {}


def _rules(visit: Visit, found: SettingsResult) -> dict[str, Any]:
    given = {
        "consolidate": visit.text("consolidate") == "on",
        "extract_facts": visit.text("extract_facts") == "on",
        "archive_sources_after_days": visit.number("archive_sources_after_days"),
    }
    return {name: value for name, value in given.items() if value not in (None, getattr(found, name))}


def _summaries(visit: Visit, found: SettingsResult) -> dict[str, Any]:
    provider = visit.text("provider", "default")
    if provider in ("default", "none"):
        return {"summaries": {"provider": provider}}
    given = {**{name: visit.text(name) for name in TEXTS}, **{name: visit.number(name) for name in NUMBERS}}
    return {
        "summaries": {"provider": provider, **{name: each for name, each in given.items() if each not in ("", None)}}
    }


_CHANGES = {"layers": _layers, "rules": _rules, "summaries": _summaries}
SETTINGS_PAGES = (("/settings", "GET", settings), ("/settings", "POST", configure))
