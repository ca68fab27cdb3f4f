"""Encodes ids as segments of keys and paths, and positions as page cursors. Pure."""

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
    """Percent-encodes all but letters, digits, `-` and `_`; the encoding is injective.

    A long segment is truncated, with `~` and a SHA-256. `caseless`: for file systems that ignore case.
    """
    encoded = quote(text, safe="").replace(".", "%2E").replace("~", "%7E")
    if caseless:
        encoded = _ENCODED_OR_CAPITAL.sub(lambda each: each[0] if each[1] else f"%{ord(each[0]):X}", encoded)
    if len(encoded) <= MAX_SEGMENT_CHARS:
        return encoded
    return f"{encoded[: MAX_SEGMENT_CHARS - 65]}~{hashlib.sha256(text.encode()).hexdigest()}"


PlaceT = TypeVar("PlaceT")


def write_cursor(place: Sequence[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def read_cursor(cursor: str, understood: Callable[..., PlaceT]) -> PlaceT:
    """Returns `understood(*values)`. Raises InvalidParams, also if `understood` raises e.g. ValueError."""
    try:
        return understood(*json.loads(base64.urlsafe_b64decode(cursor)))
    except (ValueError, TypeError, AttributeError, OverflowError, BadBase64) as cause:
        raise InvalidParams("cursor is not one this method gave", data={"field": "cursor"}) from cause
