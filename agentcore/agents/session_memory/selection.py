"""Selects session messages by options, query and tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Protocol, TypeAlias
from uuid import UUID

from pydantic import Field

from agentcore.agents.session_memory.messages import (
    MAX_LIMIT,
    MAX_PAGE_SIZE,
    QUOTED_ROLE,
    RetrieveOptions,
    ScoredMessage,
    SessionListing,
    SessionMessage,
    SessionSummary,
    SummarizeOptions,
    SummaryStyle,
)
from agentcore.errors import InvalidParams
from agentcore.memory.language.llm_text import truncate_tokens
from agentcore.memory.lexical import idf, terms
from agentcore.memory.models import DEFAULT_IMPORTANCE, Share, Strict
from agentcore.memory.summaries.summarizing import Source, summarize

# Importance is compared at the database's precision, the same in every implementation.
SINGLE_PRECISION = 1e-6
# Cosine threshold for hits that share no word with the query.
LEAST_SIMILARITY = 0.15
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


def said_at(message: SessionMessage) -> datetime:
    """Returns the message's timestamp; the earliest possible time if it is not stored yet."""
    return message.timestamp or _BEFORE_ALL


def newest_first(messages: Iterable[SessionMessage]) -> list[SessionMessage]:
    """Sorts messages given in storage order; of equal timestamps the later stored comes first."""
    latest_stored_first = list(messages)[::-1]
    return sorted(latest_stored_first, key=said_at, reverse=True)


def matching(messages: Iterable[SessionMessage], options: RetrieveOptions) -> list[SessionMessage]:
    """Filters messages by all options except query and limit; keeps the order."""
    return [message for message in messages if _is_meant(message, options)]


def _is_meant(message: SessionMessage, options: RetrieveOptions) -> bool:
    within = options.time_range
    return all(
        (
            within is None or within.start is None or said_at(message) >= within.start,
            within is None or within.end is None or said_at(message) < within.end,
            (message.importance or 0.0) >= (options.importance_threshold or 0.0) - SINGLE_PRECISION,
            not options.tags or not set(options.tags).isdisjoint(message.tags),
        )
    )


def said_words(message: SessionMessage) -> frozenset[str]:
    """Returns the searchable terms of a message: of its content and its speaker."""
    return frozenset(terms(f"{message.name or ''} {message.content}"))


def scored_by_words(messages: Sequence[SessionMessage], query: str) -> list[ScoredMessage]:
    """Scores messages by the share of the query's terms in them, weighted by idf."""
    said = [said_words(message) for message in messages]
    frequencies = Counter(term for each in said for term in each)
    weights = {term: idf(frequencies[term], len(messages)) for term in terms(query)}
    whole = sum(weights.values())
    scored = [
        ScoredMessage(message=message, score=min(1.0, sum(weights[term] for term in held) / whole))
        for message, each in zip(messages, said, strict=True)
        if (held := each & weights.keys())
    ]
    return sorted(scored, key=lambda each: -each.score)


# Timestamp of a session's newest message, and its id: listed in descending order.
Place = tuple[datetime, str]


def place_of(listing: SessionListing | None) -> Place | None:
    return None if listing is None else (listing.newest, listing.session_id)


def lies_behind(place: Place, after: Place | None) -> bool:
    """Whether a place is listed after another; always true for None."""
    return after is None or place < after


def first_places(newest: Mapping[str, datetime], limit: int, after: Place | None) -> list[Place]:
    """Returns the first `limit` sessions after `after`, in listing order."""
    places = ((moment, session_id) for session_id, moment in newest.items())
    return sorted((place for place in places if lies_behind(place, after)), reverse=True)[:limit]


def merged_places(near: Mapping[str, datetime], listed: Sequence[SessionListing], after: Place | None) -> list[Place]:
    """Merges near sessions with a page of another memory, up to the page's last place, after which it may list more."""
    newest = dict(near)
    for each in listed:
        newest[each.session_id] = max(each.newest, near.get(each.session_id, each.newest))
    end = place_of(listed[-1]) if listed else None
    return [place for place in first_places(newest, len(newest), after) if end is None or place >= end]


def checked_limit(limit: int) -> int:
    """Returns the limit. Raises InvalidParams if it is out of range."""
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise InvalidParams(f"limit: needs 1 to {MAX_PAGE_SIZE} sessions")
    return limit


USUAL_CHARS: Mapping[SummaryStyle, int] = {"brief": 400, "detailed": 2_000}


def summary_of(messages: Sequence[SessionMessage], options: SummarizeOptions) -> SessionSummary:
    longest = options.max_length or USUAL_CHARS[options.style]
    text = summed_up(messages, longest, len, named=options.style == "detailed")
    return SessionSummary(content=text, message_count=len(messages), style=options.style)


def summed_up(messages: Sequence[SessionMessage], longest: int, measure: Callable[[str], int], *, named: bool) -> str:
    """Returns the best sentences of messages, given newest first, up to `longest` by `measure`."""
    sources = [
        Source(
            UUID(int=place),
            said_at(message),
            (message.name or message.role) if named else None,
            message.content,
            DEFAULT_IMPORTANCE if message.importance is None else message.importance,
        )
        for place, message in enumerate(reversed(messages))
    ]
    text = summarize(sources, longest, measure).text
    if not text and messages:
        text = truncate_tokens(messages[0].content, longest, measure).strip()
    return text


Count: TypeAlias = Annotated[int, Field(strict=True, ge=1, le=MAX_LIMIT)]


@dataclass(frozen=True)
class TokenBudget:
    """`count` counts tokens as the model does; `message_tokens` is the overhead of each message."""

    max_tokens: int
    count: Callable[[str], int]
    message_tokens: int = 0

    def cost(self, message: SessionMessage) -> int:
        """Returns the tokens of a message: content, speaker's name and overhead."""
        named = 0 if message.name is None else self.count(message.name)
        return self.count(message.content) + named + self.message_tokens


class SelectionStrategy(Protocol):
    """Selects the messages of a model's context, from the `looks_at` newest."""

    @property
    def looks_at(self) -> int: ...
    def select(self, messages: Sequence[SessionMessage], budget: TokenBudget) -> list[SessionMessage]:
        """Returns messages in chronological order, within the budget; given newest first."""


class SlidingWindow(Strict):
    """Selects the newest messages without a gap."""

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
    """Selects the newest messages, then the others by importance and recency.

    The weight of message i of n, 0 being the newest, is its importance + `recency_weight` * (1 - i / n).
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
        worths = [weight + self.recency_weight * (1 - place / len(messages)) for place, weight in enumerate(weights)]
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
    """Selects the newest messages, after one message that summarizes the others."""

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
