"""Converts queries, answers, actions and errors of an agent into storable form. Pure."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agentcore.limits import MAX_QUERY_CHARS, MAX_TEXT_CHARS
from agentcore.memory.encoding import interaction_text
from agentcore.memory.models import Interaction, JsonValue


def holdable(text: str, most_chars: int = MAX_TEXT_CHARS) -> str:
    return text.replace("\x00", " ").encode(errors="replace").decode()[:most_chars]


def searchable(text: str) -> str:
    """Returns the text as a valid query, stripped and truncated; may be empty."""
    return holdable(text).strip()[:MAX_QUERY_CHARS]


MOST_RECORDED_CHARS = 16_384
MOST_ACTIONS = 256
MOST_ACTIONS_CHARS = 131_072
MOST_VALUES, DEEPEST = 2_048, 16
LARGEST_INTEGER = 2**63
CUT = " [...]"

_JSON = TypeAdapter[Any](JsonValue)


def interaction_of(query: str, response: Any, actions: Sequence[Any], outcome: Any) -> tuple[Interaction, int]:
    """Returns the interaction, truncated to fit one memory, and the number of omitted actions."""
    kept, left_out = recordable_actions(actions)
    ended = recordable(outcome)
    asked, answer = holdable(query), None if response is None else said(response)
    room = MAX_TEXT_CHARS - len(interaction_text("q", "r", kept, ended))
    asked = asked[: max(room // 2, room - len(answer or ""))]
    if answer is not None:
        answer = answer[: room - len(asked)]
    return Interaction(query=asked, response=answer, actions=kept, outcome=ended), left_out


def recordable(value: Any) -> Any:
    """Returns the value as JSON, or as text without a JSON form or if too large."""
    values = itertools.count()
    plain = _plain(value, DEEPEST, values)
    written = json.dumps(plain, ensure_ascii=False)
    try:
        if len(written) <= MOST_RECORDED_CHARS and next(values) <= MOST_VALUES:
            return _JSON.validate_python(plain)
    except ValidationError:
        pass
    written = plain if isinstance(plain, str) else written
    return written[: MOST_RECORDED_CHARS - len(CUT)] + CUT


def recordable_actions(actions: Sequence[Any]) -> tuple[list[Any], int]:
    """Returns the first actions that fit in one interaction, and the number omitted."""
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
    kept = kept[: MOST_ACTIONS - 1]
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
    """Returns the value as text, or its type if `str` fails."""
    text = f"({type(value).__name__})"
    with suppress(Exception):  # a foreign object may raise anything; a turn is not lost for it
        text = holdable(str(value))
    return text


MOST_ERROR_CHARS = 500
HIDDEN = "(hidden)"

# Keeps host and path of a URL: user info and query may contain keys. A password may contain any character
# except blanks and quotation marks, so the user info ends at the last @ before those.
_ADDRESS = re.compile(
    r"""\b([a-z][a-z0-9+.-]{0,30}://)([^\s/:@'"]{0,999}:(?!\d+/)[^\s'"]{0,999}@|[^\s/@'"]{0,999}@)?([^\s?\#'"<>]*)([?\#][^\s'"<>]*)?""",
    re.I,
)
_BEARER = re.compile(r"\b(bearer|basic)\s+[\w+/=.~-]+", re.I)
_QUOTED = r"""\\*"[^"]*(?:"|$)|\\*'[^']*(?:'|$)"""
_NAMED = re.compile(
    r"""((?:key|token|secret|pass(?:word|wd|phrase)?|pwd|authorization|credentials?|signature|cookie)s?
    (?:\s+(?:provided|given|supplied|sent|received|used|value))?
    (?:\\*['"])?\s*(?:[:=]|\bis\b)\s*)(?:"""
    + _QUOTED
    + r"""|[^\s,;&)]+)""",
    re.I | re.X,
)
# Without a separator between name and value: matches quoted values and values with a digit.
_BESIDE = re.compile(
    r"""((?:\bpass(?:word|wd|phrase)?|\bpwd|secret|token|(?:api|access|private)[ _-]?key)\s+)
    (?:"""
    + _QUOTED
    + r"""|(?=[^\s,;&)]*\d)[^\s,;&)]+)""",
    re.I | re.X,
)
# Prefixes of common issuers of keys.
_MARKED = re.compile(r"\b(?:sk|pk|rk|gh[pousr]|github_pat|xox[abeprs]|glpat|hf)[-_][\w-]{4,}|\bAKIA\w{8,}")
# Letters and digits without a space, too long for a word; absolute file paths are excluded.
_OPAQUE = re.compile(r"(?<![\w+/=.-])(?!/)(?=[\w+/=.-]*[a-z])(?=[\w+/=.-]*\d)[\w+/=.-]{20,}", re.I)
# The same within a URL, between slashes and colons.
_OPAQUE_SEGMENT = re.compile(r"(?<=[/:])(?=[\w+=.~-]*[a-z])(?=[\w+=.~-]*\d)[\w+=.~-]{20,}(?=[/:]|$)", re.I)


def error_words(error: BaseException, *, whole: bool = False) -> str:
    """Returns the outcome of a failed turn, truncated, and redacted unless `whole`."""
    words = said(error)[:MOST_RECORDED_CHARS]
    return f"failed: {type(error).__name__}: {words if whole else discreet(words)}"[:MOST_ERROR_CHARS]


def discreet(text: str) -> str:
    text = _ADDRESS.sub(_address, text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    text = _NAMED.sub(rf"\1{HIDDEN}", text)
    text = _MARKED.sub(HIDDEN, _BESIDE.sub(rf"\1{HIDDEN}", text))
    words = (word if "://" in word else _OPAQUE.sub(HIDDEN, word) for word in re.split(r"(\s+)", text))
    return "".join(words)


def _address(found: re.Match[str]) -> str:
    scheme, signs_in, where, asked = found.groups()
    host, slash, path = where.partition("/")
    shown = _OPAQUE_SEGMENT.sub(HIDDEN, slash + path)
    return f"{scheme}{f'{HIDDEN}@' if signs_in else ''}{host}{shown}{f'?{HIDDEN}' if asked else ''}"
