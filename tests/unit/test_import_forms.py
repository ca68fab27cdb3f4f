"""Parsers of other systems' exports: each format, omissions with reasons, and arbitrary JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.cli.imports import Broken, Found, LeftOut, likely_form
from agentcore.cli.lines import Line, NumberedLine
from agentcore.cli.transfer import FORMS, numbered_lines
from agentcore.integrations.langgraph_items import StoredItem, parse_item

NOW = datetime(2026, 5, 1, tzinfo=UTC)
IMAGE = {"content_type": "image_asset_pointer"}


def pieces(form: str, value: Any) -> Iterator[Any]:
    return FORMS[form].parse(None, value, NOW)


def found(form: str, value: Any) -> list[dict[str, Any]]:
    """Returns the lines of a record, each validated as import input."""
    lines = [dict(each.line) for each in pieces(form, value) if isinstance(each, Found)]
    for line in lines:
        Line.model_validate(line)
    return lines


def left_out(form: str, value: Any) -> list[str]:
    return [each.reason for each in pieces(form, value) if isinstance(each, LeftOut)]


def problems(form: str, value: Any) -> list[str]:
    return [each.problem for each in pieces(form, value) if isinstance(each, Broken)]


def node(
    parent: str | None, role: str | None = None, *parts: Any, kind: str = "text", time: float = 1.7e9, **more: Any
) -> dict[str, Any]:
    """Returns a node of ChatGPT's conversation tree."""
    content = {"content_type": kind, "parts": list(parts)}
    message = {
        "id": f"m-{role}-{time}",
        "author": {"role": role},
        "create_time": time,
        "content": content,
        "recipient": "all",
        **more,
    }
    return {"parent": parent, "children": [], "message": message if role else None}


def chatgpt(mapping: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"conversation_id": "c-1", "title": "Moving", "create_time": 1.7e9, "mapping": mapping, **more}


def claude(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "uuid": "c-1",
        "name": "Moving",
        "created_at": "2026-01-01T10:00:00Z",
        "chat_messages": list(messages),
        **more,
    }


def said(uuid: str, sender: str, text: str, **more: Any) -> dict[str, Any]:
    """Returns a message of Claude's export."""
    return {
        "uuid": uuid,
        "sender": sender,
        "text": text,
        "content": [{"type": "text", "text": text}],
        "created_at": f"2026-01-01T10:0{len(uuid)}:00.123456Z",
        **more,
    }


def test_chatgpt_is_read_from_the_root_to_the_node_that_was_last_shown() -> None:
    conversation = chatgpt(
        {
            "root": node(None),
            "a": node("root", "user", "Where is the key?"),
            "b1": node("a", "assistant", "I do not know."),
            "b2": node("a", "assistant", "Under the mat.", "By the door.", metadata={"model_slug": "m-4"}),
            "c": node("b2", "user", "Thank you for that, I found it."),
            "d": node("b1", "user", "Look again."),
        },
        current_node="c",
    )
    lines = found("chatgpt", conversation)
    assert [(line["role"], line["text"]) for line in lines] == [
        ("user", "Where is the key?"),
        ("assistant", "Under the mat.\nBy the door."),
        ("user", "Thank you for that, I found it."),
    ]
    assert {line["session"] for line in lines} == {"c-1"}
    assert lines[1]["metadata"] == {"source": "chatgpt", "title": "Moving", "model": "m-4"}
    assert lines[1]["time"] == "2023-11-14T22:13:20+00:00"
    assert [line["importance"] for line in lines] == [0.5, 0.4, 0.5]
    assert left_out("chatgpt", conversation) == ["another branch of the conversation"] * 2


def test_chatgpt_without_a_current_node_is_read_to_its_newest_end() -> None:
    conversation = chatgpt(
        {
            "a": node(None, "user", "First."),
            "b": node("a", "assistant", "Old.", time=1.7e9),
            "c": node("a", "assistant", "New.", time=1.8e9),
        },
        current_node="gone",
    )
    assert [line["text"] for line in found("chatgpt", conversation)] == ["First.", "New."]


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (node(None, "system", "You are kind."), "system message"),
        (node(None, "tool", "72 results"), "tool output"),
        (node(None, "critic", "Hm."), "message of an unknown role"),
        (node(None, "assistant", "print(1)", recipient="python"), "tool call"),
        (node(None, "assistant", "print(1)", kind="code"), "tool call"),
        (node(None, "assistant", "Let me think", kind="thoughts"), "reasoning"),
        (node(None, "user", "I am Ada", kind="user_editable_context"), "custom instructions"),
        (node(None, "user", "x", metadata={"is_visually_hidden_from_conversation": True}), "hidden by the app"),
        (node(None, "user", "x", kind="hologram"), "content of the kind hologram"),
        (node(None, "user", "  "), "empty message"),
        (node(None, "user", IMAGE, kind="multimodal_text"), "image without text"),
        (node(None, "user", {"content_type": "audio"}, kind="multimodal_text"), "attachment without text"),
    ],
)
def test_chatgpt_leaves_out_what_nobody_said(message: dict[str, Any], reason: str) -> None:
    conversation = chatgpt({"a": message}, current_node="a")
    assert (found("chatgpt", conversation), left_out("chatgpt", conversation)) == ([], [reason])


