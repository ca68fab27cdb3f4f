"""A LangGraph graph that remembers from one thread to the next, with a scripted model.

Usage: langgraph_agent.py "I love African Grey parrots" and, in another process: ... "What bird did I like?" With
AGENTCORE_TOKEN set it uses the service at AGENTCORE_URL, else a memory in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import uuid
from dataclasses import dataclass
from typing import Any

from langgraph.config import get_store
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.runtime import Runtime

from agentcore import open_memory
from agentcore.integrations.langgraph import AgentCoreStore


@dataclass
class Asker:
    """The user: from your own sign-in, never from the model."""

    user_id: str


async def answer(state: MessagesState, runtime: Runtime[Asker]) -> dict[str, Any]:
    """Replaces your model: stores statements, answers questions from the store."""
    store, said = get_store(), str(state["messages"][-1].content)
    mine = ("memories", runtime.context.user_id)
    if not said.endswith("?"):
        await store.aput(mine, str(uuid.uuid4()), {"data": said})
        return {"messages": [("ai", "Noted.")]}
    found = await store.asearch(mine, query=said, limit=1)
    return {"messages": [("ai", f"You told me: {found[0].value['data']}" if found else "I do not know.")]}


async def main(queries: list[str]) -> None:
    graph = StateGraph(MessagesState, context_schema=Asker)
    graph.add_node(answer).add_edge(START, "answer").add_edge("answer", END)
    agent_id = None if "AGENTCORE_TOKEN" in os.environ else "langgraph-example"
    async with open_memory(agent_id=agent_id) as memory:
        compiled = graph.compile(store=AgentCoreStore(memory))
        for query in queries:
            state = await compiled.ainvoke({"messages": [("user", query)]}, context=Asker("ada"))
            print(f"> {query}\n{state['messages'][-1].content}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("query", nargs="*", default=["I love African Grey parrots"])
    asyncio.run(main(parser.parse_args().query))
