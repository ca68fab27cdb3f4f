"""Contexts as benchmarks ask for them: what one holds, and what stored summaries of sessions make of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.memories import GetContextParams
from agentcore.memory.params.own_rules import ConfigureParams
from agentcore.memory.params.sessions import EndSessionParams
from agentcore.summary_rules import SummaryRules
from benchmarks.evidence import Given, words_of
from benchmarks.labelled import Conversation, Row, asked
from benchmarks.service import Service

# Where sessions have summaries: what of the room is kept for those of what has none; None: found ones alone.
WITH_SUMMARIES: Mapping[str, float | None] = {
    "summaries, found alone": None,
    "summaries, where room is left": 0.0,
    "summaries, 15 % kept for them": 0.15,
}


def asking(question: Row, budget: int) -> Row:
    """A labelled question as `memory.get_context` takes it."""
    params = asked(question, 1, max_tokens=budget, explain=True)
    return {name: value for name, value in params.items() if name != "k"}


def given_of(answer: Row, budget: int) -> Given:
    """What a context holds. Raises RuntimeError where it exceeds its budget."""
    if answer["token_count"] > budget:
        raise RuntimeError(f"a context of {answer['token_count']} tokens where {budget} were asked for")
    context = " ".join(answer["context"].split())
    in_full = {
        str(each["external_id"])
        for each in answer["memories"]
        if " ".join(each["content"].split()) in context
    }
    return Given(words_of(context), answer["token_count"], in_full)


async def summarise(service: Service, conversation: Conversation) -> None:
    """End every session, so that extractive summaries of them stand beside their turns."""
    memory = service.runtime.manager_for(Caller(conversation.agent_id))
    rules = SummaryRules(provider="extractive", trigger="session_end")
    await memory.configure(ConfigureParams(summaries=rules))
    for session_id in dict.fromkeys(each.get("session_id") for each in conversation.memories):
        if session_id is not None:
            await memory.end_session(EndSessionParams(session_id=session_id))


async def context_with_summaries(
    service: Service, agent_id: str, question: Row, budget: int, share: float | None
) -> Given:
    """What the service gives where it keeps this share of the room for summaries of what has none."""
    parts = service.runtime.parts
    policy = replace(parts.policy, summaries_share=share)
    memory = MemoryManager(replace(parts, policy=policy), Caller(agent_id))
    answer = await memory.get_context(GetContextParams.model_validate(asking(question, budget)))
    return given_of(answer.model_dump(mode="json"), budget)
