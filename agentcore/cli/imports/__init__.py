"""Exports of other systems: the results of a parser, and conversions of their values. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agentcore.memory.keys import encode_segment
from agentcore.memory.models import FIRST_YEAR, LAST_YEAR, MAX_TTL_SECONDS, Identifier

# Larger values, after the year 5000 as seconds since 1970, are milliseconds.
MOST_SECONDS = 1e11
LONGEST_LIFE = timedelta(seconds=MAX_TTL_SECONDS)
_IDENTIFIER = TypeAdapter(Identifier)


@dataclass(frozen=True)
class Found:
    """The fields of a line; the `key` is the same in every export."""

    key: str
    line: Mapping[str, Any]


@dataclass(frozen=True)
class LeftOut:
    """A part that does not become a memory, and why."""

    reason: str
    place: str = ""


@dataclass(frozen=True)
class Broken:
    """An invalid part."""

    problem: str


Piece = Found | LeftOut | Broken
# The name of the array that contains the value, if there is one; the value; the time.
Parser = Callable[[str | None, Any, datetime], Iterator[Piece]]


@dataclass(frozen=True)
class Form:
    """The export of one system: parser, names of the arrays of records, pattern of file names."""

    parse: Parser
    arrays: frozenset[str] = field(default_factory=frozenset)
    members: str | None = None


def clean(value: Any) -> Any:
    """Removes NUL and unpaired surrogates, which a memory cannot contain."""
    if isinstance(value, str):
        plain = value.replace("\x00", "")
        if plain.isascii():
            return plain
        return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {clean(str(name)): clean(each) for name, each in value.items()}
    if isinstance(value, list):
        return [clean(each) for each in value]
    return value


def text_of(value: Any) -> str:
    """Returns the cleaned text; empty for other types."""
    return clean(value).strip() if isinstance(value, str) else ""


def label_of(value: Any) -> str | None:
    """Converts a text or a number to an id, encoded if it is not a valid id; None for other types."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    told = clean(str(value)).strip()
    try:
        return _IDENTIFIER.validate_python(told)
    except ValidationError:
        return encode_segment(told) or None


def time_of(*values: Any) -> str | None:
    """Returns the first valid time: ISO 8601, or seconds or milliseconds since 1970."""
    for value in values:
        moment = _moment(value)
        if moment is not None and FIRST_YEAR <= moment.year <= LAST_YEAR:
            return moment.isoformat()
    return None


def _moment(value: Any) -> datetime | None:
    try:
        if isinstance(value, str) and not value.strip().isdecimal():
            told = datetime.fromisoformat(value.strip())
            return told if told.tzinfo else told.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1_000 if value > MOST_SECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def end_of(value: Any, now: datetime) -> str | None:
    """Returns the expiry; None if it exceeds the longest TTL, as the year 9999 does."""
    told = time_of(value)
    return None if told is None or datetime.fromisoformat(told) - now > LONGEST_LIFE else told


def reason_to_omit(kind: str, text: str, expires_at: str | None, now: datetime) -> str | None:
    """Returns why a record is not imported: it has no text, or has expired."""
    if not text:
        return f"empty {kind}"
    return "expired" if expires_at is not None and datetime.fromisoformat(expires_at) <= now else None


def object_of(value: Any) -> dict[str, Any]:
    """Returns the cleaned object, parsed if it is JSON text; empty for other types."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return clean(value) if isinstance(value, dict) else {}


def objects_in(value: Any) -> list[dict[str, Any]]:
    """Returns the objects of a list; empty for other types."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def key_of(*parts: Any) -> str:
    told = json.dumps(parts, sort_keys=True, default=str)
    return hashlib.sha256(told.encode()).hexdigest()[:40]


# Names of arrays that contain a system's records.
_AROUND = ("results", "memories", "data", "items", "store")


def likely_form(value: Any) -> str | None:
    """Returns the form of a record, or of an object that contains records, if it is certain."""
    if not isinstance(value, dict):
        return None
    held = [each[0] for each in map(value.get, _AROUND) if isinstance(each, list) and each]
    return next(filter(None, map(_form, [value, *held])), None)


def hint(value: Any, *, read_as: str | None = None) -> str:
    """Returns the right `--from` to append to a problem; empty if the form is unknown."""
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
