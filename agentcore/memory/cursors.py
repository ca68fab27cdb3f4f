"""Cursors of pages: where one ended, as text that only the method which gave it reads. Pure."""

from __future__ import annotations

import base64
import json
from binascii import Error as BadBase64
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agentcore.errors import InvalidParams

PlaceT = TypeVar("PlaceT")


def write_cursor(place: Sequence[Any]) -> str:
    """A place, of plain JSON values, as a cursor."""
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def read_cursor(cursor: str, understood: Callable[..., PlaceT]) -> PlaceT:
    """What `understood` makes of the place's values, one argument each.

    Raises InvalidParams where the cursor holds something else: `understood` may raise what a value of the
    wrong kind or range raises.
    """
    try:
        return understood(*json.loads(base64.urlsafe_b64decode(cursor)))
    except (ValueError, TypeError, AttributeError, OverflowError, BadBase64) as cause:
        raise InvalidParams("cursor is not one this method gave", data={"field": "cursor"}) from cause
