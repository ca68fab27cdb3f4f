"""Texts made of ids and places: segments of keys and paths, and cursors of pages. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from binascii import Error as BadBase64
from collections.abc import Callable, Sequence
from typing import Any, TypeVar
from urllib.parse import quote

from agentcore.errors import InvalidParams

MAX_SEGMENT_CHARS = 180
_ENCODED_OR_CAPITAL = re.compile("(%..)|[A-Z]")


def encode_segment(text: str, *, caseless: bool = False) -> str:
    """The text with all but letters, digits, `-` and `_` percent-encoded; two texts never give one segment.

    A segment longer than a file name may be is its beginning, `~` and the SHA-256 of the text. `caseless`
    encodes capitals too: segments then differ on file systems that ignore case.
    """
    encoded = quote(text, safe="").replace(".", "%2E").replace("~", "%7E")
    if caseless:
        encoded = _ENCODED_OR_CAPITAL.sub(lambda each: each[0] if each[1] else f"%{ord(each[0]):X}", encoded)
    if len(encoded) <= MAX_SEGMENT_CHARS:
        return encoded
    return f"{encoded[: MAX_SEGMENT_CHARS - 65]}~{hashlib.sha256(text.encode()).hexdigest()}"


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
