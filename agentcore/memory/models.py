"""Core models: records, interactions and the value types of their fields. Validation only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from enum import StrEnum
from itertools import count
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticSerializationError, to_jsonable_python

from agentcore.limits import (
    MAX_EMBEDDING_DIMENSIONS,
    MAX_ID_CHARS,
    MAX_LABELS,
    MAX_METADATA_DEPTH,
    MAX_METADATA_NODES,
    MAX_TEXT_CHARS,
)

JsonObject = dict[str, Any]
# A longer integer cannot be converted to decimal by Python.
MAX_NUMBER_BITS = 1_024
SHOWN_PATH_CHARS = 80


def without_nul(text: str) -> str:
    """Returns the text. Raises ValueError for a NUL, which text columns cannot store."""
    if "\x00" in text:
        raise ValueError("contains a NUL character")
    return text


def storable_json(value: Any) -> Any:
    """Converts a value to JSON types.

    Raises ValueError, with the path, for values without a JSON form: NaN, infinities, other objects.
    """
    return _converted(value, "", 0, count())


def _converted(value: Any, path: str, depth: int, counter: Iterator[int]) -> Any:
    if next(counter) > MAX_METADATA_NODES:
        raise ValueError(f"contains more than {MAX_METADATA_NODES} values")
    if depth > MAX_METADATA_DEPTH:
        raise ValueError(f"{_at(path)}is nested deeper than {MAX_METADATA_DEPTH} levels")
    kind = type(value)
    if kind is dict:
        return _converted_object(value, path, depth, counter)
    if kind is list:
        return [_converted(each, f"{path}[{index}]", depth + 1, counter) for index, each in enumerate(value)]
    return _leaf(value, path) if kind in _LEAVES else _converted(_plain(value, path), path, depth + 1, counter)


def _converted_object(value: dict[Any, Any], path: str, depth: int, counter: Iterator[int]) -> JsonObject:
    converted: JsonObject = {}
    for key, member in value.items():
        [name] = [key] if type(key) is str else _plain({key: None}, path)
        if _leaf(name, path) in converted:
            raise ValueError(f"{_at(path)}has the key {name[:SHOWN_PATH_CHARS]!r} twice in JSON")
        next(counter)
        converted[name] = _converted(member, f"{path}.{name}" if path else name, depth + 1, counter)
    return converted


_LEAVES = (str, int, float, bool, type(None))


def _leaf(value: Any, path: str) -> Any:
    match value:
        case float() if not math.isfinite(value):
            raise ValueError(f"{_at(path)}is {value}, which JSON cannot represent")
        case int() if value.bit_length() > MAX_NUMBER_BITS:
            raise ValueError(f"{_at(path)}is a number of more than {MAX_NUMBER_BITS} bits")
        case str():
            without_nul(value).encode()  # a lone surrogate raises UnicodeEncodeError, which is a ValueError
    return value


def _plain(value: Any, path: str) -> Any:
    try:
        return to_jsonable_python(value)
    except (PydanticSerializationError, ValueError) as cause:
        kind = type(value).__name__
        raise ValueError(f"{_at(path)}is of type {kind}, which JSON cannot represent") from cause


def _at(path: str) -> str:
    return f"{path[:SHOWN_PATH_CHARS]} " if path else ""


# One year inside the range of datetime, so that a time zone's offset cannot overflow it.
FIRST_YEAR, LAST_YEAR = 2, 9998
# Smallest normal and largest number of IEEE 754 half precision, the type of stored vectors.
HALF_SMALLEST, HALF_LARGEST = 6.1e-5, 65_504.0
DEFAULT_IMPORTANCE = 0.5
SINGLE_SMALLEST = 1.2e-38
# The tag of a fact that a model extracted from its parent memory, and the `form` in its provenance.
FACT_TAG = FACT_FORM = "fact"
SUMMARY_RELATION = "summarises"


class MemoryType(StrEnum):
    """The layer of a memory."""

    WORKING = "working"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


def _printable(text: str) -> str:
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise ValueError("contains control characters")
    return text


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    return text


def _iso_8601(moment: Any) -> Any:
    if isinstance(moment, date):
        return moment
    if isinstance(moment, str) and not moment.isdecimal():
        with suppress(ValueError):
            return datetime.fromisoformat(moment)
    raise ValueError("is not an ISO 8601 date or time, such as 2026-05-01 or 2026-05-01T10:00:00Z")


def _in_utc(moment: datetime) -> datetime:
    if not FIRST_YEAR <= moment.year <= LAST_YEAR:
        raise ValueError(f"is outside the years {FIRST_YEAR} to {LAST_YEAR}")
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _in_single_precision(share: float) -> float:
    """Rounds values to 0 that underflow single precision, which the database rejects."""
    return 0.0 if share < SINGLE_SMALLEST else share


def _at_most_all(amount: Any) -> Any:
    if not isinstance(amount, int | float) or isinstance(amount, bool):
        raise ValueError("is a number: a count such as 500, or a share such as 0.2 for 20 %")
    if isinstance(amount, float) and amount > 1:
        raise ValueError("is a share above 1.0; a count is an integer, such as 500")
    return amount


def _fits_half_precision(vector: list[float]) -> list[float]:
    largest = max(abs(value) for value in vector)
    if not HALF_SMALLEST <= largest <= HALF_LARGEST:
        raise ValueError(f"is zero or too large: its largest value is outside {HALF_SMALLEST} to {HALF_LARGEST}")
    return vector


Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS), AfterValidator(without_nul)]
FilledText = Annotated[
    str, Field(min_length=1, max_length=MAX_TEXT_CHARS), AfterValidator(without_nul), AfterValidator(_not_blank)
]
Identifier = Annotated[str, Field(min_length=1, max_length=MAX_ID_CHARS), AfterValidator(_printable)]
FilterUsers = Annotated[
    Identifier | Annotated[list[Identifier | None], Field(min_length=1, max_length=64)],
    Field(description="A user id, or a list; null in the list selects memories without a user."),
]
Label = Annotated[
    str, Field(min_length=1, max_length=MAX_ID_CHARS), AfterValidator(without_nul), AfterValidator(_not_blank)
]
Labels = Annotated[list[Label], Field(max_length=MAX_LABELS)]
Moment = Annotated[datetime, BeforeValidator(_iso_8601), AfterValidator(_in_utc)]
Flag = Annotated[bool, Field(strict=True)]
Share = Annotated[float, Field(strict=True, ge=0.0, le=1.0, allow_inf_nan=False), AfterValidator(_in_single_precision)]
JsonValue = Annotated[Any, AfterValidator(storable_json)]
Metadata = Annotated[JsonObject, AfterValidator(storable_json)]
Vector = Annotated[
    list[Annotated[float, Field(strict=True, allow_inf_nan=False)]],
    Field(min_length=1, max_length=MAX_EMBEDDING_DIMENSIONS, fail_fast=True),
    AfterValidator(_fits_half_precision),
]
Amount = Annotated[
    Annotated[int, Field(strict=True, gt=0)] | Annotated[float, Field(strict=True, gt=0, le=1, allow_inf_nan=False)],
    BeforeValidator(_at_most_all),
]
MAX_TTL_SECONDS = 100 * 366 * 86_400
TtlSeconds = Annotated[int, Field(strict=True, ge=1, le=MAX_TTL_SECONDS)]


class Strict(BaseModel):
    """A frozen model that rejects unknown fields."""

    # Schemas are built on first use: building all of them doubled the import time of the client.
    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class Interaction(Strict):
    """An exchange with an agent: the query, the response, the actions and their outcome."""

    query: Text | None = Field(None, description="What the user said or asked.")
    response: Text | None = Field(None, description="What the agent answered.")
    actions: Annotated[list[JsonValue], Field(max_length=256)] = Field(
        default_factory=list, description="Actions of the agent, texts or objects, in order."
    )
    outcome: JsonValue = Field(None, description="Result of the actions, a text or an object.")
    interaction_id: Identifier | None = None
    task_id: Identifier | None = None
    session_id: Identifier | None = None
    user_id: Identifier | None = None
    speaker: Identifier | None = None
    timestamp: Moment | None = Field(None, description="When it was said or happened; now if absent.")
    metadata: Metadata = Field(default_factory=dict)

    @model_validator(mode="after")
    def _says_something(self) -> Interaction:
        if self.query is None and self.response is None and not self.actions and self.outcome is None:
            raise ValueError("requires at least one of query, response, actions, outcome")
        return self


# Links a message to an earlier one that it makes outdated, weighted by probability. Reserved for the service.
CHANGES = "probably_changes"
SUPERSEDES, NEAR_DUPLICATE = "supersedes", "near_duplicate_of"
# Record provenance or replacement, not relatedness.
SERVICE_RELATIONS = frozenset({CHANGES, SUPERSEDES, NEAR_DUPLICATE, SUMMARY_RELATION})


class Link(Strict):
    """A typed, weighted link from one memory to another of the same agent."""

    target_id: UUID
    relation: Identifier = "relates_to"
    weight: Share = 1.0

    @field_validator("relation")
    @classmethod
    def _is_not_reserved(cls, relation: str) -> str:
        if relation == CHANGES:
            raise ValueError(f"{CHANGES!r} is reserved for the service")
        return relation


class ActionOutcome(Strict):
    """An action and its outcome."""

    action: str
    outcome: str


class MemoryRecord(Strict):
    """A complete memory: content, derived fields, validity and usage."""

    memory_id: UUID
    memory_type: MemoryType
    content: str
    summary: str
    timestamp: datetime
    interaction_id: str | None = None
    task_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    namespace: str | None = None
    speaker: str | None = None
    external_id: str | None = None
    actions: list[Any] = Field(default_factory=list)
    outcome: Any = None
    action_outcomes: list[ActionOutcome] = Field(default_factory=list)
    response: str | None = Field(
        None, description="The assistant's text with reasoning blocks; only if stored with `keep_reasoning`."
    )
    entities: list[str] = Field(default_factory=list)
    facts: list[str] = Field(default_factory=list)
    keywords: list[str] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    metadata: JsonObject = Field(default_factory=dict)
    relevance_score: float = 0.5
    pinned: bool = False
    flagged: bool = Field(False, description="It matches a pattern of injected instructions.")
    expires_at: datetime | None = None
    event_from: datetime | None = Field(
        None, description="Start of the time that the text mentions; null if it mentions none."
    )
    event_to: datetime | None = Field(None, description="End of that time, exclusive.")
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    superseded_by: UUID | None = None
    parent_memory_id: UUID | None = None
    related_memory_ids: list[UUID] = Field(default_factory=list, description="Linked in either direction.")
    links: list[Link] = Field(default_factory=list, description="Links from this memory to others.")
    access_count: int = 0
    last_accessed: datetime | None = None
    provenance: JsonObject = Field(default_factory=dict)
    embedding_model: str | None = None
    embedding: list[float] | None = Field(
        None, description="The vector passed by the caller; only from memory.list with `vectors`."
    )
    content_hash: str = ""
    version: int = 1
    created_at: datetime
    updated_at: datetime


# Weights of the ranking that one search may replace.
WeightName = Literal[
    "similarity", "words", "session", "neighbours", "speaker", "time", "recency", "frequency", "importance", "links"
]


class ScoreTerm(Strict):
    """One term of a score: `contribution` = `weight` x `value`.

    For `reranker`, `value` is its relevance, and `contribution` the change of the score by the new order.
    """

    value: float
    weight: float
    contribution: float


class MemorySummary(Strict):
    """A memory as a search returns it."""

    memory_id: UUID
    memory_type: MemoryType
    content: str
    summary: str
    timestamp: datetime
    score: float | None = Field(None, description="Ranking score, 0 to 1.")
    similarity: float | None = Field(None, description="Cosine similarity; null without a vector.")
    relevance_score: float
    speaker: str | None = None
    task_id: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    namespace: str | None = None
    external_id: str | None = None
    parent_memory_id: UUID | None = None
    entities: list[str] = Field(default_factory=list)
    keywords: list[str] = Field(default_factory=list)
    tags: list[str] = Field(default_factory=list)
    metadata: JsonObject = Field(default_factory=dict)
    flagged: bool = Field(False, description="It matches a pattern of injected instructions.")
    stands_for: list[UUID] = Field(
        default_factory=list, description="Search results omitted as near-duplicates of this memory."
    )
    instead_of: list[UUID] = Field(
        default_factory=list, description="Search results omitted since this newer memory contradicts them."
    )
    outdated_by: UUID | None = Field(
        None, description="A newer search result, ranked above, that probably changes this memory."
    )
    linked_to: UUID | None = Field(None, description="The better search result whose link raised or added this memory.")
    superseded_by: UUID | None = Field(
        None, description="The memory that superseded this one; only from searches that include history."
    )
    valid_from: datetime | None = Field(None, description="Start of validity, if superseded.")
    valid_to: datetime | None = Field(None, description="End of validity, if superseded.")
    terms: dict[str, ScoreTerm] | None = Field(None, description="The parts of the score; with `explain`.")
    retrievers: list[str] | None = Field(
        None, description="The retrievers that found it, with `explain`: vector, lexical, links, temporal, neighbours."
    )
    # Private: it may be large, and only context building uses it.
    _sources: frozenset[UUID] = PrivateAttr(frozenset())

    @property
    def sources(self) -> frozenset[UUID]:
        """The memories that a summary was derived from; empty for other memories and for clients."""
        return self._sources

    def summing_up(self, sources: Iterable[str]) -> Self:
        self._sources = frozenset(map(UUID, sources))
        return self


def time_valid(memory: MemoryRecord | MemorySummary) -> str | None:
    """Returns the dates of validity of a superseded memory; None if it is current."""
    if memory.superseded_by is None:
        return None
    begun = memory.valid_from or memory.timestamp
    ended = "?" if memory.valid_to is None else f"{memory.valid_to:%Y-%m-%d}"
    return f"{begun:%Y-%m-%d} to {ended}"


class Dropped(Strict):
    """Number of omitted memories, and the reason."""

    reason: str
    count: int


class Receipt(Strict):
    """What a call searched, found and dropped, and the duration of each step."""

    searched: JsonObject = Field(default_factory=dict, description="What was searched and how.")
    candidates: dict[str, int] = Field(default_factory=dict, description="Number of candidates by retriever.")
    dropped: list[Dropped] = Field(default_factory=list)
    fit: float | None = Field(None, description="Probability that the query is about stored memories, 0 to 1.")
    degraded: list[str] = Field(
        default_factory=list, description="Unavailable components, and what the service did instead."
    )
    timings_ms: dict[str, float] = Field(default_factory=dict)


StoreStatus = Literal["stored", "existing", "reinforced", "rejected"]
