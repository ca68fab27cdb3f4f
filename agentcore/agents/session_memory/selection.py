"""Which messages are meant, and how well each fits a query by its words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from agentcore.agents.session_memory.messages import RetrieveOptions, ScoredMessage, SessionMessage
from agentcore.memory.lexical import idf, terms

# Importance is compared as exactly as the database keeps it, the same in every implementation.
SINGLE_PRECISION = 1e-6
# The cosine from which on a message fits, also where it has no word of the query.
LEAST_SIMILARITY = 0.15
_BEFORE_ALL = datetime.min.replace(tzinfo=UTC)


def said_at(message: SessionMessage) -> datetime:
    """When it was said; what is not stored yet comes before all."""
    return message.timestamp or _BEFORE_ALL


def newest_first(messages: Iterable[SessionMessage]) -> list[SessionMessage]:
    """By their times; of equal ones what was stored later comes first. Given in the order of storing."""
    latest_stored_first = list(messages)[::-1]
    return sorted(latest_stored_first, key=said_at, reverse=True)


def matching(messages: Iterable[SessionMessage], options: RetrieveOptions) -> list[SessionMessage]:
    """Those that all options but query and limit hold for, in the given order."""
    return [message for message in messages if _is_meant(message, options)]


def _is_meant(message: SessionMessage, options: RetrieveOptions) -> bool:
    within = options.time_range
    return all((
        within is None or within.start is None or said_at(message) >= within.start,
        within is None or within.end is None or said_at(message) < within.end,
        (message.importance or 0.0) >= (options.importance_threshold or 0.0) - SINGLE_PRECISION,
        not options.tags or not set(options.tags).isdisjoint(message.tags),
    ))


def said_words(message: SessionMessage) -> frozenset[str]:
    """The words that a search may find it by: its content's and its speaker's."""
    return frozenset(terms(f"{message.name or ''} {message.content}"))


def scored_by_words(messages: Sequence[SessionMessage], query: str) -> list[ScoredMessage]:
    """Those that hold a word of the query, best first, of equal ones the newer; given newest first.

    A score is the share of the query's distinct words that the message holds, each by its idf.
    """
    said = [said_words(message) for message in messages]
    frequencies = Counter(term for each in said for term in each)
    weights = {term: idf(frequencies[term], len(messages)) for term in terms(query)}
    whole = sum(weights.values())
    scored = [
        ScoredMessage(message=message, score=min(1.0, sum(weights[term] for term in held) / whole))
        for message, each in zip(messages, said, strict=True) if (held := each & weights.keys())
    ]
    return sorted(scored, key=lambda each: -each.score)
