"""A dump of a LangGraph store: its items as `Item.dict()` gives them, or the rows of its table. Pure.

Each becomes what a put of `AgentCoreStore` would have left, so that the store goes on with it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from agentcore.cli.imports.pieces import (
    LONGEST_LIFE,
    Broken,
    Form,
    Found,
    LeftOut,
    Piece,
    end_of,
    key_of,
    label_of,
    object_of,
    present,
    reason_to_omit,
    text_of,
    time_of,
)
from agentcore.integrations.langgraph_items import KeptItem, searched_text, session_of

_TEXTS = ("content", "text", "memory", "data")


def parse(name: str | None, item: Any, now: datetime) -> Iterator[Piece]:
    """Yields one item."""
    if not isinstance(item, dict) or item.get("key") is None or "value" not in item:
        yield Broken("is no item: it has no key or no value")
        return
    path, key, value = _path(item), str(item["key"]), _value(item["value"])
    place = f"{'/'.join(map(text_of, path))} {label_of(key)}"
    if value is None:
        yield Broken("is no item: its value is no object")
        return
    text = searched_text([_said(object_of(value))])
    expires_at = end_of(item.get("expires_at"), now)
    if reason := reason_to_omit("item", text, expires_at, now):
        yield LeftOut(reason, place)
        return
    try:
        yield _found(KeptItem(path, key, value, *_times(item, now), _minutes(item)), text, expires_at)
    except ValueError as problem:
        yield Broken(str(problem))


def _found(item: KeptItem, text: str, expires_at: str | None) -> Found:
    """Converts the item to what a store keeps; a time to live starts again now."""
    memory = item.memory(text)
    lives = {"ttl_seconds": memory["ttl_seconds"], "expires_at": expires_at if item.ttl is None else None}
    return Found(key_of(item.namespace, item.key, item.value), present({
        "text": memory["content"], "tags": memory["tags"], **lives,
        "pinned": memory["pinned"] and expires_at is None,
        "metadata": {**memory["metadata"], "source": "langgraph"}, "memory_type": "semantic",
        "session": session_of(tuple(item.namespace), item.key), "external_id": label_of(item.key),
        "time": item.created_at, "force": True, "supersede": False,
    }))


def _path(item: Mapping[str, Any]) -> list[str]:
    path = item.get("namespace", item.get("prefix"))
    if isinstance(path, str):
        return path.split(".") if path else []
    return [str(part) for part in path] if isinstance(path, list | tuple) else []


def _value(value: Any) -> dict[str, Any] | None:
    """Returns the object, parsed if a row has it as JSON text; None if it is not an object."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return {} if value is None else value if isinstance(value, dict) else None


def _times(item: Mapping[str, Any], now: datetime) -> tuple[str, str]:
    created, updated = item.get("created_at"), item.get("updated_at")
    return time_of(created, updated) or now.isoformat(), time_of(updated, created) or now.isoformat()


def _minutes(item: Mapping[str, Any]) -> float | None:
    minutes = item.get("ttl_minutes")
    if isinstance(minutes, bool) or not isinstance(minutes, int | float):
        return None
    return float(minutes) if 0 < minutes < LONGEST_LIFE / timedelta(minutes=2) else None


def _said(value: Mapping[str, Any]) -> str:
    for name in _TEXTS:
        inner = value.get(name)
        # LangMem wraps a memory once more: {"kind": "Memory", "content": {"content": "..."}}.
        text = _said(inner) if isinstance(inner, dict) else text_of(inner)
        if text:
            return text
    texts = [name for name, held in value.items() if text_of(held)]
    if len(value) == 1 and texts:
        return text_of(value[texts[0]])
    return json.dumps(value, ensure_ascii=False) if value else ""


FORM = Form(parse, frozenset({"items", "results", "store"}))
