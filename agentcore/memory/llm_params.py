"""How an agent's sessions are summarised: the rules it may set, and what is unwise about them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from agentcore.memory.models import Strict
from agentcore.memory.periods import PeriodUnit

SummaryProviderName = Literal["none", "extractive", "llm", "compaction_aware", "passthrough"]
SummaryTrigger = Literal["user_turns", "message_count", "inactivity", "compaction", "session_end"]
# Those that ask a language model.
BY_MODEL = frozenset({"llm", "compaction_aware"})
# Which trigger goes by which number.
_COUNTED_BY: Mapping[str, SummaryTrigger] = {
    "user_turns": "user_turns", "message_count": "message_count", "inactivity_seconds": "inactivity"}

Amount = Annotated[int, Field(strict=True, ge=1, le=1_000)]


class SummaryRules(Strict):
    """By what, and when, stretches of a session are summarised. The end of a session does it in any case."""

    provider: SummaryProviderName = Field(
        "extractive",
        description="extractive: sentences of the messages; llm: a language model; compaction_aware: the "
        "caller's own compaction summaries, a model for the rest; passthrough: those summaries, and what was "
        "said as it was said; none: as the service does without rules.",
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
        None, description="What a model's summaries are to be like, in the agent's own words."
    )

    def is_due(self, *, messages: int, user_turns: int) -> bool:
        """Whether so much of a session is a stretch by itself."""
        if self.trigger == "user_turns":
            return user_turns >= self.user_turns
        return self.trigger == "message_count" and messages >= self.message_count


class LlmUse(Strict):
    """What language models cost the agent today (UTC)."""

    requests: int = Field(description="Sent.")
    refused: int = Field(description="Not sent: the budget was used up. Plain code did the work.")
    tokens: int = Field(description="Charged, or reserved by requests under way.")
    cost: float = Field(description="In the currency of the service's prices; 0 without prices.")
    tokens_a_day: int = Field(description="The budget; 0: unlimited.")
    cost_a_day: float = Field(description="The budget; 0: unlimited.")


def warnings_of(
    rules: SummaryRules | None, *, extract_facts: bool, has_model: bool, has_embedder: bool
) -> list[str]:
    """What of these wishes works less well than it may seem, a sentence each."""
    found = []
    if extract_facts and not has_model:
        found.append("extract_facts: this service has no language model; facts are those plain code finds.")
    if rules is not None:
        found += _warnings(rules, has_model=has_model, has_embedder=has_embedder)
    return found


def _warnings(rules: SummaryRules, *, has_model: bool, has_embedder: bool) -> list[str]:
    name, by_model = rules.provider, rules.provider in BY_MODEL
    compacts = name in ("compaction_aware", "passthrough")
    said = {
        f"summaries: this service has no language model; {name} is done by extraction.":
            by_model and not has_model,
        "summaries: embedding without summarization is not recommended: what was said as it was said makes "
        "noisy vectors. Consider extractive, llm or compaction_aware.":
            name == "passthrough" and has_embedder,
        f"summaries: {name} does not use the summaries of the compactions that trigger it.":
            rules.trigger == "compaction" and not compacts,
        f"summaries: {name} asks no model, so the prompt has no effect.":
            rules.prompt is not None and not by_model,
    }
    return [sentence for sentence, holds in said.items() if holds] + _idle(rules)


def _idle(rules: SummaryRules) -> list[str]:
    """Numbers that say when another trigger would be due, and rules beside none."""
    if rules.provider == "none":
        kept = rules == SummaryRules(provider="none")
        return [] if kept else ["summaries: none keeps no rules, so those given with it have no effect."]
    usual = SummaryRules()
    return [
        f"summaries: {name} has no effect with the trigger {rules.trigger}."
        for name, trigger in _COUNTED_BY.items()
        if trigger != rules.trigger and getattr(rules, name) != getattr(usual, name)
    ]
