"""Parses the conversations.json of ChatGPT and Claude: of each conversation the branch last shown. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from agentcore.cli.imports import (
    Broken,
    Form,
    Found,
    LeftOut,
    Piece,
    key_of,
    label_of,
    objects_in,
    present,
    text_of,
    time_of,
)
from agentcore.memory.models import DEFAULT_IMPORTANCE
from agentcore.memory.params.sessions import ROLE_IMPORTANCE

_CONVERSATION_FILES = r"conversations(?:[-_]\d+)?\.json"

_SPOKEN = ("text", "multimodal_text")
_CHATGPT_KINDS = {
    "code": "tool call",
    "execution_output": "tool output",
    "tether_quote": "tool output",
    "tether_browsing_display": "tool output",
    "system_error": "tool output",
    "thoughts": "reasoning",
    "reasoning_recap": "reasoning",
    "user_editable_context": "custom instructions",
    "model_editable_context": "custom instructions",
}

# Inline markup: \ue200cite\ue202turn0search1\ue201, or \ue200entity\ue202["city","Porto",0]\ue201.
_MARK_SIGN = "\ue200"
_MARK = re.compile("\ue200(?P<kind>\\w*)\ue202?(?P<told>[^\ue200\ue201]*)\ue201")


def parse_chatgpt(name: str | None, conversation: Any, now: datetime) -> Iterator[Piece]:
    nodes = conversation.get("mapping") if isinstance(conversation, dict) else None
    if not isinstance(nodes, dict):
        yield Broken("is no conversation: it has no mapping")
        return
    session = label_of(conversation.get("conversation_id") or conversation.get("id"))
    if session is None:
        yield Broken("is no conversation: it has no id")
        return
    if not any(_said(node) for node in nodes.values()):
        yield LeftOut("empty conversation", session)
        return
    shown = _chatgpt_branch(nodes, conversation.get("current_node"))
    for node_id in shown:
        yield from _chatgpt_message(conversation, session, node_id, nodes[node_id])
    yield from _other_branches(session, nodes, shown)


def _other_branches(session: str, nodes: dict[str, Any], shown: Collection[str]) -> Iterator[Piece]:
    for node_id, node in nodes.items():
        if node_id not in shown and _role(_said(node)) in ("user", "assistant"):
            yield LeftOut("another branch of the conversation", f"{session} {node_id}")


def _chatgpt_branch(nodes: Mapping[str, Any], current: Any) -> list[str]:
    """Returns the ids from the root to the current node, or to the newest leaf if no node is current."""
    node_id = current if isinstance(current, str) and current in nodes else _newest_end(nodes)
    path: dict[str, None] = {}
    while isinstance(node_id, str) and node_id in nodes and node_id not in path:
        path[node_id] = None
        node_id = nodes[node_id].get("parent") if isinstance(nodes[node_id], dict) else None
    return list(path)[::-1]


def _newest_end(nodes: Mapping[str, Any]) -> str | None:
    parents = {str(node.get("parent")) for node in nodes.values() if isinstance(node, dict)}
    told = {
        node_id: time_of(_said(nodes[node_id]).get("create_time")) or "" for node_id in nodes if node_id not in parents
    }
    return max(told, key=lambda node_id: told[node_id], default=None)


def _said(node: Any) -> Mapping[str, Any]:
    message = node.get("message") if isinstance(node, dict) else None
    return message if isinstance(message, dict) else {}


def _role(message: Mapping[str, Any]) -> str:
    author = message.get("author")
    return text_of(author.get("role")) if isinstance(author, dict) else ""


def _chatgpt_message(conversation: Mapping[str, Any], session: str, node_id: str, node: Any) -> Iterator[Piece]:
    message = _said(node)
    if not message:
        return  # the root, which has no message
    place = f"{session} {node_id}"
    reason = _passed_over(message)
    if reason is not None:
        yield LeftOut(reason, place)
        return
    content = message["content"]
    text, without_text = _chatgpt_text(content.get("parts"))
    for kind in without_text:
        yield LeftOut(f"{kind} without text", place)
    if not text:
        if not without_text:
            yield LeftOut("empty message", place)
        return
    role, message_id = _role(message), label_of(message.get("id")) or label_of(node_id)
    model = message.get("metadata")
    metadata = {
        "source": "chatgpt",
        "title": text_of(conversation.get("title")),
        "model": text_of(model.get("model_slug")) if isinstance(model, dict) else "",
    }
    time = time_of(message.get("create_time"), conversation.get("create_time"))
    yield Found(key_of(session, message_id, text), _line(session, message_id, role, text, time, metadata))


def _line(
    session: str, message_id: str | None, role: str, text: str, time: str | None, metadata: Mapping[str, Any]
) -> Mapping[str, Any]:
    return present(
        {
            "role": role,
            "text": text,
            "session": session,
            "external_id": message_id,
            "time": time,
            "importance": ROLE_IMPORTANCE.get(role, DEFAULT_IMPORTANCE),
            "metadata": present(metadata),
        }
    )


def _passed_over(message: Mapping[str, Any]) -> str | None:
    role, content, about = _role(message), message.get("content"), message.get("metadata")
    kind = text_of(content.get("content_type")) if isinstance(content, dict) else ""
    if isinstance(about, dict) and about.get("is_visually_hidden_from_conversation") is True:
        return _CHATGPT_KINDS.get(kind, "hidden by the app")
    if role not in ("user", "assistant"):
        return {"tool": "tool output", "system": "system message"}.get(role, "message of an unknown role")
    if message.get("recipient") not in (None, "all"):
        return "tool call"
    if kind in _SPOKEN:
        return None
    return _CHATGPT_KINDS.get(kind, f"content of the kind {kind[:40] or 'unknown'}")


def _chatgpt_text(parts: Any) -> tuple[str, list[str]]:
    said: list[str] = []
    others: list[str] = []
    for part in parts if isinstance(parts, list) else [parts]:
        if isinstance(part, dict):
            heard = _worded(text_of(part.get("text")))
            kind = text_of(part.get("content_type"))[:40]
            said.append(heard)
            others += [] if heard else ["image" if kind == "image_asset_pointer" else "attachment"]
        else:
            said.append(_worded(text_of(part)))
    return "\n".join(filter(None, said)), others


def _worded(text: str) -> str:
    if _MARK_SIGN not in text:
        return text
    return _MARK.sub(lambda mark: _named(mark["kind"], mark["told"]), text).strip()


def _named(kind: str, told: str) -> str:
    if kind != "entity":
        return ""
    try:
        _, name, *_ = json.loads(told)
    except (ValueError, TypeError, RecursionError):
        return ""
    return text_of(name)


CHATGPT = Form(parse_chatgpt, frozenset({"conversations"}), _CONVERSATION_FILES)

_CLAUDE_ROLES = {"human": "user", "user": "user", "assistant": "assistant"}
_CLAUDE_KINDS = {
    "thinking": "reasoning",
    "redacted_thinking": "reasoning",
    "tool_use": "tool call",
    "tool_result": "tool output",
    "token_budget": "bookkeeping of the app",
}

_CLAUDE_ROOT = "00000000-0000-4000-8000-000000000000"


def parse_claude(name: str | None, conversation: Any, now: datetime) -> Iterator[Piece]:
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
    shown = _claude_branch(known, conversation.get("current_leaf_message_uuid"))
    for place, message in enumerate(known):
        if place in shown:
            yield from _claude_message(conversation, session, place, message)
        else:
            yield LeftOut("another branch of the conversation", f"{session} {label_of(message.get('uuid'))}")


def _claude_branch(messages: Sequence[Mapping[str, Any]], current: Any) -> set[int]:
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
    if parent in (None, _CLAUDE_ROOT):
        return None
    return places.get(parent, place - 1 if place else None)


def _claude_message(
    conversation: Mapping[str, Any], session: str, number: int, message: Mapping[str, Any]
) -> Iterator[Piece]:
    message_id = label_of(message.get("uuid"))
    place = f"{session} {message_id}"
    role = _CLAUDE_ROLES.get(text_of(message.get("sender")))
    if role is None:
        yield LeftOut("message of an unknown role", place)
        return
    text, others = _claude_text(message)
    for reason in others:
        yield LeftOut(reason, place)
    if not text:
        yield LeftOut("empty message", place)
        return
    project = conversation.get("project")
    metadata = {
        "source": "claude",
        "title": text_of(conversation.get("name")),
        "files": _files(message),
        "project": text_of(project.get("name")) if isinstance(project, dict) else "",
    }
    key = key_of(session, number if message_id is None else message_id, text)
    time = time_of(message.get("created_at"), conversation.get("created_at"))
    yield Found(key, _line(session, message_id, role, text, time, metadata))


def _claude_text(message: Mapping[str, Any]) -> tuple[str, list[str]]:
    blocks = objects_in(message.get("content"))
    said = [text_of(each.get("text")) for each in blocks if each.get("type") == "text"]
    others = [
        _CLAUDE_KINDS.get(kind, f"content of the kind {kind[:40] or 'unknown'}")
        for each in blocks
        if (kind := text_of(each.get("type"))) != "text"
    ]
    others += [
        "text of an attachment"
        for each in objects_in(message.get("attachments"))
        if text_of(each.get("extracted_content"))
    ]
    # Older exports have the text only; newer ones repeat the blocks in it.
    whole = text_of(message.get("content")) or text_of(message.get("text"))
    return "\n\n".join(filter(None, said)) or ("" if blocks else whole), others


def _files(message: Mapping[str, Any]) -> list[str]:
    attached = [*objects_in(message.get("attachments")), *objects_in(message.get("files"))]
    return [name for each in attached if (name := text_of(each.get("file_name")))]


CLAUDE = Form(parse_claude, frozenset({"conversations"}), _CONVERSATION_FILES)
