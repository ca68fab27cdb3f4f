"""A google-adk agent that remembers from one session to the next, with a scripted model.

Usage: google_adk_agent.py "I love African Grey parrots" and, in another process: ... "What bird did I like?" With
AGENTCORE_TOKEN set it uses the service at AGENTCORE_URL, else a memory in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.agents.callback_context import CallbackContext
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.preload_memory_tool import PreloadMemoryTool
from google.genai import types

from agentcore import open_memory
from agentcore.integrations.google_adk import AgentCoreMemoryService

APP, USER = "example", "ada"
QUOTED = re.compile(r"^user: (.*[^?])$", re.MULTILINE)


class ScriptedModel(BaseLlm):
    """Replaces your model: answers a question with the first line that ADK quotes from memory."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        texts = [part.text or "" for content in llm_request.contents for part in content.parts or []]
        said = next(text for text in reversed(texts) if "<PAST_CONVERSATIONS>" not in text)
        quoted = QUOTED.search("\n".join(text for text in texts if "<PAST_CONVERSATIONS>" in text))
        asked = f"You told me: {quoted[1]}" if quoted else "I do not know."
        reply = asked if said.endswith("?") else "Noted."
        usage = types.GenerateContentResponseUsageMetadata(prompt_token_count=1, candidates_token_count=1)
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=reply)]), usage_metadata=usage)


async def keep(callback_context: CallbackContext) -> None:
    """Stores each turn once."""
    await callback_context.add_session_to_memory()


async def main(queries: list[str]) -> None:
    agent = LlmAgent(
        name="assistant", model=ScriptedModel(model="scripted"), tools=[PreloadMemoryTool()], after_agent_callback=keep
    )
    agent_id = None if "AGENTCORE_TOKEN" in os.environ else "adk-example"
    async with open_memory(agent_id=agent_id) as memory:
        service = AgentCoreMemoryService(memory)
        runner = Runner(app_name=APP, agent=agent, session_service=InMemorySessionService(), memory_service=service)
        session = await runner.session_service.create_session(app_name=APP, user_id=USER)
        for query in queries:
            said = types.Content(role="user", parts=[types.Part(text=query)])
            async for event in runner.run_async(user_id=USER, session_id=session.id, new_message=said):
                if event.is_final_response() and event.content and event.content.parts:
                    print(f"> {query}\n{event.content.parts[0].text}", flush=True)
        await service.end_session(session)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("query", nargs="*", default=["I love African Grey parrots"])
    asyncio.run(main(parser.parse_args().query))
