"""Params and results of an agent's own rules, of consolidation, and of model usage. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field, model_validator

from agentcore.memory.models import Flag, MemoryType, Receipt, Strict
from agentcore.summary_rules import BY_MODEL, KEEPS_NO_RULES, SummaryRules, SummaryTrigger

# Setting to the trigger that uses it.
_COUNTED_BY: Mapping[str, SummaryTrigger] = {
    "user_turns": "user_turns", "message_count": "message_count", "inactivity_seconds": "inactivity"}


class LlmUse(Strict):
    """The agent's language model usage today (UTC)."""

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
    """Returns warnings about the rules in force, and those just given, a sentence each.

    `by_default`: no rules are set, neither by the agent nor by the service.
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


DEFAULT_ARCHIVE_AFTER_DAYS = 30

Days = Annotated[int, Field(strict=True, ge=1, le=36_500)]


class ConsolidateParams(Strict):
    """Options of a consolidation: dry run, starting point, archiving of sources."""

    dry_run: Flag = Field(False, description="List what it would make; nothing is written.")
    again: Flag = Field(False, description="Look at every episodic memory again, not only at new ones.")
    archive_sources: Flag = Field(
        False, description="Then archive the sources of standing summaries that are old enough."
    )
    archive_sources_after_days: Days = Field(
        DEFAULT_ARCHIVE_AFTER_DAYS, description="How old a source must be for that, counted from its time."
    )


class ConsolidatedCluster(Strict):
    """A cluster of similar memories, and its summary, existing or planned."""

    memory_id: UUID | None = Field(description="The summary's memory; null in a dry run.")
    source_ids: list[UUID] = Field(description="What it is of, the oldest first.")
    summary: str = Field(description="Sentences of the sources themselves.")
    facts: list[str] = Field(description="The sources' facts, each once.")
    replaces: UUID | None = Field(description="The older summary that it supersedes.")


class ConsolidateResult(Strict):
    success: bool
    dry_run: bool
    clusters: list[ConsolidatedCluster]
    looked_at_count: int = Field(description="New episodic memories that were looked at.")
    archived_count: int = Field(description="Sources that went to the archive; of a dry run, that would.")
    complete: bool = Field(description="False: time or number ran out; a call without `again` goes on.")
    receipt: Receipt


MAX_TTL_SECONDS = 100 * 366 * 86_400

SourceDays = Annotated[int, Field(strict=True, ge=0, le=36_500)]
OwnRules = Mapping[str, Mapping[str, int]]


class LayerRules(Strict):
    """Forgetting rules of one layer. Null in `memory.configure`: reset to the service's default."""

    ttl_seconds: Annotated[int, Field(strict=True, ge=0, le=MAX_TTL_SECONDS)] | None = Field(
        None, description="Seconds a memory lives that is stored without a time to live; 0: for ever."
    )
    capacity: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)] | None = Field(
        None, description="Memories the layer holds before it is pruned; 0: unlimited."
    )
    extend_after_uses: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)] | None = Field(
        None,
        description="Used so often within its life, a memory gets its time to live again; 0: never. No "
        "effect on a memory stored without a time to live.",
    )


class ConfigureParams(Strict):
    """Rules to change for this agent; absent fields stay unchanged."""

    layers: Annotated[dict[MemoryType, LayerRules], Field(min_length=1)] | None = None
    consolidate: Flag | None = Field(
        None, description="Whether episodic memories that tell one thing get a summary, in the background."
    )
    archive_sources_after_days: SourceDays | None = Field(
        None, description="Sources so old go to the archive then, their summary stays; 0: never."
    )
    extract_facts: Flag | None = Field(
        None, description="Whether a model reads new episodic memories for facts, in the background."
    )
    summaries: SummaryRules | None = Field(
        None,
        description="How stretches of sessions are summarised, all of it; provider none: in none; default: "
        "as the service has it.",
    )

    @model_validator(mode="after")
    def _changes_something(self) -> ConfigureParams:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError(f"give at least one of {', '.join(type(self).model_fields)}")
        return self


class SettingsParams(Strict):
    """No params."""


class SettingsResult(Strict):
    layers: dict[MemoryType, LayerRules] = Field(description="What holds for this agent.")
    own: dict[MemoryType, LayerRules] = Field(
        description="What of it is set for this agent alone; the rest is the service's."
    )
    consolidate: bool = Field(description="Whether episodes are consolidated in the background.")
    archive_sources_after_days: int = Field(
        description="How old sources go to the archive once they have a summary; 0: never."
    )
    extract_facts: bool = Field(description="Whether new episodic memories are read for facts by a model.")
    summaries: SummaryRules | None = Field(
        description="How stretches of sessions are summarised, by the agent's rules or the service's; null: "
        "their ends keep what was said, by extraction."
    )
    llm_use: LlmUse = Field(description="What language models cost this agent today.")
    warnings: list[str] = Field(description="What of these settings works less well than it may seem.")
    receipt: Receipt


class ConfigureResult(SettingsResult):
    success: bool


def rules_of(service: Mapping[str, LayerRules], own: OwnRules) -> dict[MemoryType, LayerRules]:
    """Returns an agent's effective rules: its own, else the service's, else 0."""
    return {
        layer: LayerRules(
            **{
                name: own.get(layer, {}).get(name, getattr(service.get(layer), name, None) or 0)
                for name in LayerRules.model_fields
            }
        )
        for layer in MemoryType
    }


def layer_warnings(rules: Mapping[MemoryType, LayerRules]) -> list[str]:
    """Returns warnings about rules with no effect, or less than expected."""
    return [
        f"layers: {layer.value} gives memories no time to live, so extend_after_uses applies only to those "
        "stored with ttl_seconds of their own."
        for layer, each in rules.items()
        if each.extend_after_uses and not each.ttl_seconds
    ]


def changed_rules(own: OwnRules, changes: Mapping[MemoryType, LayerRules]) -> dict[str, dict[str, int]]:
    """Returns an agent's own rules after the changes; null removes a rule."""
    merged: dict[str, dict[str, Any]] = {layer: dict(rules) for layer, rules in own.items()}
    for layer, rules in changes.items():
        kept = {**merged.get(layer.value, {}), **rules.model_dump(exclude_unset=True)}
        merged[layer.value] = {name: value for name, value in kept.items() if value is not None}
    return {layer: rules for layer, rules in merged.items() if rules}
