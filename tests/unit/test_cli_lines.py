"""The JSONL format: reading line by line, keys, and fields that export omits."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from agentcore.cli.lines import MAX_LINE_BYTES, BadLine, Line, NumberedLine, read_lines, store_params
from agentcore.client.exporting import line_of
from agentcore.memory.models import MemoryRecord, MemoryType

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OLD_ID, NEW_ID = UUID(int=1), UUID(int=2)


def read(*lines: str | bytes) -> list[NumberedLine]:
    raw = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
    return list(read_lines(io.BytesIO(raw)))


def record(**values: Any) -> MemoryRecord:
    return MemoryRecord(
        **{
            "memory_id": OLD_ID,
            "memory_type": MemoryType.EPISODIC,
            "content": "Ada likes tea.",
            "summary": "Ada",
            "timestamp": NOW,
            "created_at": NOW,
            "updated_at": NOW,
            **values,
        }
    )


def params(line: dict[str, Any]) -> dict[str, Any]:
    made = store_params(Line.model_validate(line), "key", now=NOW, ids={})
    return made.model_dump(mode="json", exclude_unset=True)


def test_lines_keep_their_numbers_over_blank_ones_and_a_byte_order_mark() -> None:
    found = read(b"\xef\xbb\xbf" + b'{"text": "a"}', "", "   ", '{"text": "b"}')
    assert [each.number for each in found] == [1, 4]
    assert [each.line and each.line.text for each in found] == ["a", "b"]
    assert found[-1].end == sum(len(line) + 1 for line in ('xxx{"text": "a"}', "", "   ", '{"text": "b"}'))


def test_the_last_line_needs_no_end() -> None:
    [only] = read_lines(io.BytesIO(b'{"text": "a"}'))
    assert only.line is not None


def test_a_key_follows_from_the_meaning_of_a_line_and_its_occurrence() -> None:
    same = ('{"text": "a", "role": "user"}', '{ "role":"user","text":"a" }')
    first, spaced, other = read(*same, '{"text": "b"}')
    assert first.key.removesuffix(":1") == spaced.key.removesuffix(":2")
    assert first.key.rpartition(":")[0] != other.key.rpartition(":")[0]
    assert read('{"text": "b"}')[0].key == other.key
    assert len(first.key) <= 255


def test_a_line_beyond_the_limit_is_passed_over_whole() -> None:
    huge = json.dumps({"text": "x" * (3 * MAX_LINE_BYTES)})
    bad, good = read(huge, '{"text": "after"}')
    assert (bad.line, bad.number) == (None, 1)
    assert bad.problem == f"is longer than {MAX_LINE_BYTES} bytes"
    assert good.line is not None
    assert (good.line.text, good.number) == ("after", 2)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"text": "\xff"}', "is not UTF-8"),
        ('{"text": "\\ud800"}', "text: "),
        ('{"text": "a", "time": 1e999}', "time: "),
        ('{"text": "a", "text2": 1, "b": 2}', "unknown field 'text2'"),
        ('{"text": "a", "content": "b"}', "unknown field 'content'"),
        ('"text"', "is not a JSON object"),
        ("[1, 2]", "is not a JSON object"),
        ("{", "is not JSON"),
        ('{"text": NaN}', "NaN is no number"),
        ('{"role": "user"}', "text: is required"),
        ('{"text": ""}', "text: is empty"),
        ('{"text": "nul \\u0000 byte"}', "NUL"),
        ('{"text": "a", "time": "yesterday"}', "time: "),
        ('{"text": "a", "importance": 7}', "importance"),
        ('{"text": "a", "memory_type": "iconic"}', "memory_type"),
        ('{"text": "a", "metadata": ' + '{"a": ' * 200_000 + "1" + "}" * 200_000 + "}", "nested too deeply"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_is_wrong_with_a_line_is_told(line: str | bytes, problem: str) -> None:
    [found] = read(line)
    assert found.line is None
    assert problem in (found.problem or "")


def test_a_time_to_live_is_what_is_left_of_it() -> None:
    assert params({"text": "a", "expires_at": "2026-03-01T00:01:00Z"})["ttl_seconds"] == 60
    assert "ttl_seconds" not in params({"text": "a", "pinned": True, "expires_at": "2020-01-01T00:00:00Z"})
    with pytest.raises(BadLine, match="expired at 2020"):
        params({"text": "a", "expires_at": "2020-01-01T00:00:00Z"})


def test_a_role_beside_a_speaker_is_kept_in_the_metadata() -> None:
    told = {"text": "a", "role": "user", "speaker": "Mira", "metadata": {"mood": "glad"}}
    assert (params(told)["speaker"], params(told)["metadata"]) == ("Mira", {"role": "user", "mood": "glad"})
    assert params({"text": "a", "role": "user"})["speaker"] == "user"
    assert params({"text": "a", "role": "user"})["metadata"] == {}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"content": "Two\nlines", "relevance_score": 0.0, "pinned": True},
        {
            "speaker": "Mira",
            "session_id": "s",
            "task_id": "t",
            "user_id": "u",
            "namespace": "n",
            "external_id": "x",
            "tags": ["a"],
            "metadata": {"role": "user", "none": None},
            "memory_type": MemoryType.SEMANTIC,
        },
    ],
)
def test_what_export_writes_import_reads_back(values: dict[str, Any]) -> None:
    before = record(**values)
    made = params(line_of(before))
    names = {"content": "content", "importance": "relevance_score", "timestamp": "timestamp"}
    names |= {
        name: name
        for name in (
            "speaker",
            "session_id",
            "task_id",
            "user_id",
            "namespace",
            "external_id",
            "tags",
            "metadata",
            "memory_type",
            "pinned",
        )
    }
    kept = before.model_dump(mode="json")
    assert {name: made.get(name) for name in names} == {name: kept[field] for name, field in names.items()}
    assert made["force"] is True


def test_actions_are_carried_where_they_make_exactly_the_same_text() -> None:
    told = record(
        content="User: Deploy\nAgent: Done\nAction: make build\nOutcome: good",
        actions=["make build"],
        outcome="good",
        interaction_id="i-1",
    )
    made = params(line_of(told))
    assert "content" not in made
    assert made["interaction"]["actions"] == ["make build"]
    corrected = record(content="Deployed on Monday.", actions=["make build"], outcome="good")
    assert params(line_of(corrected))["content"] == "Deployed on Monday."


def test_a_parent_not_imported_is_left_out() -> None:
    line = Line.model_validate(line_of(record(parent_memory_id=OLD_ID)))
    assert store_params(line, "key", now=NOW, ids={}).parent_memory_id is None
    assert store_params(line, "key", now=NOW, ids={OLD_ID: NEW_ID}).parent_memory_id == NEW_ID
