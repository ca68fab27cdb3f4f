"""What a response of the service says: results, or the errors of `agentcore.errors`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from agentcore.errors import (
    AgentCoreError,
    AuthenticationFailed,
    DependencyUnavailable,
    NotAuthorised,
    RateLimited,
    TooLarge,
    from_wire,
)

# Of an answer that is no JSON-RPC: said by what stands before the service, which itself was not reached.
_BY_STATUS: Mapping[int, type[AgentCoreError]] = {
    401: AuthenticationFailed, 403: NotAuthorised, 413: TooLarge, 429: RateLimited,
}


def result_of(response: httpx.Response, url: str) -> Any:
    """The `result` of a JSON-RPC answer; raises its error, or says why it is no such answer."""
    answer = _json(response)
    found = _outcome(answer if isinstance(answer, dict) else {}, response, url)
    if isinstance(found, AgentCoreError):
        raise found
    return found


def outcomes_of(response: httpx.Response, url: str, ids: Sequence[int]) -> list[Any]:
    """Of a batch's answer: for each id the result, or the error, which is not raised here.

    Raises the error that answers the whole batch.
    """
    answers = _json(response)
    if not isinstance(answers, list):
        raise_for = _outcome(answers if isinstance(answers, dict) else {}, response, url)
        raise raise_for if isinstance(raise_for, AgentCoreError) else _status_error(response, url)
    by_id = {answer.get("id"): answer for answer in answers if isinstance(answer, dict)}
    return [_outcome(by_id.get(each, {}), response, url) for each in ids]


def _outcome(answer: dict[str, Any], response: httpx.Response, url: str) -> Any:
    if "result" in answer:
        return answer["result"]
    error = answer.get("error")
    if not isinstance(error, dict) or not isinstance(error.get("code"), int):
        return _status_error(response, url)
    data = dict(error["data"]) if isinstance(error.get("data"), dict) else {}
    if (seconds := _retry_after_seconds(response)) is not None:
        data.setdefault("retry_after_seconds", seconds)
    return from_wire(error["code"], str(error.get("message") or ""), data)


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _status_error(response: httpx.Response, url: str) -> AgentCoreError:
    known = _BY_STATUS.get(response.status_code, DependencyUnavailable)
    doubt = "." if known is not DependencyUnavailable or response.is_server_error else (
        ": is it the memory service?")
    seconds = _retry_after_seconds(response)
    return known(f"{url} answered HTTP {response.status_code} without a JSON-RPC answer{doubt}",
                 data=None if seconds is None else {"retry_after_seconds": seconds})


def _retry_after_seconds(response: httpx.Response) -> float | None:
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None
