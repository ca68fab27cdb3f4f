"""An agent that remembers from one conversation to the next, with a scripted model.

Usage: agent.py "I love African Grey parrots" and, in another process: agent.py "What bird did I like?" With
AGENTCORE_TOKEN set it uses the service at AGENTCORE_URL, else a memory in this process.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re

from agentcore import open_memory
from agentcore.agents.memory_enabled_agent import MemoryEnabledAgent

QUOTED = re.compile(r"^\d+\. (?:User: )?(.*?)(?: Agent: .*)?$", re.MULTILINE)


class Assistant(MemoryEnabledAgent):
    async def process_query(self, query: str, task_id: str) -> str:
        return scripted_model(self.prompt(query), query)


def scripted_model(prompt: str, query: str) -> str:
    """Replaces your model: answers a question with the best line of the context."""
    if not query.endswith("?"):
        return "Noted."
    quoted = [line for line in QUOTED.findall(prompt) if not line.endswith("?")]
    best = max(quoted, key=lambda line: len(words(line) & words(query)), default=None)
    return f"You told me: {best}" if best else "I do not know."


def words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.lower()))


async def main(queries: list[str]) -> None:
    agent_id = None if "AGENTCORE_TOKEN" in os.environ else "example-agent"
    async with open_memory(agent_id=agent_id) as memory, Assistant(memory) as assistant:
        for query in queries:
            print(f"> {query}\n{await assistant.run(query)}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("query", nargs="*", default=["I love African Grey parrots"])
    asyncio.run(main(parser.parse_args().query))
