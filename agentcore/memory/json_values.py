"""Values that callers give freely (metadata, actions, outcomes), as the JSON that is stored. Pure."""

from __future__ import annotations

import math
from typing import Any

from pydantic_core import PydanticSerializationError, to_jsonable_python

from agentcore.limits import MAX_METADATA_DEPTH, MAX_METADATA_NODES

# What is around a value in a request nests too, and a request may nest 64 levels.
# A longer whole number has no decimal form in Python, and none of use in JSON.
MAX_NUMBER_BITS = 1_024
SHOWN_PATH_CHARS = 80


def without_nul(text: str) -> str:
    """The text as it is. Raises ValueError where it holds a NUL, which no column of text takes."""
    if "\x00" in text:
        raise ValueError("contains a NUL character, which text cannot hold")
    return text


def storable_json(value: Any) -> Any:
    """The value as JSON has it: a time as ISO 8601, a UUID as text, a tuple as a list.

    Raises ValueError with the path of what JSON has no form for: NaN, an infinity, an object of a program.
    """
    return _Reading().read(value, "", 0)


class _Reading:
    def __init__(self) -> None:
        self._count = 0

    def read(self, value: Any, path: str, depth: int) -> Any:
        self._count += 1
        if self._count > MAX_METADATA_NODES + 1:
            raise ValueError(f"holds more than {MAX_METADATA_NODES} values")
        if depth > MAX_METADATA_DEPTH:
            raise ValueError(f"{_at(path)}is nested deeper than {MAX_METADATA_DEPTH} levels")
        kind = type(value)
        if kind is dict:
            return self._object(value, path, depth)
        if kind is list:
            return [self.read(each, f"{path}[{index}]", depth + 1) for index, each in enumerate(value)]
        return _leaf(value, path) if kind in _LEAVES else self.read(_plain(value, path), path, depth + 1)

    def _object(self, value: dict[Any, Any], path: str, depth: int) -> dict[str, Any]:
        read: dict[str, Any] = {}
        for key, member in value.items():
            name = self._name(key, path)
            if name in read:
                raise ValueError(f"{_at(path)}has {name[:SHOWN_PATH_CHARS]!r} twice as a name in JSON")
            read[name] = self.read(member, f"{path}.{name}" if path else name, depth + 1)
        return read

    def _name(self, key: Any, path: str) -> str:
        if type(key) is not str:
            [key] = _plain({key: None}, path)
        self._count += 1
        return str(_leaf(key, path))


_LEAVES = (str, int, float, bool, type(None))


def _leaf(value: Any, path: str) -> Any:
    match value:
        case float() if not math.isfinite(value):
            raise ValueError(f"{_at(path)}is {value}, which JSON has no number for")
        case int() if value.bit_length() > MAX_NUMBER_BITS:
            raise ValueError(f"{_at(path)}is a longer number than {MAX_NUMBER_BITS} bits hold")
        case str():
            without_nul(value).encode()  # a lone surrogate raises UnicodeEncodeError, which is a ValueError
    return value


def _plain(value: Any, path: str) -> Any:
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError) as cause:
        raise ValueError(f"{_at(path)}is of {type(value).__name__}, which JSON has no form for") from cause


def _at(path: str) -> str:
    return f"{path[:SHOWN_PATH_CHARS]} " if path else ""
