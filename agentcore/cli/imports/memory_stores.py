"""Parses exports of kagent, a LangGraph store and mem0. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from agentcore.cli.imports import (
    LONGEST_LIFE,
    Broken,
    Form,
    Found,
    LeftOut,
    Piece,
    end_of,
    key_of,
    label_of,
    likely_form,
    object_of,
    present,
    reason_to_omit,
    text_of,
    time_of,
)
from agentcore.integrations.langgraph_items import StoredItem, searched_text, session_of
from agentcore.limits import MAX_LABELS

_LANGGRAPH_TEXTS = ("content", "text", "memory", "data")
_MEM0_TEXTS = ("memory", "text", "data", "content")


def parse_kagent(name: str | None, record: Any, now: datetime) -> Iterator[Piece]:
    if not isinstance(record, dict) or not isinstance(record.get("content"), str):
        yield Broken("is no memory: it has no content")
        return
    memory_id, text = label_of(record.get("id")), text_of(record.get("content"))
    expires_at = end_of(record.get("expires_at"), now)
    if reason := reason_to_omit("memory", text, expires_at, now):
        yield LeftOut(reason, memory_id or "")
        return
    if record.get("embedding") or record.get("vector"):
        yield LeftOut("vector of another model: it is made anew", memory_id or "")
    about, user = object_of(record.get("metadata")), label_of(record.get("user_id"))
    agent_name = label_of(record.get("agent_name"))
    yield Found(
        key_of(memory_id, user, agent_name, text),
        present(
            {
                "text": text,
                "memory_type": "semantic",
                "external_id": memory_id,
                "user": user,
                "session": label_of(about.get("session_id")),
                "expires_at": expires_at,
                "time": time_of(about.get("timestamp"), record.get("created_at")),
                "metadata": {
                    **about,
                    "source": "kagent",
                    **present({"agent_name": agent_name, "access_count": record.get("access_count")}),
                },
            }
        ),
    )


KAGENT = Form(parse_kagent, frozenset({"data", "memories"}))


def parse_langgraph(name: str | None, item: Any, now: datetime) -> Iterator[Piece]:
    """Yields one item in the format of `AgentCoreStore`, so that the store can read it."""
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
        yield _found(StoredItem(path, key, value, *_times(item, now), _minutes(item)), text, expires_at)
    except ValueError as problem:
        yield Broken(str(problem))


def _found(item: StoredItem, text: str, expires_at: str | None) -> Found:
    memory = item.memory(text)
    lives = {"ttl_seconds": memory["ttl_seconds"], "expires_at": expires_at if item.ttl is None else None}
    return Found(
        key_of(item.namespace, item.key, item.value),
        present(
            {
                "text": memory["content"],
                "tags": memory["tags"],
                **lives,
                "pinned": memory["pinned"] and expires_at is None,
                "metadata": {**memory["metadata"], "source": "langgraph"},
                "memory_type": "semantic",
                "session": session_of(tuple(item.namespace), item.key),
                "external_id": label_of(item.key),
                "time": item.created_at,
                "force": True,
                "supersede": False,
            }
        ),
    )


def _path(item: Mapping[str, Any]) -> list[str]:
    path = item.get("namespace", item.get("prefix"))
    if isinstance(path, str):
        return path.split(".") if path else []
    return [str(part) for part in path] if isinstance(path, list | tuple) else []


def _value(value: Any) -> dict[str, Any] | None:
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
    for name in _LANGGRAPH_TEXTS:
        inner = value.get(name)
        # LangMem wraps a memory once more: {"kind": "Memory", "content": {"content": "..."}}.
        text = _said(inner) if isinstance(inner, dict) else text_of(inner)
        if text:
            return text
    texts = [name for name, held in value.items() if text_of(held)]
    if len(value) == 1 and texts:
        return text_of(value[texts[0]])
    return json.dumps(value, ensure_ascii=False) if value else ""


LANGGRAPH = Form(parse_langgraph, frozenset({"items", "results", "store"}))


def parse_mem0(name: str | None, record: Any, now: datetime) -> Iterator[Piece]:
    if name == "relations":
        yield LeftOut("relation of the graph")
        return
    wrong = _mem0_problem(record)
    if wrong is not None:
        yield Broken(wrong)
        return
    memory_id = label_of(record.get("id"))
    text = next(filter(None, (text_of(record.get(each)) for each in _MEM0_TEXTS)), "")
    expires_at = end_of(record.get("expiration_date"), now)
    if reason := reason_to_omit("memory", text, expires_at, now):
        yield LeftOut(reason, memory_id or "")
        return
    user, run = label_of(record.get("user_id")), label_of(record.get("run_id"))
    yield Found(
        key_of(memory_id, user, run, text),
        present(
            {
                "text": text,
                "memory_type": "semantic",
                "external_id": memory_id,
                "user": user,
                "session": run,
                "speaker": label_of(record.get("actor_id")),
                "role": label_of(record.get("role")),
                "time": time_of(record.get("created_at"), record.get("updated_at")),
                "expires_at": expires_at,
                "tags": _tags(record.get("categories")),
                "metadata": {
                    "source": "mem0",
                    **object_of(record.get("metadata")),
                    **present({"agent_id": label_of(record.get("agent_id")), "app_id": label_of(record.get("app_id"))}),
                },
            }
        ),
    )


def _mem0_problem(record: Any) -> str | None:
    if not isinstance(record, dict):
        return "is no memory: it is no object"
    if not any(isinstance(record.get(each, 0), str | None) for each in _MEM0_TEXTS):
        return f"is no memory: it has none of {', '.join(_MEM0_TEXTS)}"
    # Other formats may have their text in a field that mem0 has, too.
    return None if likely_form(record) in (None, "mem0") else "is no memory of mem0"


def _tags(categories: Any) -> list[str]:
    told = map(label_of, categories if isinstance(categories, list) else [categories])
    return list(dict.fromkeys(each for each in told if each))[:MAX_LABELS]


MEM0 = Form(parse_mem0, frozenset({"results", "memories", "relations"}))
