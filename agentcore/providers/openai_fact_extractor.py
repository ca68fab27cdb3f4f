"""Extracting facts with a chat model of OpenAI, or of any server that speaks its interface."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel

from agentcore.memory.llm import Extraction, LlmOptions, Said
from agentcore.providers.openai_chat import OpenAiChat, Task
from agentcore.providers.prompts import load_prompt

OUTPUT_TOKENS = 4_096


class _Read(BaseModel):
    number: int
    facts: list[str]
    entities: list[str]


class _Answer(BaseModel):
    memories: list[_Read]


class OpenAiFactExtractor(OpenAiChat[_Answer]):
    """One request a batch of memories, in the background."""

    def __init__(self, options: LlmOptions) -> None:
        prompt = load_prompt("fact_extraction")
        task = Task("extract facts", "list of facts", prompt, _Answer, OUTPUT_TOKENS)
        super().__init__(options, task)

    async def extract(self, said: Sequence[Said], *, agent_id: str) -> Sequence[Extraction]:
        memories = [
            {"number": number, "speaker": each.speaker, "said_at": each.said_at.isoformat(),
             "text": each.text}
            for number, each in enumerate(said)]
        answer = await self.ask({"memories": memories}, agent_id=agent_id)
        read = {each.number: Extraction(each.facts, each.entities) for each in answer.memories}
        return [read.get(number, Extraction()) for number in range(len(said))]
