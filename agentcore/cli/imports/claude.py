"""Parses Claude's conversations.json: lists of messages, each with the id of its parent. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from agentcore.cli.imports.pieces import (
    Broken,
    Form,
    Found,
    LeftOut,
    Piece,
    importance_of,
    key_of,
    label_of,
    objects_in,
    present,
    text_of,
    time_of,
)

_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_BY_TYPE = {
    "thinking": "reasoning", "redacted_thinking": "reasoning", "tool_use": "tool call",
    "tool_result": "tool output", "token_budget": "bookkeeping of the app",
}

ROOT = "00000000-0000-4000-8000-000000000000"


def parse(name: str | None, conversation: Any, now: datetime) -> Iterator[Piece]:
    """Yields the messages of one conversation."""
    messages = conversation.get("chat_messages") if isinstance(conversation, dict) else None
    session = label_of(conversation.get("uuid")) if isinstance(conversation, dict) else None
    if not isinstance(messages, list) or session is None:
        yield Broken("is no conversation: it has no uuid or no chat_messages")
        return
    if not messages:
        yield LeftOut("empty conversation", session)
        return
    known = [each for each in messages if isinstance(each, dict)]
    for _ in range(len(messages) - len(known)):
        yield Broken(f"conversation {session}: a message is no object")
    shown = _branch(known, conversation.get("current_leaf_message_uuid"))
    for place, message in enumerate(known):
        if place in shown:
            yield from _message(conversation, session, place, message)
        else:
            yield LeftOut("another branch of the conversation", f"{session} {label_of(message.get('uuid'))}")


def _branch(messages: Sequence[Mapping[str, Any]], current: Any) -> set[int]:
    """Returns the indexes of the messages last shown: all messages if none names its parent."""
    places = {label_of(message.get("uuid")): place for place, message in enumerate(messages)}
    parents = [label_of(message.get("parent_message_uuid")) for message in messages]
    if places.keys().isdisjoint(set(parents) - {None}):
        return set(range(len(messages)))
    ends = [place for uuid, place in places.items() if uuid not in parents]
    newest = max(ends, key=lambda place: (time_of(messages[place].get("created_at")) or "", place), default=0)
    at: int | None = places.get(label_of(current), newest)
    path: set[int] = set()
    while at is not None and at not in path:
        path.add(at)
        at = _before(at, parents[at], places)
    return path


def _before(place: int, parent: str | None, places: Mapping[str | None, int]) -> int | None:
    """Returns the index of the parent; if the export omits the parent, of the message before."""
    if parent in (None, ROOT):
        return None
    return places.get(parent, place - 1 if place else None)


def _message(
    conversation: Mapping[str, Any], session: str, number: int, message: Mapping[str, Any]
) -> Iterator[Piece]:
    message_id = label_of(message.get("uuid"))
    place = f"{session} {message_id}"
    role = _ROLES.get(text_of(message.get("sender")))
    if role is None:
        yield LeftOut("message of an unknown role", place)
        return
    text, others = _text(message)
    for reason in others:
        yield LeftOut(reason, place)
    if not text:
        yield LeftOut("empty message", place)
        return
    project = conversation.get("project")
    yield Found(key_of(session, number if message_id is None else message_id, text), present({
        "role": role, "text": text, "session": session, "external_id": message_id,
        "time": time_of(message.get("created_at"), conversation.get("created_at")),
        "importance": importance_of(role),
        "metadata": present({
            "source": "claude", "title": text_of(conversation.get("name")), "files": _files(message),
            "project": text_of(project.get("name")) if isinstance(project, dict) else ""}),
    }))


def _text(message: Mapping[str, Any]) -> tuple[str, list[str]]:
    blocks = objects_in(message.get("content"))
    said = [text_of(each.get("text")) for each in blocks if each.get("type") == "text"]
    others = [_BY_TYPE.get(kind, f"content of the kind {kind[:40] or 'unknown'}")
              for each in blocks if (kind := text_of(each.get("type"))) != "text"]
    others += ["text of an attachment" for each in objects_in(message.get("attachments"))
               if text_of(each.get("extracted_content"))]
    # Older exports have the text only; newer ones repeat the blocks in it.
    whole = text_of(message.get("content")) or text_of(message.get("text"))
    return "\n\n".join(filter(None, said)) or ("" if blocks else whole), others


def _files(message: Mapping[str, Any]) -> list[str]:
    attached = [*objects_in(message.get("attachments")), *objects_in(message.get("files"))]
    return [name for each in attached if (name := text_of(each.get("file_name")))]


FORM = Form(parse, frozenset({"conversations"}), r"conversations(?:[-_]\d+)?\.json")
