"""What models beside the embedder add to a search: the Reranker and QueryRewriter protocols, their tables.

The implementations are in `agentcore/providers/`, one file each. Nothing depends on them: without one, or
when one fails, a search does what plain code can.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from agentcore.errors import DependencyUnavailable
from agentcore.memory.params import Turn
from agentcore.memory.statements import Told

__all__ = [
    "FACT_JUDGES",
    "QUERY_REWRITERS",
    "RERANKERS",
    "FactJudge",
    "FactVerdict",
    "LlmOptions",
    "QueryRewriter",
    "Reranker",
    "RerankerOptions",
    "Rewriting",
    "relevances_of",
]

# By the name `RERANKER` gives them. Each class is constructed with RerankerOptions.
RERANKERS: Mapping[str, str] = {
    "cross_encoder": "agentcore.providers.cross_encoder:CrossEncoder",
    "http": "agentcore.providers.http_reranker:HttpReranker",
}

# By the name `QUERY_REWRITER` gives them. Each class is constructed with LlmOptions.
QUERY_REWRITERS: Mapping[str, str] = {
    "openai": "agentcore.providers.openai_rewriter:OpenAiRewriter",
}


# By the vendor whose interface LLM_BASE_URL speaks. Each class is constructed with LlmOptions.
FACT_JUDGES: Mapping[str, str] = {
    "openai": "agentcore.providers.openai_fact_judge:OpenAiFactJudge",
}


class Reranker(Protocol):
    """Reads a query and a text together and says how well the text answers."""

    @property
    def model(self) -> str:
        """What it is called where it is told of."""

    async def open(self) -> None:
        """Make it ready. Raises ConfigurationError or StartupError where it never can be."""

    async def close(self) -> None:
        """Let go of what `open` took. Does nothing where it was not open."""

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """A number for each text, in their order; the larger, the better it answers.

        Raises DependencyUnavailable. May be broken off at any time, and then begins nothing more.
        """


@dataclass(frozen=True)
class Rewriting:
    """Other ways to ask the same, and an answer as a memory might word it."""

    queries: Sequence[str] = ()
    answer: str | None = None


class QueryRewriter(Protocol):
    """Puts a query into other words."""

    @property
    def model(self) -> str:
        """What it is called where it is told of."""

    async def open(self) -> None:
        """Make it ready. Raises ConfigurationError or StartupError where it never can be."""

    async def close(self) -> None:
        """Let go of what `open` took. Does nothing where it was not open."""

    async def rewrite(self, query: str, history: Sequence[Turn]) -> Rewriting:
        """The query in other words, read with the turns before it. Raises DependencyUnavailable."""


FactVerdict = Literal["ADD", "UPDATE", "SUPERSEDE", "NOOP"]


class FactJudge(Protocol):
    """Says what a new statement means for an old one, of pairs that the rules let through."""

    @property
    def model(self) -> str:
        """What it is called where it is told of."""

    async def open(self) -> None:
        """Make it ready. Raises ConfigurationError or StartupError where it never can be."""

    async def close(self) -> None:
        """Let go of what `open` took. Does nothing where it was not open."""

    async def judge(self, old: Told, new: Told) -> FactVerdict:
        """SUPERSEDE: the new one holds in the old one's place; else both stand.

        Raises DependencyUnavailable.
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
    """What a provider of a language model may need to know. `base_url` None: the vendor's own."""

    model_name: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout_seconds: float = 5.0


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
