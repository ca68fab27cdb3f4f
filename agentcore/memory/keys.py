"""Ids from outside as segments of a key or a path: no segment can leave its place or meet another. Pure."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

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
