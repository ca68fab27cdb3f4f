"""Protocols of optional language models, one per use case, and the tables of their implementations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

from agentcore.errors import DependencyUnavailable
from agentcore.memory.params.memories import Turn
from agentcore.memory.statements.statements import RuleInput

# By value of `RERANKER`; constructed with RerankerOptions.
RERANKERS: Mapping[str, str] = {"http": "agentcore.providers.http_reranker:HttpReranker"}

# By value of `QUERY_REWRITER`; constructed with LlmOptions.
QUERY_REWRITERS: Mapping[str, str] = {"openai": "agentcore.providers.openai_models:OpenAiRewriter"}


# By the vendor whose API LLM_BASE_URL implements; constructed with LlmOptions.
FACT_JUDGES: Mapping[str, str] = {"openai": "agentcore.providers.openai_models:OpenAiFactJudge"}
FACT_EXTRACTORS: Mapping[str, str] = {"openai": "agentcore.providers.openai_models:OpenAiFactExtractor"}
SUMMARISERS: Mapping[str, str] = {"openai": "agentcore.providers.openai_models:OpenAiSummariser"}


MOST_CHARGED = 10**9


class Model(Protocol):
    """Opened before its first request, closed at shutdown. `model`: the name in results and messages."""

    @property
    def model(self) -> str: ...

    async def open(self) -> None:
        """Loads or connects the model. Raises ConfigurationError or StartupError if it can never succeed."""

    async def close(self) -> None:
        """Releases the resources of `open`; a no-op if it is not open."""


class PromptedModel(Model, Protocol):
    """A model whose results record the prompt, as "fact_extraction@1"."""

    @property
    def prompt(self) -> str: ...


class Reranker(Model, Protocol):
    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Returns one score per text, in order; higher is better. Raises DependencyUnavailable.

        It may be canceled at any time, and then starts no further work.
        """


@dataclass(frozen=True)
class Rewriting:
    queries: Sequence[str] = ()
    answer: str | None = None


class QueryRewriter(Model, Protocol):
    async def rewrite(self, query: str, history: Sequence[Turn], *, agent_id: str) -> Rewriting: ...


FactVerdict = Literal["ADD", "UPDATE", "SUPERSEDE", "NOOP"]


class FactJudge(Model, Protocol):
    async def judge(self, old: RuleInput, new: RuleInput, *, agent_id: str) -> FactVerdict:
        """Returns SUPERSEDE if the new statement supersedes the old one; otherwise both remain current.

        Raises DependencyUnavailable.
        """


@dataclass(frozen=True)
class SourceText:
    text: str
    speaker: str | None
    said_at: datetime


@dataclass(frozen=True)
class Extraction:
    """Facts of one memory, each a self-contained sentence, and the entities it names."""

    facts: Sequence[str] = ()
    entities: Sequence[str] = ()


class FactExtractor(PromptedModel, Protocol):
    async def extract(self, said: Sequence[SourceText], *, agent_id: str) -> Sequence[Extraction]:
        """Returns one unvalidated extraction per memory, in order. Raises DependencyUnavailable."""


@dataclass(frozen=True)
class SummaryRequest:
    max_tokens: int
    instructions: str | None = None


@dataclass(frozen=True)
class WrittenSummary:
    """A summary written by a model; not validated."""

    text: str
    topics: Sequence[str] = ()
    key_facts: Sequence[str] = ()


class Summariser(PromptedModel, Protocol):
    async def summarise(self, said: Sequence[SourceText], wish: SummaryRequest, *, agent_id: str) -> WrittenSummary: ...


class Bill:
    """Usage of one request in tokens, input and output; None: the reserved amount is charged."""

    def __init__(self) -> None:
        self.known: tuple[int, int] | None = None

    def spent(self, input_tokens: int, output_tokens: int) -> None:
        self.known = _charged(input_tokens), _charged(output_tokens)

    def free(self) -> None:
        """Records that the request was refused or failed without cost."""
        self.known = 0, 0


def _charged(tokens: int) -> int:
    return min(MOST_CHARGED, max(0, tokens))


class Meter(Protocol):
    """Limits concurrent requests to language models and their daily budget."""

    def request(
        self, agent_id: str, work: str, text: str, output_tokens: int, *, urgent: bool
    ) -> AbstractAsyncContextManager[Bill]:
        """Admits one request, once a concurrency slot is free; `urgent` ones have one slot more.

        Raises DependencyUnavailable if the agent's budget is exhausted.
        """


@dataclass(frozen=True)
class RerankerOptions:
    """Options of all rerankers; each uses those that apply to it."""

    model_name: str | None = None
    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    timeout_seconds: float = 0.15


@dataclass(frozen=True)
class LlmOptions:
    """Options of a language model's provider. Set `attempts` above 1 only for background work."""

    model_name: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    timeout_seconds: float = 5.0
    attempts: int = 1
    meter: Meter | None = None


def relevances_of(scores: Sequence[float], *, count: int) -> list[float]:
    """Returns a reranker's scores, through a sigmoid unless all are in [0, 1].

    Raises DependencyUnavailable if there are not `count` finite scores.
    """
    if len(scores) != count or not all(math.isfinite(score) for score in scores):
        raise DependencyUnavailable(
            f"The reranker answered with {len(scores)} scores, or with what is no number, where {count} "
            f"numbers were asked for.",
            data={"scores": len(scores)},
        )
    if all(0.0 <= score <= 1.0 for score in scores):
        return [float(score) for score in scores]
    # The sigmoid in terms of tanh, which cannot overflow.
    return [0.5 * (1.0 + math.tanh(0.5 * score)) for score in scores]
