"""An agent of the OpenAI Agents SDK that remembers, with a scripted model.

Usage: openai_agents_agent.py "I love African Grey parrots" and, in another process: "What bird did I like?" With
AGENTCORE_TOKEN set it uses the service at AGENTCORE_URL, else a memory in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import uuid
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from agents.items import TResponseStreamEvent
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from agentcore import open_memory
from agentcore.agents.scope import MemoryScope
from agentcore.agents.tools import USUAL_TOOLS, memory_instructions
from agentcore.integrations.openai_agents import AgentCoreSession, memory_tools


class ScriptedModel(Model):
    """Replaces your model: saves statements, recalls for questions, and answers with the result."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        last = input[-1]
        if last.get("type") == "function_call_output":
            return reply(said(json.loads(last["output"])))
        asks = last["content"].endswith("?")
        name, argument = ("recall_memory", "query") if asks else ("save_memory", "content")
        call = ResponseFunctionToolCall(
            type="function_call", call_id=uuid.uuid4().hex, name=name, arguments=json.dumps({argument: last["content"]})
        )
        return ModelResponse(output=[call], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[TResponseStreamEvent]:
        raise NotImplementedError("This model does not stream.")


def said(answer: dict[str, Any]) -> str:
    if "status" in answer:
        return "Noted."
    told = [each["content"] for each in answer.get("memories", ())]
    return f"You told me: {told[0]}" if told else "I do not know."


def reply(text: str) -> ModelResponse:
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    message = ResponseOutputMessage(
        type="message", id=uuid.uuid4().hex, role="assistant", status="completed", content=[part]
    )
    return ModelResponse(output=[message], usage=Usage(), response_id=None)


async def main(queries: list[str], user_id: str) -> None:
    agent_id = None if "AGENTCORE_TOKEN" in os.environ else "openai-example"
    scope = MemoryScope(user_id=user_id)
    async with open_memory(agent_id=agent_id) as memory:
        agent = Agent(
            name="assistant",
            model=ScriptedModel(),
            tools=[*memory_tools(memory, scope)],
            instructions=memory_instructions(USUAL_TOOLS),
        )
        session = AgentCoreSession(uuid.uuid4().hex, memory, scope)
        for query in queries:
            done = await Runner.run(agent, query, session=session, run_config=RunConfig(tracing_disabled=True))
            print(f"> {query}\n{done.final_output}", flush=True)
        await session.end()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("query", nargs="*", default=["I love African Grey parrots"])
    parser.add_argument("--user", default="ada", help="Who asks: from your sign-in, never from the model.")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.query, arguments.user))
