"""What memory can hold and search of a text from anywhere: no character that it refuses, no length. Pure."""

from __future__ import annotations

from agentcore.limits import MAX_QUERY_CHARS, MAX_TEXT_CHARS


def holdable(text: str, most_chars: int = MAX_TEXT_CHARS) -> str:
    """The text's beginning, without NUL and halves of surrogate pairs."""
    return text.replace("\x00", " ").encode(errors="replace").decode()[:most_chars]


def searchable(text: str) -> str:
    """What of a text can be a query; empty where there is nothing to search for."""
    return holdable(text).strip()[:MAX_QUERY_CHARS]
