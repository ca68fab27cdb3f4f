"""The scope of tools and turns within a memory, and the settings of turns."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from agentcore.limits import MAX_CONTEXT_TOKENS
from agentcore.memory.models import Flag, Identifier, Labels, MemoryRecord, Share, Strict

# Namespace of session memory, whose messages have no user.
SESSION_MESSAGES = "session_messages"


class MemoryScope(Strict):
    """Limits tools and turns to a part of the agent's memory; the model can neither widen nor set it.

    Reads are filtered by `user_id` and `namespace`; stores carry all four.
    """

    user_id: Identifier | None = None
    namespace: Identifier | None = None
    session_id: Identifier | None = None
    task_id: Identifier | None = None

    def filters(self) -> dict[str, Any]:
        """Returns the filters of a search."""
        return self.model_dump(include={"user_id", "namespace"}, exclude_none=True)

    def labels(self) -> dict[str, Any]:
        """Returns the labels of a store."""
        return self.model_dump(exclude_none=True)

    def holds(self, record: MemoryRecord) -> bool:
        """Whether the memory is within the scope."""
        return all(getattr(record, name) == value for name, value in self.filters().items())


class AgentSettings(Strict):
    """How one agent uses its memory."""

    recall: Flag = Field(True, description="Look into memory before a query is processed.")
    remember: Flag = Field(True, description="Store the interaction after it was.")
    remember_errors: Flag = Field(True, description="Store a query whose processing failed, with its error.")
    whole_errors: Flag = Field(
        False, description="Keep an error's words whole: else without what looks like a key or a password."
    )
    template: dict[str, str] | None = Field(
        None, description="The fields of a working template, each with what belongs in it."
    )
    scope: MemoryScope = Field(default_factory=MemoryScope, description="Whose memory within the agent's.")
    max_tokens: Annotated[int, Field(ge=1, le=MAX_CONTEXT_TOKENS)] = Field(2_000, description="Of a context.")
    importance: Share | None = Field(None, description="Of what is stored; 0.5 if absent.")
    tags: Labels = Field(default_factory=list, description="On what is stored.")
    timeout_seconds: Annotated[float, Field(gt=0)] = Field(
        10.0, description="How long memory that does not answer may hold a turn up in all; one use half."
    )
