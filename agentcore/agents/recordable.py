"""What an agent was asked, answered and did, as an interaction that memory can hold. Pure."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agentcore.agents.holdable import holdable
from agentcore.limits import MAX_TEXT_CHARS
from agentcore.memory.encoding import interaction_text
from agentcore.memory.models import Interaction, JsonValue

MOST_RECORDED_CHARS = 16_384
MOST_ACTIONS = 256
MOST_ACTIONS_CHARS = 131_072
MOST_VALUES, DEEPEST = 2_048, 16
LARGEST_INTEGER = 2**63
CUT = " [...]"

_JSON = TypeAdapter[Any](JsonValue)


def interaction_of(
    query: str, response: Any, actions: Sequence[Any], outcome: Any
) -> tuple[Interaction, int]:
    """The interaction as one memory holds it, cut where it must be; how many actions are left out.

    An answer that is no text is kept as its text.
    """
    kept, left_out = recordable_actions(actions)
    ended = recordable(outcome)
    asked, answer = holdable(query), None if response is None else said(response)
    room = MAX_TEXT_CHARS - len(interaction_text("q", "r", kept, ended))
    asked = asked[:max(room // 2, room - len(answer or ""))]
    if answer is not None:
        answer = answer[:room - len(asked)]
    return Interaction(query=asked, response=answer, actions=kept, outcome=ended), left_out


def recordable(value: Any) -> Any:
    """The value as JSON: what JSON has no form for as its text, what is too large as the text's beginning."""
    values = itertools.count()
    plain = _plain(value, DEEPEST, values)
    written = json.dumps(plain, ensure_ascii=False)
    try:
        if len(written) <= MOST_RECORDED_CHARS and next(values) <= MOST_VALUES:
            return _JSON.validate_python(plain)
    except ValidationError:
        pass
    written = plain if isinstance(plain, str) else written
    return written[:MOST_RECORDED_CHARS - len(CUT)] + CUT


def recordable_actions(actions: Sequence[Any]) -> tuple[list[Any], int]:
    """As many actions as one interaction holds, the first ones, and how many are left out.

    Where some are, the last one kept says so.
    """
    kept: list[Any] = []
    room = MOST_ACTIONS_CHARS
    for action in actions[:MOST_ACTIONS]:
        kept.append(recordable(action))
        room -= len(json.dumps(kept[-1], ensure_ascii=False))
        if room < 0:
            kept.pop()
            break
    if len(kept) == len(actions):
        return kept, 0
    kept = kept[:MOST_ACTIONS - 1]
    left_out = len(actions) - len(kept)
    return [*kept, f"[{left_out} more actions are not kept]"], left_out


def _plain(value: Any, depth: int, values: Iterator[int]) -> Any:
    if next(values) > MOST_VALUES:
        return CUT.strip()
    match value:
        case None | bool():
            return value
        case str():
            return holdable(value)
        case int() if abs(value) < LARGEST_INTEGER:
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case Mapping() if depth:
            some = itertools.islice(value.items(), MOST_VALUES + 1)
            return {said(name): _plain(each, depth - 1, values) for name, each in some}
        case list() | tuple() | set() | frozenset() if depth:
            return [_plain(each, depth - 1, values) for each in itertools.islice(value, MOST_VALUES + 1)]
    return said(value)


def said(value: Any) -> str:
    """The value as text; its kind where it has none: it raises, is too deep, has too many digits."""
    text = f"({type(value).__name__})"
    with suppress(Exception):  # whatever an object of somebody else's raises, a turn is not lost for it
        text = holdable(str(value))
    return text