def test_chatgpts_pictures_are_left_out_and_what_was_said_with_them_is_not() -> None:
    conversation = chatgpt(
        {
            "a": node(
                None,
                "user",
                IMAGE,
                "Which bird is this?",
                {"content_type": "audio_transcription", "text": "It is grey."},
                kind="multimodal_text",
            )
        },
        current_node="a",
    )
    assert [line["text"] for line in found("chatgpt", conversation)] == ["Which bird is this?\nIt is grey."]
    assert left_out("chatgpt", conversation) == ["image without text"]


def test_chatgpts_circles_end() -> None:
    conversation = chatgpt({"a": node("b", "user", "One."), "b": node("a", "assistant", "Two.")}, current_node="a")
    assert [line["text"] for line in found("chatgpt", conversation)] == ["Two.", "One."]


def test_claude_keeps_the_text_and_says_what_it_left_out() -> None:
    conversation = claude(
        said(
            "a",
            "human",
            "Where is the key?",
            attachments=[{"file_name": "plan.txt", "extracted_content": "the plan"}],
            files=[{"file_name": "door.png"}],
        ),
        said(
            "bb",
            "assistant",
            "all of it",
            content=[
                {"type": "thinking", "thinking": "Hm."},
                {"type": "text", "text": "Under the mat."},
                {"type": "tool_use", "name": "look"},
                {"type": "tool_result"},
                {"type": "dance"},
                {"type": "text", "text": "By the door."},
            ],
        ),
        said("ccc", "human", ""),
        said("dddd", "robot", "Beep."),
        {"uuid": "e", "sender": "assistant", "text": "An old export has the text alone."},
    )
    lines = found("claude", conversation)
    assert [(line["role"], line["text"]) for line in lines] == [
        ("user", "Where is the key?"),
        ("assistant", "Under the mat.\n\nBy the door."),
        ("assistant", "An old export has the text alone."),
    ]
    assert lines[0]["metadata"] == {"source": "claude", "title": "Moving", "files": ["plan.txt", "door.png"]}
    assert lines[0]["time"] == "2026-01-01T10:01:00.123456+00:00"
    assert lines[2]["time"] == "2026-01-01T10:00:00+00:00"
    assert left_out("claude", conversation) == [
        "text of an attachment",
        "reasoning",
        "tool call",
        "tool output",
        "content of the kind dance",
        "empty message",
        "message of an unknown role",
    ]


def test_claudes_branches_are_followed_back_from_the_newest_end_or_the_current_one() -> None:
    messages = [
        said("a", "human", "One."),
        said("bb", "assistant", "Two.", parent_message_uuid="a"),
        said("ccc", "assistant", "Two again.", parent_message_uuid="a"),
    ]
    assert [line["text"] for line in found("claude", claude(*messages))] == ["One.", "Two again."]
    assert left_out("claude", claude(*messages)) == ["another branch of the conversation"]
    shown = claude(*messages, current_leaf_message_uuid="bb")
    assert [line["text"] for line in found("claude", shown)] == ["One.", "Two."]


