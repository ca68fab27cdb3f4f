"""Which messages of a session a model is given within a number of tokens (seed 004's strategies). Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol, TypeAlias

from pydantic import Field

from agentcore.agents.session_memory.messages import MAX_LIMIT, QUOTED_ROLE, SessionMessage
from agentcore.agents.session_memory.selection import summed_up
from agentcore.memory.models import DEFAULT_IMPORTANCE, Share, Strict

Count: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=MAX_LIMIT)]


@dataclass(frozen=True)
class TokenBudget:
    """How many tokens there are, and what a text and a message take of them.

    `count` counts a text as the model does; `message_tokens` is what a message's form adds to its content.
    """

    max_tokens: int
    count: Callable[[str], int]
    message_tokens: int = 0

    def cost(self, message: SessionMessage) -> int:
        """What a message takes: its content, its speaker's name and its form."""
        named = 0 if message.name is None else self.count(message.name)
        return self.count(message.content) + named + self.message_tokens


class SelectionStrategy(Protocol):
    """Chooses the messages that a model is given."""

    @property
    def looks_at(self) -> int:
        """How many of a session's newest messages it chooses from."""

    def select(self, messages: Sequence[SessionMessage], budget: TokenBudget) -> list[SessionMessage]:
        """The chosen ones in the order they were said, within the budget; given newest first."""


class SlidingWindow(Strict):
    """The newest messages without a gap: it ends before the first that does not fit."""

    window: Count = Field(10, description="Messages at most.")

    @property
    def looks_at(self) -> int:
        return self.window

    def select(self, messages: Sequence[SessionMessage], budget: TokenBudget) -> list[SessionMessage]:
        chosen: list[SessionMessage] = []
        room = budget.max_tokens
        for message in messages[: self.window]:
            room -= budget.cost(message)
            if room < 0:
                break
            chosen.append(message)
        return chosen[::-1]


class ImportanceWeighting(Strict):
    """The newest few, and of the others the most important, the more so the newer they are.

    Of n messages that in place i, from the newest at 0 on, is worth its importance + `recency_weight` *
    (1 - i / n). What does not fit is passed over for what is worth less and does.
    """

    threshold: Share = Field(0.5, description="Those less important are left out, but for the newest few.")
    recency_weight: Share = 0.3
    always_recent: Annotated[int, Field(strict=True, ge=0, le=MAX_LIMIT)] = Field(
        3, description="So many of the newest come first, whatever they are worth."
    )
    importance: Callable[[SessionMessage], float] | None = Field(
        None, description="A measure of your own, 0 to 1; absent: the importance that the message has."
    )

    @property
    def looks_at(self) -> int:
        return MAX_LIMIT

    def select(self, messages: Sequence[SessionMessage], budget: TokenBudget) -> list[SessionMessage]:
        weights = [self._importance(message) for message in messages]
        worths = [weight + self.recency_weight * (1 - place / len(messages))
                  for place, weight in enumerate(weights)]
        recent = range(min(self.always_recent, len(messages)))
        others = [place for place in range(len(recent), len(messages)) if weights[place] >= self.threshold]
        in_order = [*recent, *sorted(others, key=lambda place: (-worths[place], place))]
        chosen = _fitting(in_order, messages, budget, budget.max_tokens)
        return [messages[place] for place in sorted(chosen, reverse=True)]

    def _importance(self, message: SessionMessage) -> float:
        if self.importance is not None:
            return self.importance(message)
        return DEFAULT_IMPORTANCE if message.importance is None else message.importance


class Summarization(Strict):
    """The newest messages as they were said, before them one message that sums up all others.

    The summary has the role `memory`, is made of the messages' own sentences, and holds also what is recent
    and too long. Where nothing is left out there is none.
    """

    recent: Count = Field(10, description="Messages that are given as they are, at most.")
    summary_share: Share = Field(0.25, description="The share of the tokens that a summary may take.")

    @property
    def looks_at(self) -> int:
        return MAX_LIMIT

    def select(self, messages: Sequence[SessionMessage], budget: TokenBudget) -> list[SessionMessage]:
        if len(messages) <= self.recent and sum(map(budget.cost, messages)) <= budget.max_tokens:
            return list(messages)[::-1]
        reserved = int(budget.max_tokens * self.summary_share)
        recent = range(min(self.recent, len(messages)))
        chosen = _fitting(recent, messages, budget, budget.max_tokens - reserved)
        others = [message for place, message in enumerate(messages) if place not in chosen]
        summary = self._summary(others, reserved - budget.message_tokens, budget)
        return [*summary, *(messages[place] for place in sorted(chosen, reverse=True))]

    def _summary(
        self, messages: Sequence[SessionMessage], max_tokens: int, budget: TokenBudget
    ) -> list[SessionMessage]:
        text = summed_up(messages, max_tokens, budget.count, named=True) if max_tokens > 0 else ""
        if not text:
            return []
        return [SessionMessage(role=QUOTED_ROLE, content=text, metadata={"message_count": len(messages)})]


def _fitting(
    places: Iterable[int], messages: Sequence[SessionMessage], budget: TokenBudget, max_tokens: int
) -> set[int]:
    """Of these places those whose messages fit, each in its turn; one that does not is passed over."""
    chosen: set[int] = set()
    room = max_tokens
    for place in places:
        if room <= 0:
            break
        cost = budget.cost(messages[place])
        if cost <= room:
            chosen.add(place)
            room -= cost
    return chosen
