"""Where a stretch of conversation is cut, so that a long one gives several memories. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Protocol, TypeVar

# A pause so long parts two talks of one session, unless the first would be shorter than that many messages.
PAUSE, FEWEST_MESSAGES = timedelta(minutes=30), 4


class Timed(Protocol):
    """What was said at a time."""

    @property
    def said_at(self) -> datetime:
        """When."""


_Message = TypeVar("_Message", bound=Timed)


def segments(messages: Sequence[_Message], most_messages: int) -> Iterator[Sequence[_Message]]:
    """The messages in pieces of at most so many, cut at pauses, and a long talk evenly."""
    for talk in _talks(messages):
        count = -(-len(talk) // most_messages)
        bounds = [len(talk) * place // count for place in range(count + 1)]
        yield from (talk[begin:end] for begin, end in pairwise(bounds))


def _talks(messages: Sequence[_Message]) -> list[list[_Message]]:
    talks: list[list[_Message]] = []
    for message in messages:
        talk = talks[-1] if talks else []
        if not talk or (len(talk) >= FEWEST_MESSAGES and message.said_at - talk[-1].said_at >= PAUSE):
            talks.append([message])
        else:
            talk.append(message)
    if len(talks) > 1 and len(talks[-1]) < FEWEST_MESSAGES:
        talks[-2:] = [talks[-2] + talks[-1]]
    return talks


def pieces(
    messages: Sequence[_Message], sizes: Sequence[int], most: int
) -> Iterator[Sequence[_Message]]:
    """Pieces of at most this size; what is larger by itself stands alone."""
    piece: list[_Message] = []
    size = 0
    for message, own in zip(messages, sizes, strict=True):
        if piece and size + own > most:
            yield piece
            piece, size = [], 0
        piece.append(message)
        size += own
    if piece:
        yield piece