def test_mem0_keeps_whose_when_and_what_it_was_about() -> None:
    [line] = found(
        "mem0",
        {
            "id": "m-1",
            "memory": "Ada plays the cello",
            "user_id": "ada",
            "run_id": 7,
            "agent_id": "coach",
            "categories": ["hobbies"],
            "metadata": {"mood": "glad"},
            "created_at": "2026-01-01T10:00:00-08:00",
            "actor_id": "ada",
            "role": "user",
            "expiration_date": "2030-01-01",
            "hash": "x",
            "score": 0.3,
        },
    )
    assert line == {
        "text": "Ada plays the cello",
        "memory_type": "semantic",
        "external_id": "m-1",
        "user": "ada",
        "session": "7",
        "speaker": "ada",
        "role": "user",
        "time": "2026-01-01T10:00:00-08:00",
        "expires_at": "2030-01-01T00:00:00+00:00",
        "tags": ["hobbies"],
        "metadata": {"source": "mem0", "mood": "glad", "agent_id": "coach"},
    }
    assert left_out("mem0", {"id": "m-2", "memory": "Old", "expiration_date": "2020-01-01"}) == ["expired"]
    assert left_out("mem0", {"id": "m-3", "memory": None}) == ["empty memory"]
    [never] = found("mem0", {"id": "m-4", "memory": "New", "expiration_date": "9998-12-31"})
    assert "expires_at" not in never
    assert problems("mem0", ["no object"]) == ["is no memory: it is no object"]
    assert [
        each.reason for each in FORMS["mem0"].parse("relations", {"source": "a"}, NOW) if isinstance(each, LeftOut)
    ] == ["relation of the graph"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"data": "Ada likes tea", "strength": 3}, "Ada likes tea"),
        ({"kind": "Memory", "content": {"content": "Ada likes tea"}}, "Ada likes tea"),
        ({"food_preference": "Ada likes tea"}, "Ada likes tea"),
        ({"drink": "tea", "cups": 3}, '{"drink": "tea", "cups": 3}'),
        ({"text": "a\x00b \ud83d", "x": None}, "ab \ufffd"),
    ],
)
def test_langgraphs_items_say_their_text_and_keep_their_value(value: dict[str, Any], text: str) -> None:
    [line] = found(
        "langgraph",
        {
            "namespace": ["users", "ada"],
            "key": "k-1",
            "value": value,
            "created_at": "2026-01-01T10:00:00+00:00",
            "updated_at": "2026-02-01",
        },
    )
    assert (line["text"], line["external_id"]) == (text, "k-1")
    assert parse_item(line["metadata"]) == StoredItem(
        ["users", "ada"], "k-1", value, "2026-01-01T10:00:00+00:00", "2026-02-01T00:00:00+00:00", None
    )
    assert (line["time"], line["pinned"]) == ("2026-01-01T10:00:00+00:00", True)


def test_langgraphs_rows_are_its_items() -> None:
    row = {
        "prefix": "users.ada",
        "key": "k-1",
        "value": json.dumps({"text": "Ada likes tea"}),
        "created_at": "2026-01-01 10:00:00.5+00",
        "expires_at": None,
    }
    [line] = found("langgraph", row)
    kept = parse_item(line["metadata"])
    assert kept is not None
    assert (kept.identity, kept.value) == ((("users", "ada"), "k-1"), {"text": "Ada likes tea"})
    assert line["time"] == "2026-01-01T10:00:00.500000+00:00"
    [living] = found("langgraph", {**row, "expires_at": "2026-06-01T00:00:00Z", "ttl_minutes": 10})
    assert (living["ttl_seconds"], living["pinned"], "expires_at" in living) == (630, False, False)
    [ending] = found("langgraph", {**row, "expires_at": "2026-06-01T00:00:00Z", "ttl_minutes": 1e300})
    assert (ending["expires_at"], ending["pinned"]) == ("2026-06-01T00:00:00+00:00", False)
    [root] = found("langgraph", {**row, "prefix": ""})
    assert root["tags"] == ["langgraph:/", "langgraph-searched:/"]
    assert left_out("langgraph", {**row, "value": {}}) == ["empty item"]
    assert left_out("langgraph", {**row, "expires_at": "2020-01-01T00:00:00Z"}) == ["expired"]
    assert left_out("langgraph", {**row, "value": None}) == ["empty item"]
    assert problems("langgraph", {"namespace": []}) == ["is no item: it has no key or no value"]
    assert problems("langgraph", {**row, "value": "no JSON"}) == ["is no item: its value is no object"]
    [deep] = problems("langgraph", {**row, "prefix": ".".join("x" * 32)})
    assert "31 is the most" in deep


def numbered(form: str, raw: bytes, now: datetime = NOW, **more: str) -> list[NumberedLine]:
    return list(numbered_lines(form, [BytesIO(raw)], now=now, more=more))


def numbers(raw: bytes, now: datetime) -> list[tuple[int, str | None]]:
    """Returns the number and the text or omission reason of each memory of kagent."""
    return sorted(
        (each.number, each.line.text if each.line else each.left_out) for each in numbered("kagent", raw, now)
    )


