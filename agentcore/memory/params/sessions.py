"""Params and results of the methods about sessions: the contract. Unknown fields raise an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from pydantic import BeforeValidator, Field, SerializeAsAny, WithJsonSchema, WrapValidator, model_validator

from agentcore.limits import MAX_BATCH_ITEMS, MAX_SUMMARY_TOKENS, MAX_TEXT_CHARS
from agentcore.memory.models import (
    FilledText,
    Flag,
    Identifier,
    Labels,
    Metadata,
    Moment,
    Receipt,
    Share,
    Strict,
    TtlSeconds,
)
from agentcore.memory.params.memories import Filters, RefusedItem, StoreResult, each_alone

# Default importance by role; other roles have that of any memory.
ROLE_IMPORTANCE: Mapping[str, float] = {"assistant": 0.4, "agent": 0.4, "system": 0.3, "tool": 0.3}

SummaryTokens = Annotated[int, Field(strict=True, ge=10, le=MAX_SUMMARY_TOKENS)]
NOTHING_SAID = "it has no text: what only calls a tool or shows something is not stored"
# Content of OpenAI messages: a text, a list of parts, or null.
_CONTENT_SCHEMA = {
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS},
        {"type": "array", "items": {"type": "object"}},
        {"type": "null"},
    ]
}
NotKept = Annotated[Any, Field(exclude=True)]


def _said(content: Any) -> Any:
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return content
    texts = [part["text"] for part in content if isinstance(part.get("text"), str)]
    return "\n".join(texts) or None


class Message(Strict):
    """One message of a conversation, also in the format of OpenAI's chat completions."""

    content: Annotated[FilledText, BeforeValidator(_said), WithJsonSchema(_CONTENT_SCHEMA)] = Field(
        description="The text of the message, or a list of OpenAI content parts, of which the texts are "
        "stored. A message with null or without text is skipped."
    )
    role: Identifier = Field(
        "user", description="user, assistant, agent, system, tool ...; the speaker if `name` is absent."
    )
    name: Identifier | None = Field(None, description="Name of the speaker.")
    timestamp: Moment | None = Field(None, description="When it was said; now if absent.")
    message_id: Identifier | None = Field(
        None, description="The caller's own id; a message with a known id is not stored again."
    )
    importance: Share | None = Field(
        None, description="Default by role: assistant and agent 0.4, system and tool 0.3, others 0.5."
    )
    metadata: Metadata = Field(default_factory=dict)
    compacted_until: Moment | None = Field(
        None,
        description="Marks the message as the caller's own summary of the session up to this time. It is "
        "stored as a session summary in the semantic layer.",
    )
    compacted_from: Moment | None = Field(
        None, description="Start of the summarized part, with `compacted_until`; absent: the session's start."
    )

    tool_calls: NotKept = Field(None, description="Accepted for OpenAI's format; not stored.")
    tool_call_id: NotKept = Field(None, description="Accepted for OpenAI's format; not stored.")
    function_call: NotKept = Field(None, description="Accepted for OpenAI's format; not stored.")
    refusal: NotKept = Field(None, description="Accepted for OpenAI's format; not stored.")
    annotations: NotKept = Field(None, description="Accepted for OpenAI's format; not stored.")
    audio: NotKept = Field(None, description="Accepted for OpenAI's format; not stored.")

    @model_validator(mode="after")
    def _compacts_something(self) -> Message:
        if self.compacted_from is not None and (
            self.compacted_until is None or self.compacted_until < self.compacted_from
        ):
            raise ValueError("compacted_from requires a compacted_until that is not earlier")
        return self


class RefusedMessage(RefusedItem, Message):
    """A message with invalid values or without text."""

    content: str = ""


def _refused(problem: str, given: Any) -> RefusedMessage:
    says_nothing = isinstance(given, dict) and "content" in given and _said(given["content"]) is None
    return RefusedMessage(problem=NOTHING_SAID if says_nothing else problem, given=given, is_wrong=not says_nothing)


class AddSessionParams(Strict):
    """Messages to add to a session: one memory each."""

    session_id: Identifier
    messages: Annotated[
        list[Annotated[SerializeAsAny[Message], WrapValidator(each_alone(_refused))]],
        Field(min_length=1, max_length=MAX_BATCH_ITEMS, fail_fast=True),
    ]
    user_id: Identifier | None = None
    namespace: Identifier | None = None
    task_id: Identifier | None = None
    tags: Labels = Field(default_factory=list)
    ttl_seconds: TtlSeconds | None = Field(
        None, description="Seconds until they expire; null: never. Absent: the default of the episodic layer."
    )
    keep_reasoning: Flag = Field(False, description="As for memory.store, for each message.")
    force: Flag = Field(False, description="Also store greetings, small talk and duplicates.")


class AddSessionResult(Strict):
    success: bool = Field(
        description="False if a message is invalid. Messages without content worth storing are skipped."
    )
    session_id: str
    stored_count: int
    results: list[StoreResult] = Field(description="One result for each message, in order.")
    receipt: Receipt


class EndSessionParams(Strict):
    """The session that has ended, and whether to summarize it."""

    session_id: Identifier
    summarize: Flag = Field(
        True,
        description="Store summaries of the messages not summarized yet, in the semantic layer, with links "
        "to their sources.",
    )
    max_tokens: SummaryTokens = Field(200, description="Maximum of each summary, if the summary rules set none.")


class EndSessionResult(Strict):
    success: bool
    session_id: str
    promoted_count: int = Field(
        description="Working memories moved to the episodic layer: current, and important or used."
    )
    ended_count: int = Field(
        description="Working memories that ended with the session, including superseded ones. Those remain "
        "readable if the memory that superseded them does."
    )
    summary_id: UUID | None = Field(
        description="Id of the last summary; null without text to summarize, or if the summary is pending."
    )
    summary_ids: list[UUID] = Field(
        default_factory=list,
        description="Ids of the summaries made by this call, in order; a long session has several. Without a "
        "new one: the last existing summary.",
    )
    summary: str = Field(description="Text of these summaries.")
    summary_pending: bool = Field(
        False, description="A language model will summarize in the background; `summary` is not stored."
    )
    receipt: Receipt


class SummarizeParams(Filters):
    """Filters of the memories to summarize, and the token limit."""

    max_tokens: SummaryTokens = 300

    @model_validator(mode="after")
    def _says_which(self) -> SummarizeParams:
        if not self.conditions():
            raise ValueError("pass at least one filter, such as session_id")
        return self


class SummarizeResult(Strict):
    summary: str = Field(description="Sentences of the memories, in chronological order.")
    token_count: int
    memory_ids: list[UUID] = Field(description="The memories quoted in it.")
    memory_count: int = Field(description="Memories read: the newest 1,000, and the summaries of older ones.")
    receipt: Receipt


class ClearParams(Strict):
    """Selects the memories to delete permanently: of a session, of a user, or all."""

    session_id: Identifier | None = None
    user_id: Identifier | None = None
    all: Flag = False
    confirm: Flag = Field(False, description="Required with `all`.")

    @model_validator(mode="after")
    def _says_what(self) -> ClearParams:
        if sum((self.session_id is not None, self.user_id is not None, self.all)) != 1:
            raise ValueError("pass either session_id, or user_id, or all: true")
        if self.all and not self.confirm:
            raise ValueError("clearing all requires confirm: true")
        return self


class ClearResult(Strict):
    cleared_count: int
    reinstated_count: int = Field(0, description="As for memory.delete.")
    complete: bool = Field(True, description="False: the call reached its time limit; repeat it to continue.")
    receipt: Receipt
