"""Calls a running service: creates a client from the command's options or the environment.

It never reads a `.env` file: someone else's directory must not decide where texts and tokens are sent.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import httpx
import stamina.instrumentation
import typer
from stamina.instrumentation import RetryDetails

from agentcore.cli import options
from agentcore.cli.app import say
from agentcore.client import MemoryClient, TokenSource
from agentcore.config import Settings, environment_settings
from agentcore.errors import ConfigurationError, RateLimited
from agentcore.memory.api import Method
from agentcore.memory.models import Strict
from agentcore.registry import resolve

OWN_TOKEN_SECONDS = 600
TOLD_WAIT_SECONDS = 1.0
DEFAULT_SCOPES: Sequence[str] = ("memory:read", "memory:write")
# Imported lazily: only --agent needs the packages that create a token.
CREATES_TOKENS = {"server": "agentcore.cli.token:token_for"}

ReturnT = TypeVar("ReturnT")
ParamsT = TypeVar("ParamsT", bound=Strict)
ResultT = TypeVar("ResultT", bound=Strict)


def ask(
    context: typer.Context,
    question: Callable[[MemoryClient], Awaitable[ReturnT]],
    *,
    max_attempts: int = 3,
    timeout_seconds: float = 60.0,
    scopes: Sequence[str] = DEFAULT_SCOPES,
) -> ReturnT:
    """Calls the service that --url, --token and --agent select, with a token of `scopes` for --agent."""
    stamina.instrumentation.set_on_retry_hooks([_tell_of_waiting])

    async def asked() -> ReturnT:
        async with _client(context, max_attempts, timeout_seconds, scopes) as client:
            return await question(client)

    return asyncio.run(asked())


def call(
    context: typer.Context,
    method: Method[..., ParamsT, ResultT],
    params: ParamsT | None = None,
    *,
    scopes: Sequence[str] = DEFAULT_SCOPES,
) -> ResultT:
    """Calls a method of the service; the params default to the command's options."""
    sent = options.given(context, method.params) if params is None else params
    return ask(context, lambda memory: memory.call(method, sent), scopes=scopes)


def answer(context: typer.Context, method: Method[..., ParamsT, ResultT], params: ParamsT | None = None) -> ResultT:
    """Calls a method of the service; with --json prints the result and ends the command."""
    result = call(context, method, params)
    if options.printed_as_json(context, result):
        raise typer.Exit
    return result


def _tell_of_waiting(details: RetryDetails) -> None:
    if isinstance(details.caused_by, RateLimited) and details.wait_for >= TOLD_WAIT_SECONDS:
        say(f"the rate limit is reached: trying again in {details.wait_for:.0f} s")


def access_of(
    context: typer.Context, scopes: Sequence[str], token_seconds: int = OWN_TOKEN_SECONDS
) -> tuple[str, TokenSource]:
    """Returns the address and the token that --url, --token and --agent select; `token_seconds` for --agent."""
    url, token, agent = (context.params.get(name) for name in ("url", "token", "agent"))
    if token is not None and agent is not None:
        raise typer.BadParameter("pass either --token or --agent", ctx=context)
    settings = environment_settings()
    address = url or settings.agentcore_url
    if agent is not None and url is None and not _is_loopback(address):
        raise ConfigurationError(
            [
                f"--agent makes a token, and AGENTCORE_URL={address} is another machine: type --url {address} if "
                "the token may go there, or give --token."
            ]
        )
    return address, _token_source(settings, token, agent, scopes, token_seconds)


def _client(context: typer.Context, max_attempts: int, timeout_seconds: float, scopes: Sequence[str]) -> MemoryClient:
    address, token = access_of(context, scopes)
    return MemoryClient(address, token, max_attempts=max_attempts, timeout_seconds=timeout_seconds)


def _is_loopback(url: str) -> bool:
    try:
        host = httpx.URL(url).host
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except (httpx.InvalidURL, ValueError):
        return False


def _token_source(
    settings: Settings, token: str | None, agent: str | None, scopes: Sequence[str], token_seconds: int
) -> TokenSource:
    if token is not None:
        return token
    if agent is not None:
        create = resolve("server", CREATES_TOKENS, kind="part behind --agent")
        return lambda: str(create(settings, agent, scopes, token_seconds))
    if settings.agentcore_token is not None:
        return settings.agentcore_token.get_secret_value()
    raise ConfigurationError(
        [
            "No token: set AGENTCORE_TOKEN in the environment (`agentcore token --agent my-agent` prints one), "
            "or add --agent my-agent where the embedded service's home is on this machine."
        ]
    )
