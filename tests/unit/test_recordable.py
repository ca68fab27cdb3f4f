"""Values that an agent notes automatically become storable JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import Enum, IntEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.agents.recordable import (
    CUT,
    MOST_ACTIONS,
    MOST_ACTIONS_CHARS,
    MOST_RECORDED_CHARS,
    interaction_of,
    recordable,
    recordable_actions,
)
from agentcore.limits import MAX_TEXT_CHARS
from agentcore.memory.encoding import interaction_text
from agentcore.memory.models import Interaction


class Seat(str, Enum):  # noqa: UP042 - one that is a str and prints as something else
    WINDOW = "window"


class Row(IntEnum):
    EXIT = 12


class Plane:
    """An object of a library's client."""

    def __str__(self) -> str:
        return "the plane to Lihue"


class Shy:
    """An object whose repr raises."""

    def __str__(self) -> str:
        raise LookupError("it is gone")


def nested(depth: int) -> list[Any]:
    held: list[Any] = []
    for _ in range(depth):
        held = [held]
    return held


def itself() -> list[Any]:
    """Returns a list that contains itself twice."""
    held: list[Any] = []
    held += [held, held]
    return held


@pytest.mark.parametrize(
    ("value", "noted"),
    [
        ("paid", "paid"),
        ({"to": "LIH", "seats": [1, 2.5, None]}, {"to": "LIH", "seats": [1, 2.5, None]}),
        (datetime(2026, 5, 1, tzinfo=UTC), "2026-05-01 00:00:00+00:00"),
        ({"a"}, ["a"]),
        (("a", 1), ["a", 1]),
        (float("nan"), "nan"),
        ([float("-inf")], ["-inf"]),
        (Plane(), "the plane to Lihue"),
        (True, True),
        ({1: {UUID(int=0): 2}}, {"1": {"00000000-0000-0000-0000-000000000000": 2}}),
        ("a\x00b\ud800", "a b?"),
        (["\x00"], [" "]),
        (2**70, "1180591620717411303424"),
        ([10**5_000], ["(int)"]),
        (Shy(), "(Shy)"),
        ([Shy()], ["(Shy)"]),
        ({"to": Shy()}, {"to": "(Shy)"}),
        (Seat.WINDOW, "window"),
        (Row.EXIT, 12),
        (b"raw", "b'raw'"),
    ],
)
def test_what_json_has_no_form_for_is_noted_as_its_text(value: Any, noted: Any) -> None:
    assert recordable(value) == noted
    assert json.loads(json.dumps(recordable(value), allow_nan=False)) == noted


@pytest.mark.parametrize(
    "value", ["x" * 100_000, ["x" * 100] * 1_000, list(range(5_000)), {str(n): [n] for n in range(5_000)}, itself()]
)
def test_what_is_too_large_is_noted_as_its_beginning(value: Any) -> None:
    noted = recordable(value)
    assert isinstance(noted, str)
    assert noted.endswith(CUT)
    assert 10 < len(noted) <= MOST_RECORDED_CHARS


TEXTS = st.text(st.characters())
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.binary() | st.dates(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS | st.integers(), inner),
)


@given(ANYTHING)
def test_an_interaction_takes_whatever_was_noted(value: Any) -> None:
    noted = recordable(value)
    kept = Interaction(query="q", actions=[noted], outcome=noted)
    assert json.loads(kept.model_dump_json())["outcome"] == noted


def test_of_too_many_actions_the_first_are_kept_and_the_last_says_so() -> None:
    actions, left_out = recordable_actions([f"step {n}" for n in range(301)])
    assert len(actions) == MOST_ACTIONS
    assert actions[:2] == ["step 0", "step 1"]
    assert (actions[-1], left_out) == ("[46 more actions are not kept]", 46)
    assert recordable_actions(["step"] * MOST_ACTIONS) == (["step"] * MOST_ACTIONS, 0)


def test_of_too_long_actions_as_many_are_kept_as_have_room() -> None:
    actions, left_out = recordable_actions(["y" * 16_000] * 20)
    assert left_out == 20 - (len(actions) - 1)
    assert 0.8 * MOST_ACTIONS_CHARS < sum(map(len, actions)) <= MOST_ACTIONS_CHARS


@pytest.mark.parametrize(("asked", "answered"), [(10, 400_000), (400_000, 10), (400_000, 400_000), (200_000, 0)])
def test_the_texts_are_cut_to_what_one_memory_holds_beside_the_rest(asked: int, answered: int) -> None:
    kept, _ = interaction_of("q" * asked, "r" * answered, ["y" * 16_000] * 20, {"ended": "z" * 30_000})
    text = interaction_text(kept.query, kept.response, kept.actions, kept.outcome)
    assert len(text) <= MAX_TEXT_CHARS
    assert len(kept.query or "") >= min(asked, 50_000)
    assert len(kept.response or "") >= min(answered, 50_000)


def test_an_answer_that_is_no_text_is_kept_as_its_text() -> None:
    kept, _ = interaction_of("Which plane?", Plane(), [], None)
    assert kept.response == "the plane to Lihue"
    assert interaction_of("Which plane?", None, [], None)[0].response is None


def test_what_is_nested_however_deep_is_noted() -> None:
    assert "(list)" in json.dumps(recordable(nested(50_000)))
    interaction, left_out = interaction_of("q", Shy(), [Shy(), nested(50_000)], Shy())
    assert (interaction.response, interaction.outcome, left_out) == ("(Shy)", "(Shy)", 0)
