"""A LangChain chain that remembers from one run to the next, with a scripted model.

Usage: langchain_agent.py "I love African Grey parrots" and, in another process: ... "What bird did I like?" With
AGENTCORE_TOKEN set it uses the service at AGENTCORE_URL, else a memory in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from typing import Any

from langchain_core.messages import AIMessage
from langchain_core.prompt_values import PromptValue
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from agentcore import open_memory
from agentcore.agents.scope import MemoryScope
from agentcore.integrations.langchain import MemoryRetriever, memory_tools
from agentcore.memory.contexts.fencing import fenced

# Text from memory is data in the user's turn, never a system message.
PROMPT = ChatPromptTemplate([("user", "{known}\n\n{said}")])


def scripted_model(prompt: PromptValue) -> AIMessage:
    """Replaces your model: answers a question with the best line; saves a statement with a tool."""
    told, _, user = prompt.to_string().rpartition("\n\n")
    if not user.endswith("?"):
        call = {"name": "save_memory", "args": {"content": user}, "id": "call-1", "type": "tool_call"}
        return AIMessage("Noted.", tool_calls=[call])
    known = told.splitlines()[2:-1]  # between the fence's marks
    return AIMessage(f"You told me: {known[0]}" if known else "I do not know.")


def block(documents: list[Any]) -> str:
    return fenced(document.page_content for document in documents)


async def main(queries: list[str], user_id: str) -> None:
    agent_id = None if "AGENTCORE_TOKEN" in os.environ else "langchain-example"
    async with open_memory(agent_id=agent_id) as memory:
        scope = MemoryScope(user_id=user_id)
        tools = {tool.name: tool for tool in memory_tools(memory, scope)}
        retriever = MemoryRetriever(memory=memory, scope=scope)
        chain = {"known": retriever | block, "said": RunnablePassthrough()} | PROMPT | RunnableLambda(scripted_model)
        for query in queries:
            message = await chain.ainvoke(query)
            for call in message.tool_calls:
                await tools[call["name"]].ainvoke(call)
            print(f"> {query}\n{message.content}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("query", nargs="*", default=["I love African Grey parrots"])
    parser.add_argument("--user", default="ada", help="Who asks: from your sign-in, never from the model.")
    arguments = parser.parse_args()
    asyncio.run(main(arguments.query, arguments.user))
