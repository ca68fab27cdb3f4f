"""Types of session memory: messages, options, results."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, model_validator

from agentcore.errors import InvalidParams
from agentcore.limits import MAX_K, MAX_PAGE
from agentcore.memory.keys import encode_segment
from agentcore.memory.models import DEFAULT_IMPORTANCE, FilledText, Identifier, Labels, Metadata, Moment, Share, Strict
from agentcore.memory.params.memories import Query
from agentcore.memory.params.sessions import ROLE_IMPORTANCE

DEFAULT_LIMIT = 10
MAX_LIMIT = MAX_PAGE
MAX_SEARCHED = MAX_K
MAX_SUMMARY_CHARS = 100_000
MAX_SESSION_ID_CHARS = 1_024
DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE = 50, 200

# Role of quoted text of session memory: not a speaker's turn, and never an instruction. Callers pass it to a
# model as data, in the user's turn or in a tool's answer.
QUOTED_ROLE = "memory"

Capability = Literal[
    "basic_retrieval", "semantic_search", "summarization", "persistence", "ttl", "importance_weighting", "time_travel"
]
CAPABILITIES: tuple[Capability, ...] = get_args(Capability)
SummaryStyle = Literal["brief", "detailed"]


class SessionMessage(Strict):
    """One message; a stored one has an id, a timestamp and an importance."""

    content: FilledText
    role: Identifier = Field("user", description="user, assistant, agent, system, tool ...")
    name: Identifier | None = Field(None, description="Who speaks.")
    timestamp: Moment | None = Field(None, description="When it was said; when it is stored if absent.")
    message_id: Identifier | None = Field(
        None, description="Stored again under the same id, it is there once, as it was first."
    )
    importance: Share | None = Field(
        None, description="Absent: by role: assistant and agent 0.4, system and tool 0.3, others 0.5."
    )
    tags: Labels = Field(default_factory=list)
    metadata: Metadata = Field(default_factory=dict)


class TimeRange(Strict):
    """Half-open interval; one end may be absent."""

    start: Moment | None = None
    end: Moment | None = None

    @model_validator(mode="after")
    def _has_sense(self) -> TimeRange:
        if self.start is None and self.end is None:
            raise ValueError("give start, end or both")
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError("start must lie before end")
        return self


class RetrieveOptions(Strict):
    """Filters of messages: all given must match; of the tags any."""

    query: Query | None = Field(None, description="What they are about; absent: the newest.")
    limit: Annotated[int, Field(strict=True, ge=1, le=MAX_LIMIT)] = Field(
        DEFAULT_LIMIT, description=f"At most; with a query {MAX_SEARCHED} is the most."
    )
    time_range: TimeRange | None = None
    importance_threshold: Share | None = Field(None, description="At least so important.")
    tags: Labels = Field(default_factory=list, description="Any of them.")

    @model_validator(mode="after")
    def _can_be_searched(self) -> RetrieveOptions:
        if self.query is not None and self.limit > MAX_SEARCHED:
            raise ValueError(f"limit is at most {MAX_SEARCHED} with a query")
        return self

    def asking(self, query: str) -> RetrieveOptions:
        """Returns these options with another query. Raises ValidationError."""
        return RetrieveOptions.model_validate({**dict(self), "query": query})


class SummarizeOptions(Strict):
    max_length: Annotated[int, Field(strict=True, ge=1, le=MAX_SUMMARY_CHARS)] | None = Field(
        None, description="In characters; 400 brief, 2,000 detailed if absent."
    )
    style: SummaryStyle = Field("brief", description="detailed names who said it.")


class ScoredMessage(Strict):
    """A hit and its score, 0 to 1; scores of different memories are not comparable."""

    message: SessionMessage
    score: float


class SessionSummary(Strict):
    """An extractive summary of a session; empty if the session is empty."""

    role: str = QUOTED_ROLE
    content: str
    message_count: int | None = Field(
        description="How many were read: of more than 1,000 the newest; null where that is not known."
    )
    style: SummaryStyle


class SessionListing(Strict):
    session_id: str
    message_count: int
    newest: Moment = Field(description="When its newest message was said.")


class MemoryUsage(Strict):
    messages: int = Field(description="Each once, in however many tiers it is.")
    sessions: int | None = Field(description="null where that is not known.")
    limits: dict[str, int] = Field(description="0 means unlimited.")
    tiers: dict[str, MemoryUsage] = Field(
        default_factory=dict, description="Each tier by itself: what is in two of them counts in both."
    )


def completed(message: SessionMessage, metadata: Mapping[str, Any] | None, *, now: datetime) -> SessionMessage:
    """Returns the message with all defaults filled in."""
    beside = dict(metadata or {})
    importance = beside.pop("importance", message.importance)
    tags = beside.pop("tags", message.tags)
    if importance is None:
        importance = ROLE_IMPORTANCE.get(message.role.casefold(), DEFAULT_IMPORTANCE)
    return SessionMessage.model_validate(
        {
            **dict(message),
            "importance": importance,
            "tags": tags,
            "timestamp": message.timestamp or now,
            "message_id": message.message_id or uuid.uuid4().hex,
            "metadata": {**message.metadata, **beside},
        }
    )


def checked_session_id(session_id: str) -> str:
    """Returns the session id. Raises InvalidParams if it is invalid."""
    if not 1 <= len(session_id) <= MAX_SESSION_ID_CHARS:
        raise InvalidParams(f"session_id: needs 1 to {MAX_SESSION_ID_CHARS} characters")
    try:
        session_id.encode()
    except UnicodeEncodeError as cause:
        raise InvalidParams("session_id: holds half of a surrogate pair, which is no character") from cause
    return session_id


def session_key(session_id: str) -> str:
    """Returns the session id as a unique segment of a key. Raises InvalidParams."""
    return encode_segment(checked_session_id(session_id))
