"""Summarising conversations with a chat model of OpenAI, or of any server that speaks its interface."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from agentcore.memory.llm import LlmOptions, Said, SummaryWish, WrittenSummary
from agentcore.providers.openai_chat import OpenAiChat, Task
from agentcore.providers.prompts import load_prompt

# English has some three words to four tokens.
WORDS_A_TOKEN = 0.75
WISHED = "What whoever runs this assistant wishes of the summary, within the rules above:"


class _Answer(BaseModel):
    summary: str
    topics: list[str] = []
    key_facts: list[str] = []


class OpenAiSummariser(OpenAiChat[_Answer]):
    """One request a stretch of conversation, in the background."""

    def __init__(self, options: LlmOptions) -> None:
        prompt = load_prompt("session_summary")
        super().__init__(options, Task("summarise", "summary", prompt, _Answer))

    async def summarise(self, said: Sequence[Said], wish: SummaryWish, *, agent_id: str) -> WrittenSummary:
        document = {
            "conversation": [
                {"speaker": each.speaker, "said_at": each.said_at.isoformat(), "text": each.text}
                for each in said],
            "most_words": max(10, int(wish.max_tokens * WORDS_A_TOKEN)),
        }
        wished = f"{WISHED}\n{wish.instructions}" if wish.instructions else ""
        answer = await self.ask(document, agent_id=agent_id, instructions=wished)
        return WrittenSummary(answer.summary, answer.topics, answer.key_facts)
