"""Contexts as benchmarks request them: their content, and the effect of stored session summaries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from agentcore.memory.api import Caller
from agentcore.memory.manager import MemoryManager
from agentcore.memory.params.agent_settings import ConfigureParams
from agentcore.memory.params.memories import GetContextParams
from agentcore.memory.params.sessions import EndSessionParams
from agentcore.summary_rules import SummaryRules
from benchmarks.evidence import Given, words_of
from benchmarks.labelled import Conversation, Row, asked
from benchmarks.service import Service

# For sessions with summaries: the budget's share reserved for fallback summaries; None: retrieved summaries
# only.
WITH_SUMMARIES: Mapping[str, float | None] = {
    "summaries, found alone": None,
    "summaries, where room is left": 0.0,
    "summaries, 15 % kept for them": 0.15,
}


def asking(question: Row, budget: int) -> Row:
    """Returns a labeled question as params of `memory.get_context`."""
    params = asked(question, 1, max_tokens=budget, explain=True)
    return {name: value for name, value in params.items() if name != "k"}


def given_of(answer: Row, budget: int) -> Given:
    """Returns a context's content. Raises RuntimeError if it exceeds its budget."""
    if answer["token_count"] > budget:
        raise RuntimeError(f"a context of {answer['token_count']} tokens where {budget} were asked for")
    context = " ".join(answer["context"].split())
    in_full = {str(each["external_id"]) for each in answer["memories"] if " ".join(each["content"].split()) in context}
    return Given(words_of(context), answer["token_count"], in_full)


async def summarise(service: Service, conversation: Conversation) -> None:
    """Ends every session, which stores extractive summaries beside the turns."""
    memory = service.runtime.manager_for(Caller(conversation.agent_id))
    rules = SummaryRules(provider="extractive", trigger="session_end")
    await memory.configure(ConfigureParams(summaries=rules))
    for session_id in dict.fromkeys(each.get("session_id") for each in conversation.memories):
        if session_id is not None:
            await memory.end_session(EndSessionParams(session_id=session_id))


async def context_with_summaries(
    service: Service, agent_id: str, question: Row, budget: int, share: float | None
) -> Given:
    """Requests a context with this share of the budget reserved for fallback summaries."""
    parts = service.runtime.parts
    policy = replace(parts.policy, summaries_share=share)
    memory = MemoryManager(replace(parts, policy=policy), Caller(agent_id))
    answer = await memory.get_context(GetContextParams.model_validate(asking(question, budget)))
    return given_of(answer.model_dump(mode="json"), budget)
