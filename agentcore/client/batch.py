"""Calls made at the same time, sent as one JSON-RPC batch; each gets its own answer."""

from __future__ import annotations

import asyncio
import copy
import functools
from collections.abc import Sequence
from typing import Any

from agentcore.client.answers import outcomes_of
from agentcore.client.connection import Body, Connection
from agentcore.errors import AgentCoreError, TooLarge

MOST_CALLS = 100
# Turns of the event loop in which no call joined: then the batch goes.
QUIET_TURNS = 2

_Key = tuple[str, str | None]
_Waiting = tuple[Body, "asyncio.Future[Any]"]


class Batch:
    """Gathers what is sent in the same turns of the event loop. A batch that is too large goes in halves."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: dict[_Key, list[_Waiting]] = {}
        self._deliveries: set[asyncio.Task[None]] = set()

    async def send(self, body: Body, token: str, traceparent: str | None) -> Any:
        """The call's own result; raises its own error, or the one of the whole batch."""
        self._connection.must_be_open()
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault((token, traceparent), [])
        answer: asyncio.Future[Any] = loop.create_future()
        waiting.append((body, answer))
        if len(waiting) == 1:
            loop.call_soon(self._look, (token, traceparent), 1, QUIET_TURNS)
        return await answer

    def _look(self, key: _Key, seen: int, turns_left: int) -> None:
        waiting = self._waiting[key]
        grew = len(waiting) > seen
        if grew or turns_left:
            left = QUIET_TURNS if grew else turns_left - 1
            asyncio.get_running_loop().call_soon(self._look, key, len(waiting), left)
            return
        del self._waiting[key]
        for first in range(0, len(waiting), MOST_CALLS):
            self._start(waiting[first:first + MOST_CALLS], key)

    def _start(self, calls: Sequence[_Waiting], key: _Key) -> None:
        delivery = asyncio.create_task(self._deliver(calls, key))
        self._deliveries.add(delivery)
        delivery.add_done_callback(functools.partial(self._end, calls))

    def _end(self, calls: Sequence[_Waiting], delivery: asyncio.Task[None]) -> None:
        self._deliveries.discard(delivery)
        failure = None if delivery.cancelled() else delivery.exception()
        for _, answer in calls:
            if delivery.cancelled():
                answer.cancel()
            elif failure is not None:
                _settle(answer, failure)

    async def _deliver(self, calls: Sequence[_Waiting], key: _Key) -> None:
        try:
            outcomes = await self._outcomes([body for body, _ in calls], key)
        except TooLarge as failure:
            if len(calls) > 1:
                half = len(calls) // 2
                self._start(calls[:half], key)
                self._start(calls[half:], key)
                return
            outcomes = [failure]
        for (_, answer), outcome in zip(calls, outcomes, strict=True):
            _settle(answer, outcome)

    async def _outcomes(self, bodies: Sequence[Body], key: _Key) -> list[Any]:
        if len(bodies) == 1:
            return [await self._connection.send(bodies[0], *key)]
        response = await self._connection.post([dict(body) for body in bodies], *key)
        return outcomes_of(response, self._connection.url, [body["id"] for body in bodies])


def _settle(answer: asyncio.Future[Any], outcome: Any) -> None:
    if answer.done():  # its caller has given up
        return
    if isinstance(outcome, AgentCoreError):
        # One for each caller: what is raised twice would tell both callers' tracebacks.
        own = copy.copy(outcome)
        own.__cause__ = outcome.__cause__
        answer.set_exception(own)
    elif isinstance(outcome, BaseException):
        answer.set_exception(outcome)
    else:
        answer.set_result(outcome)
