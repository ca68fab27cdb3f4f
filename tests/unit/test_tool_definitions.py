"""Definitions of the memory tools: simple schemas, and actionable texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest
from agents.strict_schema import ensure_strict_json_schema
from jsonschema import Draft202012Validator

from agentcore.agents.openai_tools import chat_tools, response_tools
from agentcore.agents.prefetch import above, first_user_text
from agentcore.agents.tool_contract import MOST_CONTENT_CHARS, bounded, compact, failure_sentence, told
from agentcore.agents.tools import (
    ALL_TOOLS,
    TOOLS,
    USUAL_TOOLS,
    ToolDefinition,
    definitions_of,
    memory_instructions,
    tools_within,
)
from agentcore.errors import (
    AgentCoreError,
    AuthenticationFailed,
    Conflict,
    DependencyUnavailable,
    InternalError,
    NotAuthorised,
    NotReady,
)
from agentcore.memory.models import MemorySummary, MemoryType

USES: dict[str, dict[str, Any]] = {
    "save_memory": {"content": "Ada likes tea.", "memory_type": "semantic", "importance": 1, "tags": ["tea"]},
    "recall_memory": {"query": "tea", "limit": 3, "memory_types": ["episodic"], "after": "2026-05-01"},
    "prefetch_memory": {"message": "Good morning, what did I plan?"},
    "update_memory": {"memory_id": "0190b5a0-0000-7000-8000-000000000001", "context": "And cake."},
    "forget_memory": {"memory_ids": ["0190b5a0-0000-7000-8000-000000000001"], "confirmation": "x-y"},
    "memory_session": {"memory_id": "0190b5a0-0000-7000-8000-000000000001", "before": 0},
}


def keys(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        for name, inner in schema.items():
            yield name
            yield from keys(inner)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_schema_is_one_plain_object_that_takes_what_the_tool_takes(tool: ToolDefinition) -> None:
    schema = dict(tool.parameters)
    Draft202012Validator.check_schema(schema)
    assert schema["type"] == "object"
    assert not {"$ref", "$defs", "anyOf", "oneOf", "allOf", "title"} & set(keys(schema))
    assert all(member.get("description") for member in schema["properties"].values())
    use = USES[tool.name]
    Draft202012Validator(schema).validate(use)
    tool.arguments.model_validate(use)
    assert not Draft202012Validator(schema).is_valid({**use, "agent_id": "another"})


# Keywords that OpenAI's structured outputs accept ("Supported schemas" of their guide).
STRICT_KEYWORDS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "description",
    "enum",
    "anyOf",
    "items",
    "format",
    "pattern",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
}


def schemas(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yields the schema and every nested one."""
    yield schema
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    for each in [*inner, *([schema["items"]] if "items" in schema else [])]:
        yield from schemas(each)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
@pytest.mark.shows("issue6-3-strict")
def test_the_strict_form_holds_what_strict_mode_knows_and_takes_what_the_tool_takes(tool: ToolDefinition) -> None:
    [chat], [response] = chat_tools([tool], strict=True), response_tools([tool], strict=True)
    strict = chat["function"]["parameters"]
    assert (chat["function"]["strict"], response["strict"], response["parameters"]) == (True, True, strict)
    assert all(set(each) <= STRICT_KEYWORDS for each in schemas(strict))
    assert set(strict["required"]) == set(strict["properties"]) == set(tool.parameters["properties"])
    assert strict["additionalProperties"] is False
    assert ensure_strict_json_schema(deepcopy(strict)) == strict
    use = {**dict.fromkeys(strict["properties"]), **USES[tool.name]}
    Draft202012Validator(strict).validate(use)
    assert not Draft202012Validator(strict).is_valid(USES[tool.name] | {"agent_id": "another"})


def test_a_default_that_strict_mode_cannot_hold_is_said() -> None:
    [tool] = chat_tools(definitions_of(("recall_memory",)), strict=True)
    assert tool["function"]["parameters"]["properties"]["limit"]["description"].endswith("null: 5.")


@pytest.mark.parametrize(
    ("scopes", "tools"),
    [
        (("memory:read",), ("recall_memory", "prefetch_memory", "memory_session")),
        (("memory:write",), ("save_memory",)),
        (("memory:read", "memory:write"), ALL_TOOLS),
        (("memory:admin",), ()),
    ],
)
def test_a_token_is_offered_what_it_may_do(scopes: tuple[str, ...], tools: tuple[str, ...]) -> None:
    assert tools_within(scopes) == tools


