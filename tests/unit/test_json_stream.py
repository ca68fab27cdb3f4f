"""The JSON stream reader: every shape, chunks of any size, and the position of errors."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.cli.imports import export_files
from agentcore.cli.imports.export_files import BadJson, Element, elements

ARRAYS = frozenset({"results", "relations"})
RECORDS = [{"id": 1, "text": 'one {["\u00e9'}, {"id": 2, "deep": [[{"x": None}], "]"]}, 3, -4.5e30, "five"]


class InSteps(io.BytesIO):
    """A file that returns this many bytes per read."""

    def __init__(self, content: bytes, step: int) -> None:
        super().__init__(content)
        self._step = step

    def read1(self, size: int | None = -1) -> bytes:
        return self.read(self._step)


def read(content: str | bytes, step: int = 1 << 20) -> list[Element]:
    raw = content.encode() if isinstance(content, str) else content
    return list(elements(InSteps(raw, step), ARRAYS))


def values(content: str | bytes, step: int = 1 << 20) -> list[Any]:
    return [each.value for each in read(content, step)]


@pytest.mark.parametrize("step", [1, 2, 7, 1 << 20])
@pytest.mark.parametrize("indent", [None, 0, 2])
def test_an_array_gives_its_values_alone_or_in_an_object(step: int, indent: int | None) -> None:
    assert values(json.dumps(RECORDS, indent=indent), step) == RECORDS
    whole = {"count": 7, "about": {"results": [9]}, "results": RECORDS, "relations": [{"a": "b"}], "next": 1}
    found = read(json.dumps(whole, indent=indent), step)
    assert [(each.name, each.value) for each in found] == [
        *(("results", record) for record in RECORDS),
        ("relations", {"a": "b"}),
    ]


@pytest.mark.parametrize("step", [1, 3, 1 << 20])
def test_lines_give_an_object_each_and_a_broken_one_is_told_alone(step: int) -> None:
    lines = ['{"id": 1}', "", '{"id": 2, "text": "cut', '{"results": [{"id": 3}]}', '  {"id": 4}']
    found = read("\n".join(lines), step)
    assert [each.value for each in found] == [{"id": 1}, None, {"id": 3}, {"id": 4}]
    assert [each.problem is None for each in found] == [True, False, True, True]


@pytest.mark.parametrize("step", [1, 3, 1 << 20])
@pytest.mark.parametrize("broken", ["null", "7", "<html>", '{"id": 2, "text": "cut\r\n\r', f'{{"id": {"9" * 5_000}}}'])
@pytest.mark.shows("issue6-6-large")
def test_a_line_that_is_no_object_takes_no_other_with_it(step: int, broken: str) -> None:
    found = read(f'{{"id": 1}}\n{broken}\n{{"id": 3}}', step)
    assert [each.value for each in found] == [{"id": 1}, None, {"id": 3}]
    assert found[1].problem is not None


@pytest.mark.parametrize("step", [1, 1 << 20])
def test_an_object_of_many_lines_is_one_record(step: int) -> None:
    record = {"id": 1, "results": 7, "inner": {"a": [1, 2]}}
    assert values(json.dumps(record, indent=1), step) == [record]
    assert values(json.dumps(record) + json.dumps(record, indent=1), step) == [record, record]


@pytest.mark.parametrize(
    ("content", "before", "problem"),
    [
        ('[{"id": 1}, {"id": 2}, {"id"', 2, "ends in the middle"),
        ('[{"id": 1}, {"id" 2}, {"id": 3}, {"id": 4}, {"id": 5}, {"id": 6}]', 1, "is not JSON"),
        ('[{"id": 1} {"id": 2}]', 1, "is not JSON"),
        ('{"results": [{"id": 1}, {"id": 2}', 2, "ends in the middle"),
        ('{"results": [{"id": 1}], 7: 8}', 1, "is not JSON"),
        ("[1] hello", 1, "is not JSON"),
        ("hello", 0, "is not JSON"),
        (b'[1, 2, "\xff"]', 0, "is not UTF-8"),
        ("[" * 100_000, 0, "is nested too deeply"),
        (f"[1, {'9' * 5_000}, 2]", 1, "too many digits"),
    ],
)
def test_what_stands_before_the_break_is_read(content: str | bytes, before: int, problem: str) -> None:
    raw = content.encode() if isinstance(content, str) else content
    found: list[Element] = []
    with pytest.raises(BadJson, match=problem):
        found.extend(elements(io.BytesIO(raw), ARRAYS))
        raise AssertionError("it was read")
    stream, count = elements(io.BytesIO(raw), ARRAYS), 0
    with pytest.raises(BadJson):
        for _ in stream:
            count += 1
    assert count == before


def test_what_python_writes_beyond_json_and_a_byte_order_mark_are_read() -> None:
    assert values(b"\xef\xbb\xbf[NaN, Infinity, 1]") == [None, None, 1]
    assert values('{"id": NaN}') == [{"id": None}]


@pytest.mark.shows("issue6-6-large")
def test_a_record_larger_than_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_files, "MAX_RECORD_CHARS", 1_000)
    monkeypatch.setattr(export_files, "CHUNK_BYTES", 100)
    assert len(values(json.dumps(["x" * 500] * 20), 100)) == 20
    with pytest.raises(BadJson, match="more than 1000 characters"):
        read(json.dumps(["x" * 5_000]), 100)


def test_nothing_is_in_an_empty_file() -> None:
    assert [values(each) for each in ("", " \n", "[]", '{"results": []}')] == [[], [], [], []]


LEAVES = st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
ANY = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(records=st.lists(ANY), step=st.integers(1, 40), ascii_only=st.booleans())
@pytest.mark.shows("issue6-6-large")
def test_any_array_comes_back_however_it_is_cut(records: list[Any], step: int, ascii_only: bool) -> None:
    raw = json.dumps(records, ensure_ascii=ascii_only).encode()
    assert values(raw, step) == records
