"""A model that calls the memory tools itself, in OpenAI's format; the model is scripted.

With AGENTCORE_TOKEN set it uses the service at AGENTCORE_URL, else a memory in this process. For a real model
replace `scripted_model` by `(await client.chat.completions.create(model=..., messages=messages,
tools=tools)).choices[0].message` of the `openai` package.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

from agentcore import open_memory
from agentcore.agents.openai_tools import chat_answers, chat_tools
from agentcore.agents.prefetch import with_memory
from agentcore.agents.tools import USUAL_TOOLS, MemoryTools, memory_instructions
from agentcore.memory.api import MemoryApi
from agentcore.memory.contexts.fencing import CLOSING

BUDGET = "The budget for the Hawaii trip is 10,000 dollars."


def scripted_model(messages: list[dict[str, Any]], tools: list[Any]) -> dict[str, Any]:
    """Replaces your model: saves the budget, recalls it, and answers with the result."""
    last = messages[-1]
    if last["role"] == "tool":
        memories = json.loads(last["content"]).get("memories")
        return {"role": "assistant", "content": memories[0]["content"] if memories else "Saved."}
    words = last["content"].rpartition(CLOSING)[2].strip()  # below the context
    name, argument = ("recall_memory", "query") if words.endswith("?") else ("save_memory", "content")
    function = {"name": name, "arguments": json.dumps({argument: words})}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call-1", "type": "function", "function": function}],
    }


async def conversation(memory: MemoryApi, words: str) -> str:
    """Prefetches memory once, then calls the model until it calls no tool."""
    tools = MemoryTools(memory)
    messages = await with_memory(
        memory, [{"role": "system", "content": memory_instructions(USUAL_TOOLS)}, {"role": "user", "content": words}]
    )
    while True:
        message = scripted_model(messages, chat_tools(tools.definitions))
        messages.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        messages += await chat_answers(tools, message["tool_calls"])


async def main() -> None:
    agent_id = None if "AGENTCORE_TOKEN" in os.environ else "example-agent"
    async with open_memory(agent_id=agent_id) as memory:
        for words in (BUDGET, "What's my budget for the trip?"):
            print(f"> {words}\n{await conversation(memory, words)}")


if __name__ == "__main__":
    asyncio.run(main())
