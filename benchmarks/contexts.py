"""Contexts as benchmarks request them: their content, and the effect of stored session summaries."""

from __future__ import annotations

from agentcore.memory.api import Caller
from agentcore.memory.params.agent_settings import ConfigureParams
from agentcore.memory.params.sessions import EndSessionParams
from agentcore.summary_rules import SummaryRules
from benchmarks.evidence import Given, words_of
from benchmarks.labelled import Conversation, Row, asked
from benchmarks.service import Service


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