def test_no_tool_lets_a_model_name_whose_memory_is_meant() -> None:
    named = {(tool.name, name) for tool in TOOLS for name in tool.parameters["properties"]}
    owners = ("agent_id", "user_id", "namespace", "session_id", "task_id")
    # Selects a conversation within the scope's user and namespace.
    assert {each for each in named if each[1] in owners} == {("memory_session", "session_id")}


def test_the_tools_that_change_something_say_so() -> None:
    assert {tool.name for tool in TOOLS if not tool.reads_only} == {"save_memory", "update_memory", "forget_memory"}
    assert {tool.name for tool in TOOLS if tool.destructive} == {"forget_memory"}


def test_the_definitions_cost_a_model_less_than_two_thousand_tokens() -> None:
    definitions = [[each.name, each.description, each.parameters] for each in definitions_of(USUAL_TOOLS)]
    assert len(json.dumps(definitions)) < 2_000 * 4


@pytest.mark.parametrize("names", [ALL_TOOLS, USUAL_TOOLS, ("load_memory", "preload_memory"), ()])
def test_the_instructions_speak_of_the_tools_there_are_by_their_names(names: tuple[str, ...]) -> None:
    text = memory_instructions(names)
    every = {*ALL_TOOLS, "load_memory", "preload_memory"}
    assert {name for name in every if name in text} == set(names)
    assert "<memories>" in text


@pytest.mark.parametrize(
    "failure",
    [
        DependencyUnavailable("No service answers at http://10.0.0.7:8080"),
        NotReady(),
        InternalError("psycopg"),
        AuthenticationFailed("key abc"),
        NotAuthorised("memory:write"),
        AgentCoreError("/var/lib/x.py line 7"),
    ],
)
def test_a_failure_that_is_not_the_models_tells_no_inner_word_and_to_go_on(failure: AgentCoreError) -> None:
    sentence = failure_sentence(failure)
    assert failure.message not in sentence
    assert "Continue without" in sentence


def test_a_conflict_is_told_in_the_services_words() -> None:
    assert failure_sentence(Conflict("It changed.")) == "It changed."


def memory(content: str, summary: str) -> MemorySummary:
    return MemorySummary(
        memory_id=UUID(int=1),
        memory_type=MemoryType.EPISODIC,
        content=content,
        summary=summary,
        timestamp=datetime(2026, 5, 1, 10, 30, tzinfo=UTC),
        score=0.123,
        relevance_score=0.5,
    )


def test_a_memory_is_told_by_its_summary_where_it_is_long_and_cut_where_that_is_too() -> None:
    long = "x" * (MOST_CONTENT_CHARS + 1)
    assert told(memory("short", "short"))["content"] == "short"
    assert told(memory(long, "in short"))["content"] == "in short"
    assert told(memory(long, long))["content"].endswith(" [...]")
    assert len(told(memory(long, long))["content"]) == MOST_CONTENT_CHARS


def test_a_memory_that_is_probably_outdated_names_the_newer_one() -> None:
    old, newer = memory("short", "short"), UUID(int=2)
    assert told(old)["outdated_by"] is None
    assert told(old.model_copy(update={"outdated_by": newer}))["outdated_by"] == str(newer)


def test_what_is_null_or_empty_is_left_out_and_zero_and_false_are_not() -> None:
    assert compact({"a": None, "b": [], "c": "", "d": {}, "e": 0, "f": False, "g": [{"h": None}]}) == (
        '{"e":0,"f":false,"g":[{}]}'
    )


def test_memories_beyond_the_room_are_counted() -> None:
    memories = [{"content": "x" * 40}] * 5
    assert bounded(memories, room=120) == {"memories": memories[:2], "left_out": 3}
    assert bounded(memories) == {"memories": memories, "left_out": None}


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([], None),
        ([{"role": "user", "content": "hi"}], "hi"),
        ([{"role": "developer", "content": "x"}, {"role": "user", "content": "hi"}], "hi"),
        ([{"role": "user", "content": "hi"}, {"role": "user", "content": "again"}], None),
        ([{"role": "assistant", "content": "hi"}], None),
        ([{"role": "user", "content": [{"type": "image_url"}]}], None),
        ([{"role": "user", "content": None}], None),
    ],
)
def test_only_a_first_user_turn_has_a_first_text(messages: list[dict[str, Any]], text: str | None) -> None:
    assert first_user_text(messages) == text


def test_above_the_words_stands_what_memory_holds_if_it_holds_anything() -> None:
    assert above(" \n", "Hello") == "Hello"
    assert above("<memories>...</memories>\n", "Hello") == "<memories>...</memories>\n\nHello"
