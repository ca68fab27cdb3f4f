"""What keeps models beside the embedder inside their time, and remembers what each last failed of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import ClassVar, Generic, TypeVar

from agentcore.circuit_breaker import CircuitBreaker
from agentcore.errors import AgentCoreError, DependencyUnavailable
from agentcore.memory.llm import FactJudge, FactVerdict, QueryRewriter, Reranker, Rewriting, relevances_of
from agentcore.memory.params.memories import Turn
from agentcore.memory.statements.statements import Told

Answer = TypeVar("Answer")
ModelT = TypeVar("ModelT", QueryRewriter, FactJudge)

# Of the time a reranker has, the part that is planned with: no two searches take the same.
PLANNED_SHARE = 0.9
# With fewer texts there is no ranking to speak of.
LEAST_TEXTS = 5
# How fast a reranker that was too slow is given room again, a search: to twice as much in some 14.
RECOVERY = 1.05
# How long a rewriter that did not answer in time is left alone.
REST_SECONDS = 30.0


class Room:
    """How many texts a reranker gets through in its time, by what it took before; `most` to begin with."""

    def __init__(self, most: int, timeout_seconds: float) -> None:
        self._most = most
        self._timeout_seconds = timeout_seconds
        self._texts = float(most)

    def for_texts(self, count: int) -> int:
        """How many of so many to give it; 0 where too few would fit. Each 0 counts towards another try."""
        fitting = min(count, int(self._texts))
        if fitting == count or fitting >= LEAST_TEXTS:
            return fitting
        self._texts = min(self._most, self._texts * RECOVERY)
        return 0

    def took(self, count: int, seconds: float) -> None:
        """So many texts took so long."""
        fitting = min(float(self._most), count * PLANNED_SHARE * self._timeout_seconds / max(seconds, 1e-9))
        # Few texts say little of many: what each call takes by itself weighs more on them.
        if fitting > self._texts or count >= int(self._texts):
            self._texts = max(1.0, (self._texts + fitting) / 2)

    def overran(self, count: int) -> None:
        """So many texts were too many."""
        self._texts = max(1.0, min(self._texts, count / 2))


class LimitedReranker:
    """A reranker that is asked for no more than it gets through in its time."""

    def __init__(self, inner: Reranker, *, candidates: int, timeout_seconds: float) -> None:
        self.model = inner.model
        self.candidates = candidates
        self.timeout_ms = round(timeout_seconds * 1_000)
        self.problem: str | None = None
        self._inner = inner
        self._timeout_seconds = timeout_seconds
        self._room = Room(candidates, timeout_seconds)

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    def fitting(self, count: int) -> int:
        """How many of so many texts fit into its time, as far as is known; 0 for too few to be worth it."""
        return self._room.for_texts(count)

    async def relevances(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers, 0 to 1, in their order. Raises DependencyUnavailable."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                scores = await self._inner.score(query, texts)
            relevances = relevances_of(scores, count=len(texts))
        except TimeoutError as cause:
            self._room.overran(len(texts))
            self.problem = f"{self.model} did not answer within {self.timeout_ms} ms."
            raise DependencyUnavailable(self.problem) from cause
        except AgentCoreError as failure:
            self.problem = failure.message
            raise
        self._room.took(len(texts), time.monotonic() - began)
        self.problem = None
        return relevances


class _Limited(Generic[ModelT]):
    """A model with a time limit; its circuit opens when a request exceeds it. If the model reports the excess
    itself (`data.late`), only that counts, and never the time in its queue."""

    use: ClassVar[str]

    def __init__(
        self, inner: ModelT, *, timeout_seconds: float, rest_seconds: float = REST_SECONDS
    ) -> None:
        self.model = inner.model
        self.problem: str | None = None
        """What it last failed of; None since it answered."""
        self.circuit = CircuitBreaker(self.use, "calls go on without it", rest_seconds)
        self._inner: ModelT = inner
        self._timeout_seconds = timeout_seconds

    async def open(self) -> None:
        await self._inner.open()

    async def close(self) -> None:
        await self._inner.close()

    async def _wait_for(self, asking: Callable[[], Awaitable[Answer]]) -> Answer:
        """Raises DependencyUnavailable, at once while the circuit is open."""
        if not self.circuit.allow_request():
            raise DependencyUnavailable(f"{self.model} is left alone for a while: it was too slow.")
        try:
            async with asyncio.timeout(self._timeout_seconds):
                answer = await asking()
        except TimeoutError as cause:
            self._rest(f"{self.model} did not answer within {self._timeout_seconds:g} seconds.")
            raise DependencyUnavailable(self.problem or "") from cause
        except AgentCoreError as failure:
            if failure.data.get("late"):
                self._rest(failure.message)
            elif not _was_not_asked(failure):
                self.problem = failure.message
            raise
        self.problem = None
        self.circuit.record_success()
        return answer

    def _rest(self, problem: str) -> None:
        self.circuit.record_failure(problem)
        self.problem = problem


def _was_not_asked(failure: AgentCoreError) -> bool:
    return is_budget_spent(failure) or bool(failure.data.get("crowded"))


def is_budget_spent(failure: AgentCoreError) -> bool:
    """Whether a model was not asked because its agent's budget of the day is used up."""
    return failure.data.get("budget") is not None


class LimitedRewriter(_Limited[QueryRewriter]):
    """A rewriter with a time limit."""

    use = "query_rewriter"

    async def rewrite(self, query: str, history: Sequence[Turn], *, agent_id: str) -> Rewriting:
        """Raises DependencyUnavailable, at once while the circuit is open."""
        return await self._wait_for(lambda: self._inner.rewrite(query, history, agent_id=agent_id))


class LimitedFactJudge(_Limited[FactJudge]):
    """A judge of facts with a time limit."""

    use = "fact_judge"

    async def judge_all(
        self, pairs: Sequence[tuple[Told, Told]], *, agent_id: str
    ) -> list[FactVerdict | DependencyUnavailable]:
        """What it says of each pair of an old and a new statement, or why it says nothing.

        They are asked side by side: all together they take no longer than one may.
        """

        async def judged(old: Told, new: Told) -> FactVerdict | DependencyUnavailable:
            try:
                return await self._wait_for(lambda: self._inner.judge(old, new, agent_id=agent_id))
            except DependencyUnavailable as failure:
                return failure

        return await asyncio.gather(*(judged(old, new) for old, new in pairs))
