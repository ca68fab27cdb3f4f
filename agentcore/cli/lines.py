"""The JSONL format of memories, one per line: read by import, written by export. Opens no file."""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, BinaryIO, Never
from uuid import UUID

from pydantic import AliasChoices, ConfigDict, Field, ValidationError

from agentcore.errors import field_path, problem_sentence
from agentcore.memory.encoding import interaction_text
from agentcore.memory.models import (
    FilledText,
    Identifier,
    Interaction,
    JsonValue,
    Labels,
    Link,
    MemoryType,
    Metadata,
    Moment,
    Share,
    Strict,
    TtlSeconds,
    Vector,
)
from agentcore.memory.params.memories import StoreParams

MAX_LINE_BYTES = 4 * 1_048_576


class BadLine(Exception):
    """The message says why the line cannot be imported."""


def _either(*names: str) -> Any:
    return Field(None, validation_alias=AliasChoices(*names))


class Line(Strict):
    """The fields of a line; if a field has two names, export writes the first."""

    # Session ids of other systems may be numbers.
    model_config = ConfigDict(coerce_numbers_to_str=True)

    text: FilledText = Field(validation_alias=AliasChoices("text", "content"))
    role: Identifier | None = None
    speaker: Identifier | None = None
    time: Moment | None = _either("time", "timestamp")
    session: Identifier | None = _either("session", "session_id")
    task: Identifier | None = _either("task", "task_id")
    user: Identifier | None = _either("user", "user_id")
    namespace: Identifier | None = None
    memory_type: MemoryType | None = None
    importance: Share | None = _either("importance", "relevance_score")
    tags: Labels = Field(default_factory=list)
    metadata: Metadata = Field(default_factory=dict)
    external_id: Identifier | None = None
    pinned: bool = False
    ttl_seconds: TtlSeconds | None = None
    expires_at: Moment | None = None
    actions: Annotated[list[JsonValue], Field(max_length=256)] = Field(default_factory=list)
    outcome: JsonValue = None
    interaction_id: Identifier | None = None
    memory_id: UUID | None = None
    parent_memory_id: UUID | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    superseded_by: UUID | None = None
    embedding: Vector | None = None
    links: list[Link] = Field(default_factory=list)
    force: bool = False
    supersede: bool = True


@dataclass(frozen=True)
class NumberedLine:
    """A line, the problem with it, or why it is left out; `end`: the number of bytes read so far.

    `cut_off`: the rest of its file is unreadable.
    """

    number: int
    end: int
    line: Line | None = None
    key: str = ""
    problem: str | None = None
    cut_off: bool = False
    left_out: str | None = None
    place: str = ""


def read_lines(file: BinaryIO, *, hint: Callable[[dict[str, Any]], str] = lambda said: "") -> Iterator[NumberedLine]:
    """Yields the lines of a file, without blank ones; appends the text of `hint` to a line's problem.

    A line's key is a digest of its content and its number of earlier occurrences, so the same lines have the
    same keys in any file. Links are excluded: they may be added later.
    """
    seen: Counter[bytes] = Counter()
    for number, end, raw in _raw_lines(file):
        said: dict[str, Any] = {}
        try:
            said = _parsed(raw)
            digest = _digest(said)
            seen[digest[:8]] += 1
            key = f"import:{digest.hex()}:{seen[digest[:8]]}"
            yield NumberedLine(number, end, Line.model_validate(said), key)
        except ValidationError as error:
            yield NumberedLine(number, end, problem=problem_of(error) + hint(said))
        except BadLine as problem:
            yield NumberedLine(number, end, problem=str(problem))


def store_params(line: Line, key: str, *, now: datetime, ids: Mapping[UUID, UUID]) -> StoreParams:
    """Converts a line to params; `ids` maps old ids to ids of memories imported before. Raises BadLine."""
    interaction = _interaction(line)
    given = {
        "interaction": interaction,
        "content": line.text if interaction is None else None,
        "memory_type": line.memory_type,
        "importance": line.importance,
        "tags": line.tags,
        "namespace": line.namespace,
        "user_id": line.user,
        "session_id": line.session,
        "task_id": line.task,
        "speaker": line.speaker or line.role,
        "timestamp": line.time,
        "ttl_seconds": _ttl_seconds(line, now),
        "pinned": line.pinned,
        "external_id": line.external_id,
        "idempotency_key": key,
        "parent_memory_id": ids.get(line.parent_memory_id) if line.parent_memory_id else None,
        "force": line.force,
        "supersede": None if line.supersede else False,
        "metadata": _metadata(line),
        "embedding": line.embedding,
        "valid_from": line.valid_from,
        "valid_to": line.valid_to,
        "superseded_by": ids.get(line.superseded_by) if line.superseded_by else None,
    }
    return StoreParams.model_validate({name: value for name, value in given.items() if value is not None})


def _raw_lines(file: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    number = end = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        end += len(raw)
        rest = raw
        while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = file.readline(MAX_LINE_BYTES + 1)
            end += len(rest)
        text = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
        if text.strip():
            yield number, end, text


def _parsed(raw: bytes) -> dict[str, Any]:
    if len(raw) > MAX_LINE_BYTES:
        raise BadLine(f"is longer than {MAX_LINE_BYTES} bytes")
    try:
        said = json.loads(raw, parse_constant=_refuse_constant)
    except RecursionError as cause:
        raise BadLine("is nested too deeply") from cause
    except UnicodeDecodeError as cause:
        raise BadLine("is not UTF-8") from cause
    except json.JSONDecodeError as cause:
        raise BadLine(f"is not JSON: {cause.msg} at character {cause.pos + 1}") from cause
    if not isinstance(said, dict):
        raise BadLine("is not a JSON object")
    return said


def _refuse_constant(name: str) -> Never:
    raise BadLine(f"is not JSON: {name} is no number")


def _digest(said: Mapping[str, Any]) -> bytes:
    unlinked = {name: value for name, value in said.items() if name != "links"}
    canonical = json.dumps(unlinked, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).digest()[:20]


def problem_of(error: ValidationError) -> str:
    return "; ".join(_problem(each) for each in error.errors())


def _problem(found: Mapping[str, Any]) -> str:
    where = field_path(found["loc"])
    if found["type"] == "extra_forbidden":
        return f"unknown field {where!r}; what is your own belongs into metadata"
    return f"{where}: {problem_sentence(found)}"


def _ttl_seconds(line: Line, now: datetime) -> int | None:
    if line.expires_at is None:
        return line.ttl_seconds
    left = math.ceil((line.expires_at - now).total_seconds())
    if left < 1 and not line.pinned:
        raise BadLine(f"expired at {line.expires_at.isoformat()}")
    return left if left >= 1 else None


def _interaction(line: Line) -> Interaction | None:
    if not line.actions and line.outcome is None and line.interaction_id is None:
        return None
    done = interaction_text(None, None, line.actions, line.outcome)
    asked = line.text.removesuffix(done).removesuffix("\n") if done else line.text
    if interaction_text(asked, None, line.actions, line.outcome) != line.text:
        return None
    return Interaction(
        query=asked or None, actions=line.actions, outcome=line.outcome, interaction_id=line.interaction_id
    )


def _metadata(line: Line) -> dict[str, Any]:
    told_apart = line.role is not None and line.speaker not in (None, line.role)
    return {"role": line.role, **line.metadata} if told_apart else line.metadata
