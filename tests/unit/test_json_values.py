"""Conversion of callers' values to stored JSON, and values without a JSON form."""

from __future__ import annotations

import json
from collections import OrderedDict
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some
from pydantic import ValidationError

from agentcore.limits import MAX_METADATA_DEPTH, MAX_METADATA_NODES
from agentcore.memory.models import storable_json
from agentcore.memory.params.memories import StoreParams

TEXTS = some.text(some.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
JSON = some.recursive(
    some.none()
    | some.booleans()
    | some.integers(-(2**64), 2**64)
    | TEXTS
    | some.floats(allow_nan=False, allow_infinity=False),
    lambda inner: some.lists(inner, max_size=4) | some.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


class Mood(StrEnum):
    GOOD = "good"


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@given(JSON)
def test_what_is_json_stays_as_it_is(value: Any) -> None:
    assert storable_json(value) == value


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (datetime(2026, 5, 1, 10, tzinfo=UTC), "2026-05-01T10:00:00Z"),
        (date(2026, 5, 1), "2026-05-01"),
        (UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Decimal("1.20"), "1.20"),
        ((1, 2), [1, 2]),
        (Mood.GOOD, "good"),
        (OrderedDict(a=(1,)), {"a": [1]}),
        (b"abc", "abc"),
        (np.float64(0.5), 0.5),
        ({1: "a"}, {"1": "a"}),
    ],
)
def test_what_has_a_form_in_json_is_stored_in_it(value: Any, stored: Any) -> None:
    read = storable_json({"at": [value]})
    assert read == {"at": [stored]}
    assert json.loads(json.dumps(read)) == read


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (float("nan"), "deep[0].at is nan"),
        (float("-inf"), "deep[0].at is -inf"),
        (object(), "deep[0].at is of type object"),
        (np.arange(2), "deep[0].at is of type ndarray"),
        (b"\xff", "deep[0].at is of type bytes"),
        (1 << 2_000, "deep[0].at is a number of more than"),
        ({1: "a", "1": "b"}, "deep[0].at has the key '1' twice"),
        (Decimal, "deep[0].at is of type"),
    ],
)
@pytest.mark.shows("issue6-1-one-suite")
def test_what_has_none_is_refused_by_its_path(value: Any, problem: str) -> None:
    with pytest.raises(ValidationError) as refused:
        StoreParams(content="a", metadata={"deep": [{"at": value}]})
    [found] = refused.value.errors()
    assert found["loc"] == ("metadata",)
    assert problem in found["msg"]


@pytest.mark.parametrize(
    "value", ["\ud800", "a\x00", {"a\x00": 1}, nested(MAX_METADATA_DEPTH + 1), [0] * (MAX_METADATA_NODES + 1)]
)
def test_what_no_column_holds_is_refused(value: Any) -> None:
    with pytest.raises(ValueError):
        storable_json(value)


def test_as_much_and_as_deep_as_is_allowed_is_taken() -> None:
    assert storable_json([0] * MAX_METADATA_NODES) == [0] * MAX_METADATA_NODES
    assert storable_json(nested(MAX_METADATA_DEPTH)) == nested(MAX_METADATA_DEPTH)


def test_what_holds_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(ValueError, match="nested deeper"):
        storable_json(circle)
