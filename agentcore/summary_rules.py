"""How and when sessions are summarized: an agent's own rules, else the service's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

PeriodUnit = Literal["day", "week", "month"]
SummaryProviderName = Literal["none", "default", "extractive", "llm", "compaction_aware", "passthrough"]
SummaryTrigger = Literal["user_turns", "message_count", "inactivity", "compaction", "session_end"]
# Maximum messages in one summary, unless the trigger's threshold is higher.
SEGMENT_MESSAGES = 20
# Estimated messages per user turn.
MESSAGES_PER_TURN = 4
# Providers that need a language model.
LLM_PROVIDERS = frozenset({"llm", "compaction_aware"})
# Providers that mean: no own rules.
PROVIDERS_WITHOUT_RULES = frozenset({"none", "default"})

Amount = Annotated[int, Field(strict=True, ge=1, le=1_000)]


class SummaryRules(BaseModel):
    """How and when segments of a session are summarized. The end of a session always triggers a summary."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    provider: SummaryProviderName = Field(
        "extractive",
        description="extractive: uses the caller's compaction summaries and selects sentences from the remaining "
        "messages. llm: a language model writes all summaries. compaction_aware (the default if `trigger` is "
        "`compaction`): uses the compaction summaries; a language model summarizes the rest. passthrough: uses the "
        "compaction summaries and copies the rest verbatim. none: no segment summaries; the session is summarized "
        "at its end. default: use the service's rules.",
    )
    trigger: SummaryTrigger = "user_turns"
    user_turns: Amount = Field(5, description="Number of user turns, for the trigger `user_turns`.")
    message_count: Amount = Field(20, description="Number of messages, for the trigger `message_count`.")
    inactivity_seconds: Annotated[int, Field(strict=True, ge=10, le=30 * 86_400)] = Field(
        1_800, description="Seconds without a new message, for the trigger `inactivity`."
    )
    period: PeriodUnit | None = Field(
        None,
        description="Also summarize all session summaries of one user and namespace in each day, ISO week or month "
        "(UTC), if there are at least two. null: do not.",
    )
    max_tokens: Annotated[int, Field(strict=True, ge=10, le=4_000)] = Field(
        200, description="Maximum tokens of one summary; a long segment gets several."
    )
    prompt: Annotated[str, Field(min_length=1, max_length=4_000)] | None = Field(
        None, description="Additional instructions for the language model, appended to the service's prompt."
    )

    @model_validator(mode="before")
    @classmethod
    def _default_provider_for_compaction(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and given.get("trigger") == "compaction" and "provider" not in given:
            return {**given, "provider": "compaction_aware"}
        return given

    @property
    def max_messages(self) -> int:
        named = {"user_turns": MESSAGES_PER_TURN * self.user_turns, "message_count": self.message_count}
        return max(SEGMENT_MESSAGES, named.get(self.trigger, 0))

    @property
    def is_count_based(self) -> bool:
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
