"""What each call of a client carries along, checked where it is given: a traceparent, an A2A context."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentcore.errors import InvalidParams
from agentcore.memory.json_values import storable_json


def checked_traceparent(traceparent: str | None) -> str | None:
    """As it is: one that does not follow W3C's recommendation the service ignores, as that asks.

    Raises InvalidParams for what no header can carry.
    """
    if traceparent is not None and not (traceparent.isascii() and traceparent.isprintable()):
        raise InvalidParams("traceparent: holds characters that no header carries")
    return traceparent


def checked_a2a_context(a2a_context: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """As JSON has it: a time as ISO 8601. Raises InvalidParams for what JSON has no form for."""
    if a2a_context is None:
        return None
    try:
        carried: dict[str, Any] = storable_json(dict(a2a_context))
    except ValueError as cause:
        raise InvalidParams(f"a2a_context: {cause}") from cause
    return carried
