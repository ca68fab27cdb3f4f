"""Rewriting queries with a chat model of OpenAI, or of any server that speaks its interface."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from agentcore.memory.llm import LlmOptions, Rewriting
from agentcore.memory.params.memories import Turn
from agentcore.providers.openai_chat import OpenAiChat, Task
from agentcore.providers.prompts import load_prompt

LAST_TURNS = 6
TURN_CHARS = 1_000
QUERY_CHARS = 4_000


class _Answer(BaseModel):
    queries: list[str]
    answer: str | None = None


class OpenAiRewriter(OpenAiChat[_Answer]):
    """One request a query, never tried again: whoever searches waits for it."""

    def __init__(self, options: LlmOptions) -> None:
        prompt = load_prompt("query_rewriting")
        super().__init__(options, Task("rewrite", "list of queries", prompt, _Answer))

    async def rewrite(self, query: str, history: Sequence[Turn], *, agent_id: str) -> Rewriting:
        turns = [{"role": turn.role, "text": turn.content[:TURN_CHARS]} for turn in history[-LAST_TURNS:]]
        document = {"conversation": turns, "question": query[:QUERY_CHARS]}
        answer = await self.ask(document, agent_id=agent_id)
        return Rewriting(answer.queries, answer.answer)
