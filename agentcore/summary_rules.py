"""How and when sessions are summarized: an agent's own rules, else the service's. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

PeriodUnit = Literal["day", "week", "month"]
SummaryProviderName = Literal["none", "default", "extractive", "llm", "compaction_aware", "passthrough"]
SummaryTrigger = Literal["user_turns", "message_count", "inactivity", "compaction", "session_end"]
# More messages give several summaries, unless the rules allow more; messages expected per user turn.
SEGMENT_MESSAGES, MESSAGES_A_TURN = 20, 4
# Providers that need a language model.
BY_MODEL = frozenset({"llm", "compaction_aware"})
# Providers that mean: no own rules.
KEEPS_NO_RULES = frozenset({"none", "default"})

Amount = Annotated[int, Field(strict=True, ge=1, le=1_000)]


class SummaryRules(BaseModel):
    """By what, and when, stretches of a session are summarised. The end of a session does it in any case."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: SummaryProviderName = Field(
        "extractive",
        description="extractive: the caller's own compaction summaries, sentences of the messages for the "
        "rest; llm: a language model; compaction_aware (taken where only the trigger `compaction` is named): "
        "those summaries, a model for the rest; passthrough: those summaries, and what was said as it was "
        "said; none: no stretches, the session is summarised at its end; "
        "default: as the service has it, without rules of one's own.",
    )
    trigger: SummaryTrigger = "user_turns"
    user_turns: Amount = Field(5, description="Of a session's user, for `user_turns`.")
    message_count: Amount = Field(20, description="Messages of a session, for `message_count`.")
    inactivity_seconds: Annotated[int, Field(strict=True, ge=10, le=30 * 86_400)] = Field(
        1_800, description="Without a message in the session, for `inactivity`."
    )
    period: PeriodUnit | None = Field(
        None,
        description="Sessions' summaries of one user and namespace in one such time (UTC; ISO weeks) get a "
        "summary together, from two on; null: none.",
    )
    max_tokens: Annotated[int, Field(strict=True, ge=10, le=4_000)] = Field(
        200, description="Of one summary; a long stretch gives several."
    )
    prompt: Annotated[str, Field(min_length=1, max_length=4_000)] | None = Field(
        None,
        description="What a model's summaries are to be like, in the agent's own words: told to it behind "
        "the service's rules, not in their place.",
    )

    @model_validator(mode="before")
    @classmethod
    def _compactions_are_used(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and given.get("trigger") == "compaction" and "provider" not in given:
            return {**given, "provider": "compaction_aware"}
        return given

    @property
    def most_messages(self) -> int:
        """Returns the maximum number of messages of one summary."""
        named = {"user_turns": MESSAGES_A_TURN * self.user_turns, "message_count": self.message_count}
        return max(SEGMENT_MESSAGES, named.get(self.trigger, 0))

    @property
    def counts(self) -> bool:
        """Returns whether the trigger counts pending messages or turns."""
        return self.trigger in ("user_turns", "message_count")

    def is_due(self, *, messages: int, user_turns: int) -> bool:
        """Returns whether the pending messages or turns reach the trigger's threshold."""
        if self.trigger == "user_turns":
            return user_turns >= self.user_turns
        return self.trigger == "message_count" and messages >= self.message_count


def rules_in_force(own: Mapping[str, Any] | None, service: SummaryRules | None) -> SummaryRules | None:
    """Returns an agent's own rules, else the service's; None without rules or if the provider is `none`."""
    rules = service if own is None else SummaryRules(**own)
    return None if rules is None or rules.provider == "none" else rules
