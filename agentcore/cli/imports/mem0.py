"""mem0's memories, as get_all and its exports give them. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from agentcore.cli.imports.pieces import (
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
from agentcore.limits import MAX_LABELS

_TEXTS = ("memory", "text", "data", "content")


def parse(name: str | None, record: Any, now: datetime) -> Iterator[Piece]:
    """Yields one memory."""
    if name == "relations":
        yield LeftOut("relation of the graph")
        return
    wrong = _problem_of(record)
    if wrong is not None:
        yield Broken(wrong)
        return
    memory_id = label_of(record.get("id"))
    text = next(filter(None, (text_of(record.get(each)) for each in _TEXTS)), "")
    expires_at = end_of(record.get("expiration_date"), now)
    if reason := reason_to_omit("memory", text, expires_at, now):
        yield LeftOut(reason, memory_id or "")
        return
    user, run = label_of(record.get("user_id")), label_of(record.get("run_id"))
    yield Found(key_of(memory_id, user, run, text), present({
        "text": text, "memory_type": "semantic", "external_id": memory_id, "user": user, "session": run,
        "speaker": label_of(record.get("actor_id")), "role": label_of(record.get("role")),
        "time": time_of(record.get("created_at"), record.get("updated_at")), "expires_at": expires_at,
        "tags": _tags(record.get("categories")),
        "metadata": {"source": "mem0", **object_of(record.get("metadata")), **present({
            "agent_id": label_of(record.get("agent_id")), "app_id": label_of(record.get("app_id"))})},
    }))


def _problem_of(record: Any) -> str | None:
    if not isinstance(record, dict):
        return "is no memory: it is no object"
    if not any(isinstance(record.get(each, 0), str | None) for each in _TEXTS):
        return f"is no memory: it has none of {', '.join(_TEXTS)}"
    # Others say their text in a field that mem0 has, too.
    return None if likely_form(record) in (None, "mem0") else "is no memory of mem0"


def _tags(categories: Any) -> list[str]:
    told = map(label_of, categories if isinstance(categories, list) else [categories])
    return list(dict.fromkeys(each for each in told if each))[:MAX_LABELS]


FORM = Form(parse, frozenset({"results", "memories", "relations"}))
