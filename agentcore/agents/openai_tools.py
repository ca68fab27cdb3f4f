"""Memory tools and answers in the formats of OpenAI's API, without its package."""

from __future__ import annotations

import asyncio
import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any

from agentcore.agents.tools import MemoryTools, ToolDefinition

# Keywords that OpenAI's structured outputs refuse.
NOT_STRICT = frozenset({"default", "minLength", "maxLength"})


def chat_tools(definitions: Iterable[ToolDefinition], *, strict: bool = False) -> list[Any]:
    """Returns `tools` for `client.chat.completions.create`; `strict`: the model must follow the schema."""
    mode = {"strict": True} if strict else {}
    return [{"type": "function", "function": {**_described(tool, strict), **mode}} for tool in definitions]


def response_tools(definitions: Iterable[ToolDefinition], *, strict: bool = False) -> list[Any]:
    """Returns `tools` for `client.responses.create`; `strict`: the model must follow the schema."""
    return [{"type": "function", **_described(tool, strict), "strict": strict} for tool in definitions]


async def chat_answers(tools: MemoryTools, calls: Iterable[Any] | None) -> list[Any]:
    """Returns `tool` messages for the memory calls among `tool_calls`; skips calls of other tools.

    `message.tool_calls` is None if the model calls no tool: the result is empty.
    """
    asked = [(call["id"], call.get("function")) for call in map(_plain, calls or ())]
    return [
        {"role": "tool", "tool_call_id": call_id, "content": text} for call_id, text in await _answers(tools, asked)
    ]


async def response_answers(tools: MemoryTools, output: Iterable[Any]) -> list[Any]:
    """Returns `function_call_output` items for the memory calls in `output`; skips all other items."""
    asked = [(item["call_id"], item) for item in map(_plain, output) if item.get("type") == "function_call"]
    return [
        {"type": "function_call_output", "call_id": call_id, "output": text}
        for call_id, text in await _answers(tools, asked)
    ]


async def _answers(tools: MemoryTools, asked: Iterable[tuple[str, Any]]) -> list[tuple[str, str]]:
    own = [(call_id, call) for call_id, call in asked if isinstance(call, Mapping) and tools.has(str(call.get("name")))]
    texts = await asyncio.gather(*(tools.call(call["name"], call.get("arguments")) for _, call in own))
    return [(call_id, text) for (call_id, _), text in zip(own, texts, strict=True)]


def _described(tool: ToolDefinition, strict: bool) -> dict[str, Any]:
    parameters = copy.deepcopy(dict(tool.parameters))
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": _strict(parameters) if strict else parameters,
    }


def _strict(parameters: dict[str, Any]) -> dict[str, Any]:
    required = parameters.get("required", [])
    properties = {
        name: _known(schema) if name in required else _nullable(schema)
        for name, schema in parameters["properties"].items()
    }
    return {**parameters, "properties": properties, "required": list(properties), "additionalProperties": False}


def _nullable(schema: Mapping[str, Any]) -> dict[str, Any]:
    described = {**schema}
    said, default = described.pop("description", ""), described.get("default")
    left_out = f"null: {json.dumps(default)}." if default is not None else "null: not given."
    return {"description": f"{said} {left_out}".strip(), "anyOf": [_known(described), {"type": "null"}]}


def _known(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the schema without the keywords that strict mode refuses."""
    known = {name: value for name, value in schema.items() if name not in NOT_STRICT}
    return {**known, "items": _known(known["items"])} if "items" in known else known


def _plain(call: Any) -> dict[str, Any]:
    return dict(call if isinstance(call, Mapping) else call.model_dump())
