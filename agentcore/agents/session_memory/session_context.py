"""What a model is given of a session: the messages that a strategy chooses, within a number of tokens."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import Field

from agentcore.agents.session_memory.memory import SessionMemory
from agentcore.agents.session_memory.messages import RetrieveOptions, SessionMessage
from agentcore.agents.session_memory.strategies import SelectionStrategy, SlidingWindow, TokenBudget
from agentcore.errors import InvalidParams
from agentcore.memory.models import Strict

DEFAULT_STRATEGY = SlidingWindow()


class SessionContext(Strict):
    """The messages in the order they were said, a summary of others first."""

    messages: list[SessionMessage]
    token_count: int = Field(description="Of all contents, names and forms, by the count that was given.")
    left_out_count: int = Field(description="Messages it chose from that do not stand in it as they are.")


async def session_context(
    memory: SessionMemory, session_id: str, *, max_tokens: int, count: Callable[[str], int],
    strategy: SelectionStrategy = DEFAULT_STRATEGY, message_tokens: int = 0,
) -> SessionContext:
    """What a model is given of the session, of its 1,000 newest messages, in at most `max_tokens` tokens.

    `count` counts a text as the model does, as `TokenCounter.count`; `message_tokens` is what the model's
    form adds to each message (3 or 4 of OpenAI's). Raises InvalidParams for a number that cannot be.
    """
    if max_tokens < 1 or message_tokens < 0:
        raise InvalidParams("max_tokens needs 1 or more, message_tokens 0 or more")
    budget = TokenBudget(max_tokens, count, message_tokens)
    messages = await memory.retrieve(session_id, RetrieveOptions(limit=strategy.looks_at))
    chosen = strategy.select(messages, budget)
    held = {message.message_id for message in chosen}
    return SessionContext(
        messages=chosen, token_count=sum(map(budget.cost, chosen)),
        left_out_count=sum(message.message_id not in held for message in messages))
