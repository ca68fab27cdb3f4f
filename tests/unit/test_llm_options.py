"""LLM_OPTIONS: valid options, and one-sentence errors."""

from __future__ import annotations

from decimal import Decimal

import pytest

from agentcore.memory.params.agent_settings import warnings_of
from agentcore.structured_settings import read_llm_options
from agentcore.summary_rules import SummaryRules, rules_in_force


def test_without_a_word_the_budget_is_a_million_tokens_and_nothing_is_extracted() -> None:
    options = read_llm_options(None)
    assert (options.tokens_a_day, options.cost_a_day, options.extract_facts) == (1_000_000, Decimal(0), False)


def test_prices_are_of_a_million_tokens_and_exact() -> None:
    options = read_llm_options('{"input_price": 0.15, "output_price": "0.6", "cost_a_day": 1}')
    assert options.micros(1_000_000, 500_000) == Decimal("450000")
    assert options.micros(1, 0) == Decimal("0.15")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("{", "is not a JSON object"),
        ("[]", "is not a JSON object"),
        ('{"tokens": 5}', "tokens: Extra inputs"),
        ('{"tokens_a_day": -1}', "tokens_a_day: Input should be greater"),
        ('{"concurrency": 0}', "concurrency: Input should be greater"),
        ('{"summaries": {"provider": "gpt"}}', "summaries.provider: Input should be"),
        ('{"summaries": {"provider": "default"}}', "summaries.provider: the default cannot be"),
        ('{"cost_a_day": 1}', "limits a cost_a_day without an input_price"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(given: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("(", r"\(")):
        read_llm_options(given)


NOT_RECOMMENDED = "summaries: embedding without summarization is not recommended: "
NO_MODEL = "summaries: this service has no language model; llm uses extraction."


@pytest.mark.parametrize(
    ("rules", "has_model", "has_embedder", "warned"),
    [
        # The matrix of seed 003: neither, summaries only, vectors only, both.
        (None, False, False, []),
        (SummaryRules(), False, False, []),
        (None, False, True, [NOT_RECOMMENDED]),
        (SummaryRules(), False, True, []),
        (SummaryRules(provider="llm"), True, True, []),
        (SummaryRules(provider="llm"), True, False, []),
        (SummaryRules(provider="llm"), False, True, [NO_MODEL]),
        (SummaryRules(provider="passthrough"), True, True, [NOT_RECOMMENDED]),
        (SummaryRules(provider="passthrough"), True, False, []),
        (SummaryRules(provider="passthrough", trigger="compaction"), True, False, []),
        (SummaryRules(trigger="compaction"), True, True, []),
        (
            SummaryRules(trigger="compaction"),
            False,
            True,
            ["summaries: this service has no language model; text not covered by a compaction uses extraction."],
        ),
        (SummaryRules(trigger="compaction", provider="extractive"), False, True, []),
        (
            SummaryRules(trigger="compaction", provider="llm"),
            True,
            True,
            ["summaries: llm does not use the summaries of the compactions that trigger it."],
        ),
        (
            SummaryRules(prompt="Be brief."),
            True,
            True,
            ["summaries: extractive uses no model, so the prompt has no effect."],
        ),
        (
            SummaryRules(trigger="inactivity", user_turns=3),
            True,
            True,
            ["summaries: user_turns has no effect with the trigger inactivity."],
        ),
        (
            SummaryRules(trigger="session_end", user_turns=3, message_count=4),
            True,
            True,
            [
                "summaries: user_turns has no effect with the trigger session_end.",
                "summaries: message_count has no effect with the trigger session_end.",
            ],
        ),
        (SummaryRules(trigger="message_count", message_count=4, user_turns=5), True, True, []),
        (SummaryRules(trigger="inactivity", inactivity_seconds=60), True, True, []),
    ],
)
@pytest.mark.shows("issue5-4-matrix")
def test_the_matrix_of_summaries_and_vectors_warns_of_what_is_unwise(
    rules: SummaryRules | None, has_model: bool, has_embedder: bool, warned: list[str]
) -> None:
    warnings = warnings_of(
        rules, extract_facts=False, has_extractor=has_model, has_summariser=has_model, has_embedder=has_embedder
    )
    assert len(warnings) == len(warned)
    assert all(said.startswith(expected) for said, expected in zip(warnings, warned, strict=True))


@pytest.mark.parametrize(
    ("given", "warned"),
    [
        (SummaryRules(provider="none"), []),
        (SummaryRules(provider="default"), []),
        (
            SummaryRules(provider="none", trigger="session_end"),
            ["summaries: none has no rules, so those passed with it have no effect."],
        ),
        (
            SummaryRules(provider="default", period="day"),
            ["summaries: default has no rules, so those passed with it have no effect."],
        ),
    ],
)
def test_rules_beside_none_are_told_to_have_no_effect(given: SummaryRules, warned: list[str]) -> None:
    has = {"extract_facts": False, "has_extractor": False, "has_summariser": False, "has_embedder": False}
    assert warnings_of(None, given=given, **has) == warned


@pytest.mark.parametrize(
    ("given", "provider"),
    [
        ({}, "extractive"),
        ({"trigger": "session_end"}, "extractive"),
        ({"trigger": "compaction"}, "compaction_aware"),
        ({"trigger": "compaction", "provider": "extractive"}, "extractive"),
    ],
)
def test_who_names_only_the_compaction_trigger_means_the_callers_summaries(
    given: dict[str, str], provider: str
) -> None:
    assert SummaryRules.model_validate(given).provider == provider


@pytest.mark.parametrize(
    ("rules", "most"),
    [
        (SummaryRules(), 20),
        (SummaryRules(user_turns=50), 200),
        (SummaryRules(trigger="message_count", message_count=8), 20),
        (SummaryRules(trigger="message_count", message_count=100), 100),
        (SummaryRules(trigger="session_end", message_count=100), 20),
    ],
)
def test_a_stretch_that_the_rules_make_longer_stays_one_memory(rules: SummaryRules, most: int) -> None:
    assert rules.max_messages == most


def test_the_services_rules_hold_where_an_agent_has_none_of_its_own() -> None:
    service, own = SummaryRules(user_turns=3), {"provider": "extractive", "trigger": "session_end"}
    assert rules_in_force(None, None) is None
    assert rules_in_force(None, service) is service
    assert rules_in_force(own, service) == SummaryRules(trigger="session_end")
    assert rules_in_force({"provider": "none"}, service) is None
    assert rules_in_force(None, SummaryRules(provider="none")) is None


def test_the_options_hold_the_services_rules_for_summaries() -> None:
    options = read_llm_options('{"summaries": {"trigger": "message_count", "message_count": 8}}')
    assert options.summaries == SummaryRules(trigger="message_count", message_count=8)
    assert read_llm_options(None).summaries is None


def test_facts_without_a_model_are_warned_of() -> None:
    [warning] = warnings_of(
        SummaryRules(), extract_facts=True, has_extractor=False, has_summariser=True, has_embedder=True
    )
    assert warning.startswith("extract_facts")
