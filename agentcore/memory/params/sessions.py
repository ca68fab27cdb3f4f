"""Params and results of the methods about sessions: the contract. Unknown fields raise an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from pydantic import (
    BeforeValidator,
    Field,
    SerializeAsAny,
    WithJsonSchema,
    WrapValidator,
    model_validator,
)

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
_CONTENT_SCHEMA = {"anyOf": [
    {"type": "string", "minLength": 1, "maxLength": MAX_TEXT_CHARS},
    {"type": "array", "items": {"type": "object"}},
    {"type": "null"},
]}
NotKept = Annotated[Any, Field(exclude=True)]


def _said(content: Any) -> Any:
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        return content
    texts = [part["text"] for part in content if isinstance(part.get("text"), str)]
    return "\n".join(texts) or None


class Message(Strict):
    """One message of a conversation, also in the format of OpenAI's chat completions."""

    content: Annotated[FilledText, BeforeValidator(_said), WithJsonSchema(_CONTENT_SCHEMA)] = Field(
        description="What was said: a text, or OpenAI's parts, of which the texts are kept. With null, or "
        "without a text, the message is passed over."
    )
    role: Identifier = Field(
        "user", description="user, assistant, agent, system, tool ...: the speaker, unless `name` says who."
    )
    name: Identifier | None = Field(None, description="Who speaks.")
    timestamp: Moment | None = Field(None, description="When it was said; now if absent.")
    message_id: Identifier | None = Field(
        None, description="The caller's own id: added again, the message is not stored twice."
    )
    importance: Share | None = Field(
        None, description="Absent: by role: assistant and agent 0.4, system and tool 0.3, others 0.5."
    )
    metadata: Metadata = Field(default_factory=dict)
    compacted_until: Moment | None = Field(
        None,
        description="The message is your own summary of what was said up to then: it is kept as a summary of "
        "the session, in the semantic layer.",
    )
    compacted_from: Moment | None = Field(
        None, description="Where that begins; absent: with the session. Only with `compacted_until`."
    )

    tool_calls: NotKept = Field(None, description="As OpenAI's messages have it: taken, and not kept.")
    tool_call_id: NotKept = Field(None, description="The same.")
    function_call: NotKept = Field(None, description="The same.")
    refusal: NotKept = Field(None, description="The same.")
    annotations: NotKept = Field(None, description="The same.")
    audio: NotKept = Field(None, description="The same.")

    @model_validator(mode="after")
    def _compacts_something(self) -> Message:
        if self.compacted_from is not None and (
            self.compacted_until is None or self.compacted_until < self.compacted_from
        ):
            raise ValueError("compacted_from needs a compacted_until that is no earlier")
        return self


class RefusedMessage(RefusedItem, Message):
    """A message with invalid values or without text."""

    content: str = ""


def _refused(problem: str, given: Any) -> RefusedMessage:
    says_nothing = isinstance(given, dict) and "content" in given and _said(given["content"]) is None
    return RefusedMessage(
        problem=NOTHING_SAID if says_nothing else problem, given=given, is_wrong=not says_nothing)


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
        None, description="Seconds until they expire; null: never. Absent: as the episodic layer has it."
    )
    keep_reasoning: Flag = Field(False, description="As for memory.store, of each message.")
    force: Flag = Field(False, description="Store greetings and the like, too, and the same words again.")


class AddSessionResult(Strict):
    success: bool = Field(
        description="False where a message could not be stored; one merely not worth storing is passed over."
    )
    session_id: str
    stored_count: int
    results: list[StoreResult] = Field(description="One for each message, in order.")
    receipt: Receipt


class EndSessionParams(Strict):
    """The session that has ended, and whether to summarize it."""

    session_id: Identifier
    summarize: Flag = Field(
        True,
        description="Keep summaries of what was said and no summary tells of, in the semantic layer, tied to "
        "what they are of.",
    )
    max_tokens: SummaryTokens = Field(200, description="Of each summary, where no rules say how many.")


class EndSessionResult(Strict):
    success: bool
    session_id: str
    promoted_count: int = Field(
        description="Working memories that became episodic: they hold, and are important or used."
    )
    ended_count: int = Field(
        description="Working memories that ended with the session, superseded ones among them: those stay "
        "readable where what took their place lasts."
    )
    summary_id: UUID | None = Field(
        description="The last summary's memory; null where there was nothing to say, or a model is to say it."
    )
    summary_ids: list[UUID] = Field(
        default_factory=list,
        description="The summaries' memories in order: a long session gives several. Those made now; where "
        "nothing was to be told, the last there is.",
    )
    summary: str = Field(description="What they say.")
    summary_pending: bool = Field(
        False, description="A model's summary is still to come; `summary` is plain code's, and not kept."
    )
    receipt: Receipt


class SummarizeParams(Filters):
    """Filters of the memories to summarize, and the token limit."""

    max_tokens: SummaryTokens = 300

    @model_validator(mode="after")
    def _says_which(self) -> SummarizeParams:
        if not self.conditions():
            raise ValueError("give at least one filter, such as session_id")
        return self


class SummarizeResult(Strict):
    summary: str = Field(description="Sentences of the memories themselves, in the order of their times.")
    token_count: int
    memory_ids: list[UUID] = Field(description="The memories whose sentences stand in it.")
    memory_count: int = Field(
        description="How many were read: of more than 1,000 the newest, and of older ones their summaries."
    )
    receipt: Receipt


class ClearParams(Strict):
    """Selects the memories to delete permanently: of a session, of a user, or all."""

    session_id: Identifier | None = None
    user_id: Identifier | None = None
    all: Flag = False
    confirm: Flag = Field(False, description="Needed beside `all`.")

    @model_validator(mode="after")
    def _says_what(self) -> ClearParams:
        if sum((self.session_id is not None, self.user_id is not None, self.all)) != 1:
            raise ValueError("give either session_id, or user_id, or all: true")
        if self.all and not self.confirm:
            raise ValueError("clearing all needs confirm: true")
        return self


class ClearResult(Strict):
    cleared_count: int
    reinstated_count: int = Field(0, description="As in a delete's result.")
    complete: bool = Field(True, description="False: the call's time ran out; the same call goes on.")
    receipt: Receipt
