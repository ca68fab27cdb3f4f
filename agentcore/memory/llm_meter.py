"""Limits concurrent requests to language models and the daily budget of an agent.

The budget is in the database; the maximum cost of a request is reserved before it is sent.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import date

from agentcore.errors import DependencyUnavailable
from agentcore.llm_options import MICROS, LlmUseOptions
from agentcore.memory.llm import Bill
from agentcore.memory.storage import MemoryStorage
from agentcore.telemetry import Metrics

logger = logging.getLogger(__name__)
CROWDED = "There is no room for another request to language models now."
# Other models tokenize differently: reserve a margin over our count, and tokens for the request format.
SAFETY, FORM_TOKENS = 1.25, 64
MOST_CHARGED = 10**9
# Timeout of urgent requests, once for slot and reservation, and once for the correction of the account.
LONGEST_WAIT_SECONDS = 0.5


@dataclass(frozen=True)
class _Reserved:
    day: date
    input_tokens: int
    output_tokens: int


class _OpenBill:
    def __init__(self) -> None:
        self.known: tuple[int, int] | None = None

    def spent(self, input_tokens: int, output_tokens: int) -> None:
        self.known = _charged(input_tokens), _charged(output_tokens)

    def free(self) -> None:
        self.known = 0, 0


class LlmMeter:
    """Concurrency limit and budgets of one process, shared by all models and uses."""

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
        # Background requests leave one slot to urgent ones, unless there is only one.
        self._spare_room = asyncio.Semaphore(max(1, options.concurrency - 1))

    @asynccontextmanager
    async def request(
        self, agent_id: str, work: str, text: str, output_tokens: int, *, urgent: bool
    ) -> AsyncIterator[Bill]:
        """Reserves the maximum cost of a request, and corrects it by its bill at the end.

        Raises DependencyUnavailable; `data.crowded`: an urgent request found no slot in time.
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
            bill, outcome = _OpenBill(), "failed"
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
        async with self._storage.transaction(agent_id) as transaction:
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
                data={"budget": {
                    "tokens_a_day": options.tokens_a_day, "cost_a_day": str(options.cost_a_day)}},
            )
        return _Reserved(day, input_tokens, output_tokens)

    async def _close(self, agent_id: str, work: str, reserved: _Reserved, bill: _OpenBill) -> None:
        input_tokens, output_tokens = bill.known or (reserved.input_tokens, reserved.output_tokens)
        if self._metrics is not None:
            cost = self.options.micros(input_tokens, output_tokens) / MICROS
            self._metrics.llm_spent(work, input_tokens, output_tokens, float(cost))
        if bill.known is None:
            return
        more = input_tokens + output_tokens - reserved.input_tokens - reserved.output_tokens
        cost_micros = self.options.micros(input_tokens, output_tokens) - self.options.micros(
            reserved.input_tokens, reserved.output_tokens)
        async with self._storage.transaction(agent_id) as transaction:
            await transaction.llm.settle(reserved.day, more, cost_micros)

    def _count(self, work: str, outcome: str) -> None:
        if self._metrics is not None:
            self._metrics.llm_asked(work, outcome)


@asynccontextmanager
async def _at_most(seconds: float | None) -> AsyncIterator[None]:
    """Limits the time to correct an account; after a timeout the reservation remains."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except DependencyUnavailable as failure:
        logger.warning("a request's cost was not put right: %s", failure.message)
    except TimeoutError:
        logger.warning("a request's cost was not put right: the account was not reached in time")


def _charged(tokens: int) -> int:
    return min(MOST_CHARGED, max(0, tokens))


