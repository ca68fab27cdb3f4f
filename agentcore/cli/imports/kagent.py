"""kagent's memories, as its API lists them or its table holds them. Pure."""

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
    object_of,
    present,
    reason_to_omit,
    text_of,
    time_of,
)


def parse(name: str | None, record: Any, now: datetime) -> Iterator[Piece]:
    """Yields one memory; its vector, of another model, is not imported."""
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
    yield Found(key_of(memory_id, user, agent_name, text), present({
        "text": text, "memory_type": "semantic", "external_id": memory_id, "user": user,
        "session": label_of(about.get("session_id")), "expires_at": expires_at,
        "time": time_of(about.get("timestamp"), record.get("created_at")),
        "metadata": {**about, "source": "kagent", **present({
            "agent_name": agent_name, "access_count": record.get("access_count")})},
    }))


FORM = Form(parse, frozenset({"data", "memories"}))