@pytest.mark.shows("issue6-6-resumed")
def test_a_record_has_the_same_number_whatever_expired_between_two_runs() -> None:
    records = [
        {"id": f"k-{n}", "content": f"Node {n} is up", "embedding": [0.1], "expires_at": f"2026-05-0{n}T12:00:00Z"}
        for n in (1, 2, 3)
    ]
    raw, vector = json.dumps({"data": records}).encode(), "vector of another model: it is made anew"
    assert numbers(raw, NOW) == sorted([(n, text) for n in (1, 2, 3) for text in (f"Node {n} is up", vector)])
    assert numbers(raw, datetime(2026, 5, 3, tzinfo=UTC)) == [
        (1, "expired"),
        (2, "expired"),
        (3, "Node 3 is up"),
        (3, vector),
    ]


@pytest.mark.shows("issue6-6-resumed")
def test_of_whom_and_where_are_different_imports_even_by_one_name() -> None:
    def keys(**more: Any) -> set[str]:
        raw = json.dumps([{"id": "m-1", "memory": "Ada plays the cello"}]).encode()
        return {each.key for each in numbered("mem0", raw, **more)}

    assert len(keys(user="team") | keys(namespace="team") | keys() | keys(user="team", namespace="team")) == 4
    assert keys(user="a", namespace="b") == keys(namespace="b", user="a")


def test_kagents_memories_keep_their_session_and_leave_their_vector() -> None:
    record = {
        "id": "k-1",
        "agent_name": "kagent__NS__helper",
        "user_id": "ada@example.org",
        "content": "The cluster has three nodes",
        "embedding": [0.1] * 768,
        "access_count": 12,
        "metadata": '{"session_id": "s-1", "app_name": "ops", "timestamp": 1.7e9}',
        "created_at": "2026-01-01T10:00:00.123456789Z",
        "expires_at": "2026-06-01T00:00:00Z",
    }
    [line] = found("kagent", record)
    assert (line["session"], line["user"]) == ("s-1", "ada@example.org")
    assert line["time"] == "2023-11-14T22:13:20+00:00"
    assert line["metadata"] == {
        "session_id": "s-1",
        "app_name": "ops",
        "timestamp": 1.7e9,
        "source": "kagent",
        "agent_name": "kagent__NS__helper",
        "access_count": 12,
    }
    assert left_out("kagent", record) == ["vector of another model: it is made anew"]
    assert left_out("kagent", {**record, "expires_at": "2026-04-30T00:00:00Z"}) == ["expired"]
    assert left_out("kagent", {"id": "k-2", "content": " "}) == ["empty memory"]
    assert problems("kagent", {"content": 7}) == ["is no memory: it has no content"]


@pytest.mark.parametrize("form", ["chatgpt", "claude"])
@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "text",
        [],
        {},
        {"mapping": {}},
        {"chat_messages": []},
        {"uuid": "a", "id": "b", "mapping": 1, "chat_messages": 1},
    ],
)
def test_what_is_no_conversation_is_told_to_be_none(form: str, value: Any) -> None:
    [problem] = problems(form, value)
    assert problem.startswith("is no conversation")


@pytest.mark.parametrize(
    ("form", "conversation"),
    [("chatgpt", chatgpt({})), ("chatgpt", chatgpt({"root": node(None)})), ("claude", claude())],
)
def test_a_conversation_without_a_message_is_told_to_be_empty(form: str, conversation: Any) -> None:
    assert left_out(form, conversation) == ["empty conversation"]


def test_chatgpts_marks_are_left_out_and_the_names_in_them_are_not() -> None:
    marked = (
        'The review by \ue200entity\ue202["people", "Nathaniel", 0]\ue201 says so. '
        "\ue200cite\ue202turn0search3\ue202turn0search8\ue201"
    )
    odd = "\ue200entity\ue202no JSON\ue201\ue200entity\ue202[1]\ue201\ue200entity\ue2027\ue201One\ue200 more."
    lines = found(
        "chatgpt", chatgpt({"a": node(None, "user", marked), "b": node("a", "user", odd, time=1.8e9)}, current_node="b")
    )
    assert [line["text"] for line in lines] == ["The review by Nathaniel says so.", "One\ue200 more."]


def test_chatgpts_parts_may_be_one_text() -> None:
    message = node(None, "user")
    message["message"] = {
        "id": "m",
        "author": {"role": "user"},
        "content": {"content_type": "text", "parts": "Where is the key?"},
    }
    assert [line["text"] for line in found("chatgpt", chatgpt({"a": message}))] == ["Where is the key?"]


