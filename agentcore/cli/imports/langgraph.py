"""A dump of a LangGraph store: its items as `Item.dict()` gives them, or the rows of its table. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from agentcore.cli.imports.pieces import (
    Broken,
    Form,
    Found,
    LeftOut,
    Piece,
    end_of,
    is_over,
    key_of,
    label_of,
    object_of,
    present,
    text_of,
    time_of,
)

_TEXTS = ("content", "text", "memory", "data")
NAMESPACE_SIGN = "/"


def parse(name: str | None, item: Any, now: datetime) -> Iterator[Piece]:
    """One item; its namespace `("users", "ada")` becomes `users/ada`."""
    value = object_of(item.get("value")) if isinstance(item, dict) else {}
    if not isinstance(item, dict) or "key" not in item or "value" not in item:
        yield Broken("is no item: it has no key or no value")
        return
    path, key = _path(item), label_of(item.get("key"))
    place = f"{NAMESPACE_SIGN.join(path)} {key}"
    text, rest = _said(value)
    if not text:
        yield LeftOut("empty item", place)
        return
    expires_at = end_of(item.get("expires_at"), now)
    if is_over(expires_at, now):
        yield LeftOut("expired", place)
        return
    yield Found(key_of(path, item.get("key"), text), present({
        "text": text, "memory_type": "semantic", "external_id": key,
        "namespace": label_of(NAMESPACE_SIGN.join(path)),
        "time": time_of(item.get("created_at"), item.get("updated_at")), "expires_at": expires_at,
        "metadata": {**rest, "source": "langgraph", "langgraph_namespace": path},
    }))


def _path(item: Mapping[str, Any]) -> list[str]:
    """The namespace: a list in an item, joined by points in a row."""
    path = item.get("namespace", item.get("prefix"))
    parts = path.split(".") if isinstance(path, str) else path if isinstance(path, list | tuple) else []
    return [text_of(str(part)) for part in parts]


def _said(value: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The value's text and the rest of it; without a text of its own it is said as JSON."""
    for name in _TEXTS:
        inner = value.get(name)
        # LangMem wraps a memory once more: {"kind": "Memory", "content": {"content": "..."}}.
        text = _said(inner)[0] if isinstance(inner, dict) else text_of(inner)
        if text:
            return text, {each: held for each, held in value.items() if each != name}
    texts = [name for name, held in value.items() if text_of(held)]
    if len(value) == 1 and texts:
        return text_of(value[texts[0]]), {"field": texts[0]}
    return (json.dumps(value, ensure_ascii=False), {}) if value else ("", {})


FORM = Form(parse, frozenset({"items", "results", "store"}))
