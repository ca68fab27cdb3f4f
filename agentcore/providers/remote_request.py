"""One request to a provider over HTTP: how it fails, what is said of that, and when it is tried again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import stamina

from agentcore.errors import DependencyUnavailable, Unreachable

FIRST_WAIT_SECONDS = 0.25
LONGEST_WAIT_SECONDS = 20.0
TRANSIENT = frozenset({408, 409, 425, 429})
REFUSED = frozenset({400, 413, 422})

Answer = TypeVar("Answer")


class RequestFailed(Exception):
    """One request came to nothing: with a status, or for want of an answer. Holds no text and no key."""

    def __init__(self, message: str, *, status: int | None = None, retry_after: str | None = None,
                 final: bool = False, unreadable: bool = False, late: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.unreadable = unreadable
        self.retry_after_seconds = _seconds(retry_after)
        self.late = late
        self.transient = not final and (status is None or status in TRANSIENT or status >= 500)

    def unavailable(self) -> DependencyUnavailable:
        """The same as an error of ours.

        `data.refused`: the text itself was not taken; `data.unreadable`: the answer was of no use;
        `data.late`: none came in time.
        """
        told = {"unreadable": self.unreadable, "late": self.late}
        details = {"status": self.status, "refused": self.status in REFUSED}
        answered = self.status is not None or self.unreadable
        return (DependencyUnavailable if answered else Unreachable)(
            self.message, data={**details, **{name: True for name, holds in told.items() if holds}})


@dataclass(frozen=True)
class Failures:
    """What can go wrong with requests of one kind, in words: "Cohere failed to embed (500)"."""

    vendor: str
    work: str
    answer: str
    model_name: str
    key_setting: str
    model_setting: str
    timeout_seconds: float

    def status(self, status: int, *, retry_after: str | None = None, final: bool = False) -> RequestFailed:
        """What an answer's status means, without a word of the answer: it may quote the key or a text."""
        if status in (401, 403):
            message = f"{self.vendor} refused the key ({status}): check {self.key_setting}."
        elif status == 404:
            message = f"{self.vendor} has no model {self.model_name!r} here ({status}): " \
                      f"check {self.model_setting}."
        elif status in REFUSED:
            message = f"{self.vendor} refused to {self.work} a text with {self.model_name!r} ({status})."
        elif status == 429:
            message = f"{self.vendor} takes no more requests for now ({status})."
        else:
            message = f"{self.vendor} failed to {self.work} ({status})."
        return RequestFailed(message, status=status, retry_after=retry_after, final=final)

    def unanswered(self) -> RequestFailed:
        message = f"{self.vendor} did not answer within {self.timeout_seconds:g} seconds."
        return RequestFailed(message, late=True)

    def unreachable(self) -> RequestFailed:
        return RequestFailed(f"{self.vendor} cannot be reached.")

    def unreadable(self) -> RequestFailed:
        return RequestFailed(f"{self.vendor} answered with what is no {self.answer}.", unreadable=True)

    def declined(self) -> RequestFailed:
        return RequestFailed(f"{self.vendor} declined to {self.work}.", final=True, unreadable=True)


async def persist(
    ask: Callable[[], Awaitable[Answer]], *, attempts: int, longest_wait_seconds: float = LONGEST_WAIT_SECONDS
) -> Answer:
    """What `ask` answers, tried again after passing trouble. Raises RequestFailed.

    A provider that says how long to wait is waited for, unless that is longer than the longest wait.
    """

    def wait(failure: Exception) -> bool | float:
        if not isinstance(failure, RequestFailed) or not failure.transient:
            return False
        if failure.retry_after_seconds is None:
            return True
        return failure.retry_after_seconds <= longest_wait_seconds and failure.retry_after_seconds

    first_wait_seconds = min(FIRST_WAIT_SECONDS, longest_wait_seconds)
    tries = stamina.retry_context(
        on=wait, attempts=attempts, timeout=None, wait_initial=first_wait_seconds,
        wait_max=longest_wait_seconds, wait_jitter=first_wait_seconds)
    async for attempt in tries:
        with attempt:
            return await ask()
    raise AssertionError("stamina gave no attempt")


def _seconds(retry_after: str | None) -> float | None:
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if seconds >= 0 else None