def test_claudes_branch_goes_on_before_a_message_that_is_missing() -> None:
    root = "00000000-0000-4000-8000-000000000000"
    lines = found(
        "claude",
        claude(
            said("z", "human", "Never shown.", parent_message_uuid=root),
            said("a", "human", "One.", parent_message_uuid=root),
            said("ccc", "assistant", "Three.", parent_message_uuid="lost"),
            said("dddd", "human", "Four.", parent_message_uuid="ccc"),
        ),
    )
    assert [line["text"] for line in lines] == ["One.", "Three.", "Four."]


def test_claudes_messages_without_an_id_are_all_kept_and_their_text_may_stand_alone() -> None:
    yes = {"sender": "human", "content": "Yes."}
    raw = json.dumps([claude(yes, {"sender": "assistant", "text": "Sure?"}, yes)]).encode()
    lines = numbered("claude", raw)
    assert [each.line.text for each in lines if isinstance(each.line, Line)] == ["Yes.", "Sure?", "Yes."]
    assert len({each.key for each in lines}) == 3


def test_mem0s_categories_are_tags_as_far_as_a_memory_has_them() -> None:
    [line] = found("mem0", {"memory": "Ada plays", "categories": ["x" * 300, None, "", *map(str, range(99))]})
    assert len(line["tags"]) == 64
    [line] = found("mem0", {"memory": "Ada plays", "categories": "hobbies"})
    assert line["tags"] == ["hobbies"]


def test_hostile_ids_texts_and_times_become_what_a_memory_can_hold() -> None:
    [line] = found(
        "mem0",
        {
            "id": "a\x01b" * 200,
            "memory": "one\x00two \ud83d",
            "user_id": "x\ny",
            "created_at": "0001-01-01T00:00:00Z",
            "updated_at": 1.7e12,
        },
    )
    assert line["text"] == "onetwo \ufffd"
    assert line["user"] == "x%0Ay"
    assert line["time"] == "2023-11-14T22:13:20+00:00"


NAMES = (
    "mapping message author role content parts parent current_node id uuid chat_messages sender text type "
    "content_type metadata memory key value namespace created_at expires_at categories attachments files "
    "recipient parent_message_uuid user assistant a"
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=6),
    max_leaves=30,
)


@given(form=st.sampled_from(sorted(FORMS)), value=JSON)
@pytest.mark.shows("issue6-6-forms")
def test_no_json_breaks_a_parser_and_all_its_lines_are_lines(form: str, value: Any) -> None:
    raw = json.dumps([value]).encode()
    lines = numbered(form, raw)
    # A later import of the same data must yield the same memories, not duplicates.
    again = numbered(form, raw, NOW + timedelta(days=365))
    assert [(each.number, each.key) for each in lines] == [(each.number, each.key) for each in again]
    assert all((each.line is None) == (each.problem is not None or each.left_out is not None) for each in lines)


EXPORTS = Path(__file__).resolve().parents[1] / "fixtures" / "exports"
FILES = {
    "chatgpt": "chatgpt.json",
    "claude": "claude.json",
    "kagent": "kagent.json",
    "langgraph": "langgraph.jsonl",
    "mem0": "mem0.json",
}


@pytest.mark.parametrize("other", FILES)
@pytest.mark.parametrize("form", FILES)
def test_a_file_of_another_form_fails_and_names_its_own(form: str, other: str) -> None:
    lines = numbered(form, (EXPORTS / FILES[other]).read_bytes())
    hints = [line for line in lines if f"an export of {other}: --from {other}" in (line.problem or "")]
    if form == other:
        assert hints == []
    else:
        assert hints
        assert [line.line for line in lines if line.line is not None] == []


def test_kagents_rows_are_none_of_mem0s_memories() -> None:
    row = {"id": "1", "agent_name": "helper", "user_id": "ada", "content": "Ada keeps bees."}
    assert problems("mem0", row) == ["is no memory of mem0"]
    assert problems("mem0", {"id": "1", "content": "Ada keeps bees.", "agent_id": "helper"}) == []
    assert problems("mem0", {**row, "memory": "Ada keeps bees."}) == []


@pytest.mark.parametrize(
    "value", [{"id": "c-1", "mapping": {}}, {"uuid": "u", "chat_messages": []}, {"data": [{"mapping": {}}]}, {}]
)
def test_a_record_without_a_text_of_its_form_is_broken(value: Any) -> None:
    for form in ("kagent", "mem0"):
        assert [each[:12] for each in problems(form, value)] == ["is no memory"]


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "mapping",
        [],
        {},
        {"results": [[]]},
        {"items": [], "data": [1]},
        {"mapping": "of towns", "memory": 7, "key": "k", "content": "c"},
    ],
)
def test_what_may_be_anything_is_no_form_for_sure(value: Any) -> None:
    assert likely_form(value) is None
