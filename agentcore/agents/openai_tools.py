"""The memory tools in the forms OpenAI's API takes, and its calls answered. Needs no package of OpenAI's.

Chat completions and responses describe a tool and carry a call in two forms; both are here. What they give is
plain JSON values, typed loosely: OpenAI's own types need OpenAI's package.
"""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterable, Mapping
from typing import Any

from agentcore.agents.tools import MemoryTools, ToolDefinition


def chat_tools(definitions: Iterable[ToolDefinition]) -> list[Any]:
    """For `tools` of `client.chat.completions.create`."""
    return [{"type": "function", "function": _described(tool)} for tool in definitions]


def response_tools(definitions: Iterable[ToolDefinition]) -> list[Any]:
    """For `tools` of `client.responses.create`. Not strict: what may be left out is not required."""
    return [{"type": "function", **_described(tool), "strict": False} for tool in definitions]


async def chat_answers(tools: MemoryTools, calls: Iterable[Any] | None) -> list[Any]:
    """The `tool` messages for the memory calls among `tool_calls`; those of other tools are passed over.

    Of none (`message.tool_calls` is None where a model calls nothing) there are none.
    """
    own = [call for call in map(_plain, calls or ()) if tools.has(str(_member(call, "function", "name")))]
    texts = await asyncio.gather(*(
        tools.call(call["function"]["name"], call["function"].get("arguments")) for call in own))
    return [{"role": "tool", "tool_call_id": call["id"], "content": text}
            for call, text in zip(own, texts, strict=True)]


async def response_answers(tools: MemoryTools, output: Iterable[Any]) -> list[Any]:
    """The `function_call_output` items for the memory calls in `output`; the rest is passed over."""
    calls = [item for item in map(_plain, output) if item.get("type") == "function_call"]
    own = [item for item in calls if tools.has(str(item.get("name")))]
    texts = await asyncio.gather(*(tools.call(item["name"], item.get("arguments")) for item in own))
    return [{"type": "function_call_output", "call_id": item["call_id"], "output": text}
            for item, text in zip(own, texts, strict=True)]


def _described(tool: ToolDefinition) -> dict[str, Any]:
    parameters = copy.deepcopy(dict(tool.parameters))
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _plain(call: Any) -> dict[str, Any]:
    """A call of the SDK's (a pydantic model) or of the wire (an object) as an object."""
    return dict(call if isinstance(call, Mapping) else call.model_dump())


def _member(call: Mapping[str, Any], part: str, name: str) -> Any:
    inner = call.get(part)
    return inner.get(name) if isinstance(inner, Mapping) else None
