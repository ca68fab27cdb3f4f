"""How one agent uses its memory: what each of its calls does unless the call says otherwise."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from agentcore.agents.scope import MemoryScope
from agentcore.limits import MAX_CONTEXT_TOKENS
from agentcore.memory.models import Flag, Labels, Share, Strict
from agentcore.memory.params.memories import GateMode


class AgentSettings(Strict):
    """One agent's habits with its memory."""

    recall: Flag = Field(True, description="Look into memory before a query is processed.")
    remember: Flag = Field(True, description="Store the interaction after it was.")
    remember_errors: Flag = Field(True, description="Store a query whose processing failed, with its error.")
    whole_errors: Flag = Field(
        False, description="Keep an error's words whole: else without what looks like a key or a password.")
    template: dict[str, str] | None = Field(
        None, description="The fields of a working template, each with what belongs into it.")
    scope: MemoryScope = Field(default_factory=MemoryScope, description="Whose memory within the agent's.")
    max_tokens: Annotated[int, Field(ge=1, le=MAX_CONTEXT_TOKENS)] = Field(2_000, description="Of a context.")
    gate: GateMode = Field("cautious", description="What is not searched for, as for memory.get_context.")
    importance: Share | None = Field(None, description="Of what is stored; 0.5 if absent.")
    tags: Labels = Field(default_factory=list, description="On what is stored.")
    timeout_seconds: Annotated[float, Field(gt=0)] = Field(
        10.0, description="How long memory that does not answer may hold a turn up in all; one use half."
    )
