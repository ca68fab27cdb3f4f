"""What models cost an agent, and what is unwise about what it wishes of them. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import Field

from agentcore.memory.models import Strict
from agentcore.summary_rules import BY_MODEL, KEEPS_NO_RULES, SummaryRules, SummaryTrigger

# Which trigger goes by which number.
_COUNTED_BY: Mapping[str, SummaryTrigger] = {
    "user_turns": "user_turns", "message_count": "message_count", "inactivity_seconds": "inactivity"}


class LlmUse(Strict):
    """What language models cost the agent today (UTC)."""

    requests: int = Field(description="Sent.")
    refused: int = Field(description="Not sent: the budget was used up. Plain code did the work.")
    tokens: int = Field(description="Charged, or reserved by requests under way.")
    cost: float = Field(description="In the currency of the service's prices; 0 without prices.")
    tokens_a_day: int = Field(description="The budget; 0: unlimited.")
    cost_a_day: float = Field(description="The budget; 0: unlimited.")


NOT_RECOMMENDED = (
    "summaries: embedding without summarization is not recommended: what was said as it was said makes noisy "
    "vectors. Consider extractive, llm or compaction_aware."
)


def warnings_of(
    rules: SummaryRules | None,
    *,
    extract_facts: bool,
    has_extractor: bool,
    has_summariser: bool,
    has_embedder: bool,
    given: SummaryRules | None = None,
    by_default: bool = False,
) -> list[str]:
    """Warnings about the rules in force, and those just given, a sentence each.

    `by_default`: nobody chose to have no rules.
    """
    found = []
    if extract_facts and not has_extractor:
        found.append("extract_facts: this service has no language model; facts are those plain code finds.")
    if rules is None:
        found += [NOT_RECOMMENDED] if has_embedder and not by_default else []
    else:
        found += _warnings(rules, has_summariser=has_summariser, has_embedder=has_embedder)
    return found if given is None else found + _not_kept(given)


def _warnings(rules: SummaryRules, *, has_summariser: bool, has_embedder: bool) -> list[str]:
    name, by_model = rules.provider, rules.provider in BY_MODEL
    theirs = "what no compaction is of" if name == "compaction_aware" else name
    said = {
        f"summaries: this service has no language model; {theirs} is done by extraction.":
            by_model and not has_summariser,
        NOT_RECOMMENDED: name == "passthrough" and has_embedder,
        "summaries: llm does not use the summaries of the compactions that trigger it.":
            rules.trigger == "compaction" and name == "llm",
        f"summaries: {name} asks no model, so the prompt has no effect.":
            rules.prompt is not None and not by_model,
    }
    return [sentence for sentence, holds in said.items() if holds] + _idle(rules)


def _not_kept(given: SummaryRules) -> list[str]:
    name = given.provider
    kept = name not in KEEPS_NO_RULES or given == SummaryRules(provider=name)
    return [] if kept else [f"summaries: {name} keeps no rules, so those given with it have no effect."]


def _idle(rules: SummaryRules) -> list[str]:
    usual = SummaryRules()
    return [
        f"summaries: {name} has no effect with the trigger {rules.trigger}."
        for name, trigger in _COUNTED_BY.items()
        if trigger != rules.trigger and getattr(rules, name) != getattr(usual, name)
    ]
