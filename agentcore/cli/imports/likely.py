"""Which system a record comes from, where its fields make that sure. Pure."""

from __future__ import annotations

from typing import Any

# The arrays in which some system's records stand.
_AROUND = ("results", "memories", "data", "items", "store")


def likely_form(value: Any) -> str | None:
    """The name of the form of a record, or of the object that holds many; None where nothing is sure."""
    if not isinstance(value, dict):
        return None
    held = [each[0] for each in map(value.get, _AROUND) if isinstance(each, list) and each]
    return next(filter(None, map(_form, [value, *held])), None)


def hint(value: Any, *, read_as: str | None = None) -> str:
    """What to type instead, to come after a problem; empty where nothing is sure."""
    likely = likely_form(value)
    return "" if likely in (None, read_as) else f"; it looks like an export of {likely}: --from {likely}"


def _form(record: Any) -> str | None:
    if not isinstance(record, dict):
        return None
    if isinstance(record.get("mapping"), dict):
        return "chatgpt"
    if isinstance(record.get("chat_messages"), list):
        return "claude"
    if {"key", "value"} <= record.keys() and not {"namespace", "prefix"}.isdisjoint(record):
        return "langgraph"
    if isinstance(record.get("memory"), str):
        return "mem0"
    return "kagent" if isinstance(record.get("content"), str) and "agent_name" in record else None
