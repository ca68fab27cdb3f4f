"""Judging a changed fact with a chat model of OpenAI, or of any server that speaks its interface."""

from __future__ import annotations

from pydantic import BaseModel

from agentcore.memory.llm import FactVerdict, LlmOptions
from agentcore.memory.statements.statements import Told
from agentcore.providers.openai_chat import OpenAiChat, Task
from agentcore.providers.prompts import load_prompt

TEXT_CHARS = 2_000


class _Answer(BaseModel):
    verdict: FactVerdict


class OpenAiFactJudge(OpenAiChat[_Answer]):
    """One request a pair, never tried again: whoever stores waits for it."""

    def __init__(self, options: LlmOptions) -> None:
        super().__init__(options, Task("judge", "verdict", load_prompt("fact_judge"), _Answer))

    async def judge(self, old: Told, new: Told, *, agent_id: str) -> FactVerdict:
        document = {name: _document(each) for name, each in (("old", old), ("new", new))}
        return (await self.ask(document, agent_id=agent_id)).verdict


def _document(told: Told) -> dict[str, str | None]:
    said_at = told.timestamp.isoformat()
    return {"text": told.content[:TEXT_CHARS], "speaker": told.speaker, "said_at": said_at}
