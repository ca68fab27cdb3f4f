"""The protocols of language models, one for each use, with their tables; all are optional."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from agentcore.errors import DependencyUnavailable
from agentcore.memory.params.memories import Turn
from agentcore.memory.statements.statements import Told

__all__ = [
    "FACT_EXTRACTORS",
    "FACT_JUDGES",
    "QUERY_REWRITERS",
    "RERANKERS",
    "SUMMARISERS",
    "Bill",
    "Extraction",
    "FactExtractor",
    "FactJudge",
    "FactVerdict",
    "LlmOptions",
    "Meter",
    "QueryRewriter",
    "Reranker",
    "RerankerOptions",
    "Rewriting",
    "Said",
    "Summariser",
    "SummaryWish",
    "WrittenSummary",
    "relevances_of",
]

# By the name `RERANKER` gives them. Each class is constructed with RerankerOptions.
RERANKERS: Mapping[str, str] = {
    "cross_encoder": "agentcore.providers.cross_encoder:CrossEncoder",
    "http": "agentcore.providers.http_reranker:HttpReranker",
}

# By the name `QUERY_REWRITER` gives them. Each class is constructed with LlmOptions.
QUERY_REWRITERS: Mapping[str, str] = {
    "openai": "agentcore.providers.openai_chat:OpenAiRewriter",
}


# By the vendor whose interface LLM_BASE_URL speaks. Each class is constructed with LlmOptions.
FACT_JUDGES: Mapping[str, str] = {
    "openai": "agentcore.providers.openai_chat:OpenAiFactJudge",
}
FACT_EXTRACTORS: Mapping[str, str] = {
    "openai": "agentcore.providers.openai_chat:OpenAiFactExtractor",
}
SUMMARISERS: Mapping[str, str] = {
    "openai": "agentcore.providers.openai_chat:OpenAiSummariser",
}


class Model(Protocol):
    """What stands beside the embedder: opened before it is asked, closed in the end."""

    @property
    def model(self) -> str:
        """What it is called where it is told of."""

    async def open(self) -> None:
        """Make it ready. Raises ConfigurationError or StartupError where it never can be."""

    async def close(self) -> None:
        """Let go of what `open` took. Does nothing where it was not open."""


class PromptedModel(Model, Protocol):
    """A model whose answers tell which words it was asked with."""

    @property
    def prompt(self) -> str:
        """Which version of which prompt it is asked with: "fact_extraction@1"."""


class Reranker(Model, Protocol):
    """Reads a query and a text together and says how well the text answers."""

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A number for each text, in their order; the larger, the better it answers.

        Raises DependencyUnavailable. May be broken off at any time, and then begins nothing more.
        """


@dataclass(frozen=True)
class Rewriting:
    """Other ways to ask the same, and an answer as a memory might word it."""

    queries: Sequence[str] = ()
    answer: str | None = None


class QueryRewriter(Model, Protocol):
    """Puts a query into other words."""

    async def rewrite(self, query: str, history: Sequence[Turn], *, agent_id: str) -> Rewriting:
        """The query in other words, read with the turns before it. Raises DependencyUnavailable."""


FactVerdict = Literal["ADD", "UPDATE", "SUPERSEDE", "NOOP"]


class FactJudge(Model, Protocol):
    """Says what a new statement means for an old one, of pairs that the rules let through."""

    async def judge(self, old: Told, new: Told, *, agent_id: str) -> FactVerdict:
        """SUPERSEDE: the new one holds in the old one's place; else both stand.

        Raises DependencyUnavailable.
        """


@dataclass(frozen=True)
class Said:
    """A memory as a model is told of it."""

    text: str
    speaker: str | None
    said_at: datetime


@dataclass(frozen=True)
class Extraction:
    """What one memory states, each fact a sentence by itself, and whom and what it names."""

    facts: Sequence[str] = ()
    entities: Sequence[str] = ()


class FactExtractor(PromptedModel, Protocol):
    """Reads memories for facts and entities."""

    async def extract(self, said: Sequence[Said], *, agent_id: str) -> Sequence[Extraction]:
        """One for each memory, in their order; unchecked. Raises DependencyUnavailable."""


@dataclass(frozen=True)
class SummaryWish:
    """How long a summary may be, and what its agent wishes of it, in the agent's own words."""

    max_tokens: int
    instructions: str | None = None


@dataclass(frozen=True)
class WrittenSummary:
    """A summary in a model's words; unchecked."""

    text: str
    topics: Sequence[str] = ()
    key_facts: Sequence[str] = ()


class Summariser(PromptedModel, Protocol):
    """Tells in few words what was said."""

    async def summarise(self, said: Sequence[Said], wish: SummaryWish, *, agent_id: str) -> WrittenSummary:
        """What was said, in order, as a summary. Raises DependencyUnavailable."""


class Bill(Protocol):
    """One request on an agent's account. Without a word it stands as it was reserved."""

    def spent(self, input_tokens: int, output_tokens: int) -> None:
        """The answer says what it took."""

    def free(self) -> None:
        """It was refused or failed before it cost anything."""


class Meter(Protocol):
    """Lets requests to language models through, as many at once and a day as they may be."""

    def request(
        self, agent_id: str, work: str, text: str, output_tokens: int, *, urgent: bool
    ) -> AbstractAsyncContextManager[Bill]:
        """One request with this text, answered in so many tokens at most, for the length of the context.

        Entering it waits for room, of which `urgent` ones, that somebody waits for, have more. Raises
        DependencyUnavailable where the agent's budget is used up.
        """


@dataclass(frozen=True)
class RerankerOptions:
    """What a reranker may need to know; each takes what concerns it."""

    model_name: str | None = None
    directory: Path | None = None
    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 0.15


@dataclass(frozen=True)
class LlmOptions:
    """What a provider of a language model may need to know. `base_url` None: the vendor's own.

    More than one of `attempts` only where nobody waits. Each request goes through the meter, if there is one.
    """

    model_name: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout_seconds: float = 5.0
    attempts: int = 1
    meter: Meter | None = None


def relevances_of(scores: Sequence[float], *, count: int) -> list[float]:
    """A reranker's answer as shares: as it is where all of it lies in [0, 1], else through a sigmoid.

    Raises DependencyUnavailable where it has another length than `count`, or holds what is no number.
    """
    if len(scores) != count or not all(math.isfinite(score) for score in scores):
        raise DependencyUnavailable(
            f"The reranker answered with {len(scores)} scores, or with what is no number, where {count} "
            f"numbers were asked for.", data={"scores": len(scores)})
    if all(0.0 <= score <= 1.0 for score in scores):
        return [float(score) for score in scores]
    # Half of its tanh is the sigmoid that cannot overflow.
    return [0.5 * (1.0 + math.tanh(0.5 * score)) for score in scores]
