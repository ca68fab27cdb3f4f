"""Limits models other than the embedder: timeout, concurrency, and an agent's daily budget.

The budget is in the database; the maximum cost of a request is reserved before it is sent.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import date
from typing import ClassVar, Generic, TypeVar

from agentcore.circuit_breaker import CircuitBreaker
from agentcore.errors import AgentCoreError, DependencyUnavailable
from agentcore.memory.llm import Bill, FactJudge, FactVerdict, QueryRewriter, Reranker, Rewriting, relevances_of
from agentcore.memory.params.memories import Turn
from agentcore.memory.statements.statements import RuleInput
from agentcore.memory.storage import MemoryStorage
from agentcore.structured_settings import MICROS, LlmUseOptions
from agentcore.telemetry import Metrics

Answer = TypeVar("Answer")
ModelT = TypeVar("ModelT", Reranker, QueryRewriter, FactJudge)

# How long the circuit stays open after a timeout.
REST_SECONDS = 30.0


class _Limited(Generic[ModelT]):
    """A model with a timeout, which opens the circuit. A model may report the timeout itself (`data.late`)."""

    use: ClassVar[str]

    def __init__(self, inner: ModelT, *, timeout_seconds: float, rest_seconds: float = REST_SECONDS) -> None:
        self.model, self.open, self.close = inner.model, inner.open, inner.close
        # The last failure; None after a success.
        self.problem: str | None = None
        self.circuit = CircuitBreaker(self.use, "calls go on without it", rest_seconds)
        self._inner: ModelT = inner
        self._timeout_seconds = timeout_seconds

    async def _wait_for(self, asking: Callable[[], Awaitable[Answer]]) -> Answer:
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
    """Whether the request was refused because the agent's daily budget is exhausted."""
    return failure.data.get("budget") is not None


class LimitedReranker(_Limited[Reranker]):
    use = "reranker"

    def __init__(self, inner: Reranker, *, candidates: int, timeout_seconds: float) -> None:
        super().__init__(inner, timeout_seconds=timeout_seconds)
        self.candidates = candidates

    async def relevances(self, query: str, texts: Sequence[str]) -> list[float]:
        """Returns how well each text answers, 0 to 1. Raises DependencyUnavailable."""

        async def scored() -> list[float]:
            return relevances_of(await self._inner.score(query, texts), count=len(texts))

        return await self._wait_for(scored)


class LimitedRewriter(_Limited[QueryRewriter]):
    use = "query_rewriter"

    async def rewrite(self, query: str, history: Sequence[Turn], *, agent_id: str) -> Rewriting:
        """Raises DependencyUnavailable; without a request while the circuit is open."""
        return await self._wait_for(lambda: self._inner.rewrite(query, history, agent_id=agent_id))


class LimitedFactJudge(_Limited[FactJudge]):
    use = "fact_judge"

    async def judge_all(
        self, pairs: Sequence[tuple[RuleInput, RuleInput]], *, agent_id: str
    ) -> list[FactVerdict | DependencyUnavailable]:
        """Returns the verdict, or the error, for each pair (old, new); one timeout covers all."""

        async def judged(old: RuleInput, new: RuleInput) -> FactVerdict | DependencyUnavailable:
            try:
                return await self._wait_for(lambda: self._inner.judge(old, new, agent_id=agent_id))
            except DependencyUnavailable as failure:
                return failure

        return await asyncio.gather(*(judged(old, new) for old, new in pairs))


logger = logging.getLogger(__name__)
CROWDED = "There is no room for another request to language models now."
# Reserved: the counted tokens times SAFETY, since another model counts differently, plus the request format.
SAFETY, FORM_TOKENS = 1.25, 64
# Timeout of urgent requests, to enter the meter and again to correct the account.
LONGEST_WAIT_SECONDS = 0.5


@dataclass(frozen=True)
class _Reserved:
    day: date
    input_tokens: int
    output_tokens: int


class LlmMeter:
    def __init__(
        self,
        storage: MemoryStorage,
        options: LlmUseOptions,
        count_tokens: Callable[[str], int],
        metrics: Metrics | None = None,
    ) -> None:
        self.options = options
        self._storage = storage
        self._count_tokens = count_tokens
        self._metrics = metrics
        self._room = asyncio.Semaphore(options.concurrency)
        # Background requests leave one slot for urgent ones, unless there is only one.
        self._spare_room = asyncio.Semaphore(max(1, options.concurrency - 1))

    @asynccontextmanager
    async def request(
        self, agent_id: str, work: str, text: str, output_tokens: int, *, urgent: bool
    ) -> AsyncIterator[Bill]:
        """Reserves the maximum cost, and corrects it at the end by the bill.

        Raises DependencyUnavailable; `data.crowded`: no slot was free in time for an urgent request.
        """
        longest_wait_seconds = LONGEST_WAIT_SECONDS if urgent else None
        async with AsyncExitStack() as room:
            try:
                async with asyncio.timeout(longest_wait_seconds):
                    if not urgent:
                        await room.enter_async_context(self._spare_room)
                    await room.enter_async_context(self._room)
                    reserved = await self._reserve(agent_id, work, text, output_tokens)
            except TimeoutError as cause:
                self._count(work, "crowded")
                raise DependencyUnavailable(CROWDED, data={"crowded": True}) from cause
            bill, outcome = Bill(), "failed"
            try:
                yield bill
                outcome = "answered"
            finally:
                self._count(work, outcome)
                async with _at_most(longest_wait_seconds):
                    await self._close(agent_id, work, reserved, bill)

    async def _reserve(self, agent_id: str, work: str, text: str, output_tokens: int) -> _Reserved:
        options = self.options
        input_tokens = math.ceil(SAFETY * self._count_tokens(text)) + FORM_TOKENS
        async with self._storage.transaction(agent_id, record_lsn=False) as transaction:
            day = await transaction.llm.reserve(
                input_tokens + output_tokens,
                options.micros(input_tokens, output_tokens),
                most_tokens=options.tokens_a_day,
                most_micros=options.cost_a_day * MICROS,
            )
            if day is None:
                await transaction.llm.note_refusal()
        if day is None:
            self._count(work, "refused")
            raise DependencyUnavailable(
                "The budget of this agent for language models is used up for today.",
                data={"budget": {"tokens_a_day": options.tokens_a_day, "cost_a_day": str(options.cost_a_day)}},
            )
        return _Reserved(day, input_tokens, output_tokens)

    async def _close(self, agent_id: str, work: str, reserved: _Reserved, bill: Bill) -> None:
        input_tokens, output_tokens = bill.known or (reserved.input_tokens, reserved.output_tokens)
        if self._metrics is not None:
            cost = self.options.micros(input_tokens, output_tokens) / MICROS
            self._metrics.llm_spent(work, input_tokens, output_tokens, float(cost))
        if bill.known is None:
            return
        more = input_tokens + output_tokens - reserved.input_tokens - reserved.output_tokens
        cost_micros = self.options.micros(input_tokens, output_tokens) - self.options.micros(
            reserved.input_tokens, reserved.output_tokens
        )
        async with self._storage.transaction(agent_id, record_lsn=False) as transaction:
            await transaction.llm.settle(reserved.day, more, cost_micros)

    def _count(self, work: str, outcome: str) -> None:
        if self._metrics is not None:
            self._metrics.llm_asked(work, outcome)


@asynccontextmanager
async def _at_most(seconds: float | None) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except DependencyUnavailable as failure:
        logger.warning("a request's cost was not put right: %s", failure.message)
    except TimeoutError:
        logger.warning("a request's cost was not put right: the account was not reached in time")
