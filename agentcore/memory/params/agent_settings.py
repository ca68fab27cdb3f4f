"""Params and results of an agent's own rules, of consolidation, and of model usage. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from uuid import UUID

from pydantic import Field, model_validator

from agentcore.memory.models import MAX_TTL_SECONDS, Flag, JsonObject, MemoryType, Receipt, Strict
from agentcore.summary_rules import LLM_PROVIDERS, PROVIDERS_WITHOUT_RULES, SummaryRules, SummaryTrigger

# Setting to the trigger that uses it.
_COUNTED_BY: Mapping[str, SummaryTrigger] = {
    "user_turns": "user_turns",
    "message_count": "message_count",
    "inactivity_seconds": "inactivity",
}


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
    """Returns warnings about the rules in force and those just given.

    `by_default`: no rules are set, neither by the agent nor by the service.
    """
    found = {
        "extract_facts: this service has no language model; facts are those plain code finds.": extract_facts
        and not has_extractor
    }
    if rules is None:
        found[NOT_RECOMMENDED] = has_embedder and not by_default
    else:
        found |= _warnings(rules, has_summariser=has_summariser, has_embedder=has_embedder)
    if given is not None:
        name = given.provider
        without = f"summaries: {name} has no rules, so those passed with it have no effect."
        found[without] = name in PROVIDERS_WITHOUT_RULES and given != SummaryRules(provider=name)
    return [sentence for sentence, applies in found.items() if applies]


def _warnings(rules: SummaryRules, *, has_summariser: bool, has_embedder: bool) -> dict[str, bool]:
    name, by_model, usual = rules.provider, rules.provider in LLM_PROVIDERS, SummaryRules()
    theirs = "text not covered by a compaction" if name == "compaction_aware" else name
    return {
        f"summaries: this service has no language model; {theirs} uses extraction.": by_model and not has_summariser,
        NOT_RECOMMENDED: name == "passthrough" and has_embedder,
        "summaries: llm does not use the summaries of the compactions that trigger it.": rules.trigger == "compaction"
        and name == "llm",
        f"summaries: {name} uses no model, so the prompt has no effect.": rules.prompt is not None and not by_model,
    } | {
        f"summaries: {counted} has no effect with the trigger {rules.trigger}.": trigger != rules.trigger
        and getattr(rules, counted) != getattr(usual, counted)
        for counted, trigger in _COUNTED_BY.items()
    }


DEFAULT_ARCHIVE_AFTER_DAYS = 30

Days = Annotated[int, Field(strict=True, ge=1, le=36_500)]


class ConsolidateParams(Strict):
    """Options of a consolidation: dry run, starting point, archiving of sources."""

    dry_run: Flag = Field(False, description="Return the planned summaries; write none.")
    again: Flag = Field(False, description="Process all episodic memories, not only new ones.")
    archive_sources: Flag = Field(False, description="Also archive old sources of current summaries.")
    archive_sources_after_days: Days = Field(
        DEFAULT_ARCHIVE_AFTER_DAYS, description="Minimum age of an archived source, from its timestamp."
    )


class ConsolidatedCluster(Strict):
    """A cluster of similar memories, and its summary, existing or planned."""

    memory_id: UUID | None = Field(description="Id of the summary; null in a dry run.")
    source_ids: list[UUID] = Field(description="Its sources, oldest first.")
    summary: str = Field(description="Sentences of the sources.")
    facts: list[str] = Field(description="The distinct facts of the sources.")
    replaces: UUID | None = Field(description="The older summary that it supersedes.")


class ConsolidateResult(Strict):
    success: bool
    dry_run: bool
    clusters: list[ConsolidatedCluster]
    looked_at_count: int = Field(description="New episodic memories processed.")
    archived_count: int = Field(description="Sources archived, or to archive in a dry run.")
    complete: bool = Field(description="False: the call reached a limit; call without `again` to continue.")
    receipt: Receipt


SourceDays = Annotated[int, Field(strict=True, ge=0, le=36_500)]
OwnRules = Mapping[str, Mapping[str, int]]


class LayerRules(Strict):
    """Forgetting rules of one layer. Null in `memory.configure`: reset to the service's default."""

    ttl_seconds: Annotated[int, Field(strict=True, ge=0, le=MAX_TTL_SECONDS)] | None = Field(
        None, description="TTL of memories stored without one, in seconds; 0: they never expire."
    )
    capacity: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)] | None = Field(
        None, description="Number of memories above which the layer is pruned; 0: unlimited."
    )
    extend_after_uses: Annotated[int, Field(strict=True, ge=0, le=2**31 - 1)] | None = Field(
        None,
        description="Number of uses within its TTL after which a memory's TTL restarts; 0: never. No effect "
        "on memories without a TTL.",
    )


class ConfigureParams(Strict):
    """Rules to change for this agent; absent fields stay unchanged."""

    layers: Annotated[dict[MemoryType, LayerRules], Field(min_length=1)] | None = None
    consolidate: Flag | None = Field(None, description="Whether clusters of similar episodic memories are summarized.")
    archive_sources_after_days: SourceDays | None = Field(
        None, description="Age in days at which sources of such summaries are archived; 0: never."
    )
    extract_facts: Flag | None = Field(
        None, description="Whether a language model extracts facts from new episodic memories in the background."
    )
    summaries: SummaryRules | None = Field(
        None,
        description="Rules of session summaries; replaces all of them. Provider none: no summaries; default: "
        "the service's rules.",
    )

    @model_validator(mode="after")
    def _changes_something(self) -> ConfigureParams:
        if all(getattr(self, name) is None for name in type(self).model_fields):
            raise ValueError(f"pass at least one of {', '.join(type(self).model_fields)}")
        return self


class SettingsParams(Strict):
    """No params."""


class SettingsResult(Strict):
    layers: dict[MemoryType, LayerRules] = Field(description="The rules in force for this agent.")
    own: dict[MemoryType, LayerRules] = Field(description="The agent's own rules; the others are the service's.")
    own_settings: list[str] = Field(
        default_factory=list,
        description="Names of the settings besides `layers` that were set for this agent by memory.configure.",
    )
    consolidate: bool = Field(description="Whether episodic memories are consolidated in the background.")
    archive_sources_after_days: int = Field(
        description="Age in days at which summarized sources are archived; 0: never."
    )
    extract_facts: bool = Field(description="Whether a language model extracts facts from new memories.")
    summaries: SummaryRules | None = Field(
        description="Rules of session summaries in force; null: sessions end with extractive summaries."
    )
    llm_use: LlmUse = Field(description="This agent's use of language models today.")
    warnings: list[str] = Field(description="Settings with less effect than expected.")
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
    return [
        f"layers: {layer.value} has no default TTL, so extend_after_uses applies only to memories stored "
        "with ttl_seconds."
        for layer, each in rules.items()
        if each.extend_after_uses and not each.ttl_seconds
    ]


def changed_rules(own: OwnRules, changes: Mapping[MemoryType, LayerRules]) -> dict[str, dict[str, int]]:
    """Returns an agent's own rules after the changes; null removes a rule."""
    merged: dict[str, JsonObject] = {layer: dict(rules) for layer, rules in own.items()}
    for layer, rules in changes.items():
        kept = {**merged.get(layer.value, {}), **rules.model_dump(exclude_unset=True)}
        merged[layer.value] = {name: value for name, value in kept.items() if value is not None}
    return {layer: rules for layer, rules in merged.items() if rules}
