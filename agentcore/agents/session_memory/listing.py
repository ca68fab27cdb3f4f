"""The order in which sessions are listed: by their newest messages, of equal times by their ids. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from agentcore.agents.session_memory.messages import MAX_LISTED, SessionListing
from agentcore.errors import InvalidParams

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
