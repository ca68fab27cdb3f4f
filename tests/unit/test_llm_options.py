"""LLM_OPTIONS: what it says, and what is wrong with it, in a sentence."""

from __future__ import annotations

from decimal import Decimal

import pytest

from agentcore.config import load_settings
from agentcore.errors import ConfigurationError
from agentcore.llm_options import read_llm_options
from agentcore.memory.llm_params import SummaryRules, warnings_of


def test_without_a_word_the_budget_is_a_million_tokens_and_nothing_is_extracted() -> None:
    options = read_llm_options(None)
    assert (options.tokens_a_day, options.cost_a_day, options.extract_facts) == (1_000_000, 0, False)


def test_prices_are_of_a_million_tokens_and_exact() -> None:
    options = read_llm_options('{"input_price": 0.15, "output_price": "0.6", "cost_a_day": 1}')
    assert options.micros(1_000_000, 500_000) == Decimal("450000")
    assert options.micros(1, 0) == Decimal("0.15")


@pytest.mark.parametrize(("given", "problem"), [
    ("{", "is not a JSON object"),
    ("[]", "is not a JSON object"),
    ('{"tokens": 5}', "tokens: Extra inputs"),
    ('{"tokens_a_day": -1}', "tokens_a_day: Input should be greater"),
    ('{"concurrency": 0}', "concurrency: Input should be greater"),
    ('{"cost_a_day": 1}', "limits a cost_a_day without an input_price"),
])
def test_what_is_wrong_is_said_in_a_sentence(given: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("(", r"\(")):
        read_llm_options(given)


@pytest.mark.parametrize(("rules", "has_model", "has_embedder", "count"), [
    (None, False, True, 0),
    (SummaryRules(), False, True, 0),
    (SummaryRules(provider="llm"), True, True, 0),
    (SummaryRules(provider="llm"), True, False, 0),
    (SummaryRules(provider="llm"), False, True, 1),
    (SummaryRules(provider="passthrough"), True, True, 1),
    (SummaryRules(provider="passthrough"), True, False, 0),
    (SummaryRules(provider="passthrough", trigger="compaction"), True, False, 0),
    (SummaryRules(trigger="compaction", prompt="Be brief."), True, True, 2),
    (SummaryRules(trigger="inactivity", user_turns=3), True, True, 1),
    (SummaryRules(trigger="session_end", user_turns=3, message_count=4), True, True, 2),
    (SummaryRules(trigger="message_count", message_count=4, user_turns=5), True, True, 0),
    (SummaryRules(trigger="inactivity", inactivity_seconds=60), True, True, 0),
    (SummaryRules(provider="none"), True, True, 0),
    (SummaryRules(provider="none", trigger="session_end"), True, True, 1),
])
def test_the_matrix_of_summaries_and_vectors_warns_of_what_is_unwise(
    rules: SummaryRules | None, has_model: bool, has_embedder: bool, count: int
) -> None:
    warnings = warnings_of(rules, extract_facts=False, has_model=has_model, has_embedder=has_embedder)
    assert len(warnings) == count


def test_a_wrong_setting_stops_the_start_with_its_name() -> None:
    with pytest.raises(ConfigurationError, match="LLM_OPTIONS tokens_a_day"):
        load_settings(_env_file=None, llm_options='{"tokens_a_day": "many"}')


def test_facts_without_a_model_are_warned_of() -> None:
    [warning] = warnings_of(None, extract_facts=True, has_model=False, has_embedder=True)
    assert warning.startswith("extract_facts")
