"""Which messages are meant, how well each fits a query, the order of sessions, and summaries. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

from agentcore.agents.session_memory.messages import (
    MAX_LISTED,
    RetrieveOptions,
    ScoredMessage,
    SessionListing,
    SessionMessage,
    SessionSummary,
    SummarizeOptions,
    SummaryStyle,
)
from agentcore.errors import InvalidParams
from agentcore.memory.language.llm_text import beginning
from agentcore.memory.lexical import idf, terms
from agentcore.memory.models import DEFAULT_IMPORTANCE
from agentcore.memory.summaries.summarizing import Source, summarize

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


# The time of a session's newest message, and its id: the greatest comes first.
Place = tuple[datetime, str]


def place_of(listing: SessionListing | None) -> Place | None:
    """Where a listing stands."""
    return None if listing is None else (listing.newest, listing.session_id)


def lies_behind(place: Place, after: Place | None) -> bool:
    """Whether it comes after that place; after none all do."""
    return after is None or place < after


def first_places(newest: Mapping[str, datetime], limit: int, after: Place | None) -> list[Place]:
    """The first of the sessions behind `after`, given with the times of their newest messages, in order."""
    places = ((moment, session_id) for session_id, moment in newest.items())
    return sorted((place for place in places if lies_behind(place, after)), reverse=True)[:limit]


def merged_places(
    near: Mapping[str, datetime], listed: Sequence[SessionListing], after: Place | None
) -> list[Place]:
    """Where the sessions stand behind `after` that are near or that another memory lists from there on.

    None stands behind the last that is listed: of those the other memory may list more, and newer messages.
    """
    newest = dict(near)
    for each in listed:
        newest[each.session_id] = max(each.newest, near.get(each.session_id, each.newest))
    end = place_of(listed[-1]) if listed else None
    return [place for place in first_places(newest, len(newest), after) if end is None or place >= end]


def checked_limit(limit: int) -> int:
    """The limit. Raises InvalidParams where it can be none."""
    if not 1 <= limit <= MAX_LISTED:
        raise InvalidParams(f"limit: needs 1 to {MAX_LISTED} sessions")
    return limit


USUAL_CHARS: Mapping[SummaryStyle, int] = {"brief": 400, "detailed": 2_000}


def summary_of(messages: Sequence[SessionMessage], options: SummarizeOptions) -> SessionSummary:
    """The sentences that say most, in the order of their times; given newest first."""
    longest = options.max_length or USUAL_CHARS[options.style]
    text = summed_up(messages, longest, len, named=options.style == "detailed")
    return SessionSummary(content=text, message_count=len(messages), style=options.style)


def summed_up(
    messages: Sequence[SessionMessage], longest: int, measure: Callable[[str], int], *, named: bool
) -> str:
    """The sentences that say most, in the order of their times, no longer by that measure.

    Messages are given newest first. Where no sentence can stand by itself it is the newest message, cut.
    `named`: a sentence stands behind the name or role of who said it.
    """
    sources = [
        Source(
            UUID(int=place), said_at(message), (message.name or message.role) if named else None,
            message.content, DEFAULT_IMPORTANCE if message.importance is None else message.importance)
        for place, message in enumerate(reversed(messages))
    ]
    text = summarize(sources, longest, measure).text
    if not text and messages:
        text = beginning(messages[0].content, longest, measure).strip()
    return text
