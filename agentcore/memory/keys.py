"""Ids from outside as segments of a key or a path: no segment can leave its place or meet another. Pure."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

MAX_SEGMENT_CHARS = 180


def encode_segment(text: str) -> str:
    """The text with all but letters, digits, `-` and `_` percent-encoded; two texts never give one segment.

    A segment longer than a file name may be is its beginning, `~` and the SHA-256 of the text.
    """
    encoded = quote(text, safe="").replace(".", "%2E").replace("~", "%7E")
    if len(encoded) <= MAX_SEGMENT_CHARS:
        return encoded
    return f"{encoded[: MAX_SEGMENT_CHARS - 65]}~{hashlib.sha256(text.encode()).hexdigest()}"
