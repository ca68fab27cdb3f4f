"""The options of LLM_OPTIONS: budget and use of language models, and their validation.

They may contain a key: no message here quotes a value.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from agentcore.summary_rules import SummaryRules

MICROS = 1_000_000
Price = Annotated[Decimal, Field(ge=0, le=1_000_000, max_digits=12)]


class LlmUseOptions(BaseModel):
    """All fields are optional.

    `tokens_a_day` and `cost_a_day`: budget of each agent per day (UTC), 0: unlimited. `input_price` and
    `output_price`: per million tokens, in the currency of `cost_a_day`. `concurrency`: per process.
    `extract_facts` and `summaries`: defaults for agents without their own settings. `summariser`: writes a
    model's summaries; a name or `module:attribute`. `api_key`: of the chat model's endpoint, if not OpenAI's.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    tokens_a_day: int = Field(1_000_000, ge=0, le=10**15)
    cost_a_day: Price = Decimal(0)
    input_price: Price = Decimal(0)
    output_price: Price = Decimal(0)
    concurrency: int = Field(16, ge=1, le=100)
    extract_facts: bool = False
    summaries: SummaryRules | None = None
    summariser: Annotated[str, Field(min_length=1)] = "openai"
    api_key: Annotated[SecretStr, Field(min_length=1)] | None = None

    def micros(self, input_tokens: int, output_tokens: int) -> Decimal:
        """Returns the cost of these tokens, in millionths of the currency."""
        return input_tokens * self.input_price + output_tokens * self.output_price


def read_llm_options(given: str | None) -> LlmUseOptions:
    """Parses the setting's JSON text. Raises ValueError with every problem."""
    try:
        options = LlmUseOptions() if given is None else LlmUseOptions.model_validate_json(given)
    except ValidationError as cause:
        wrong = "; ".join(_sentence(error["loc"], error["msg"]) for error in cause.errors())
        raise ValueError(wrong) from None
    if options.summaries is not None and options.summaries.provider == "default":
        raise ValueError("summaries.provider: the default cannot be `default`")
    if options.cost_a_day and not (options.input_price or options.output_price):
        raise ValueError("limits a cost_a_day without an input_price or an output_price")
    return options


def _sentence(place: tuple[int | str, ...], message: str) -> str:
    name = ".".join(map(str, place))
    return f"{name}: {message}" if name else f"is not a JSON object: {message}"
