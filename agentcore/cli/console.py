"""console: a sign-in link for a browser."""

from __future__ import annotations

import asyncio
import sys
import webbrowser
from http import HTTPStatus
from typing import Annotated

import httpx
import typer

from agentcore.cli import options
from agentcore.cli.app import app, say
from agentcore.cli.calls import DEFAULT_SCOPES, access_of
from agentcore.client import TokenSource
from agentcore.client.connection import Credential
from agentcore.errors import AgentCoreError, AuthenticationFailed, DependencyUnavailable

LINKS = "/console/links"
TIMEOUT_SECONDS = 10.0
ADMIN = "memory:admin"
# Lifetime of the token that --agent creates; a session is not longer.
TOKEN_SECONDS = 8 * 3_600


@app.command("console", "agentcore console --agent my-agent", "agentcore console --no-open")
@options.client
def console(
    context: typer.Context,
    admin: Annotated[
        bool, typer.Option("--admin", help="With --agent: the session may also erase and change rules.")
    ] = False,
    open_browser: Annotated[bool, typer.Option("--open/--no-open", help="Open the link in a browser.")] = True,
) -> None:
    """Print and open a link that signs a browser in to the console, once.

    The link is valid for two minutes; the session ends after eight hours, and
    with the token.
    """
    if admin and context.params.get("agent") is None:
        raise typer.BadParameter("--admin needs --agent: the scopes of your own token are set where it is made")
    scopes = [*DEFAULT_SCOPES, ADMIN] if admin else DEFAULT_SCOPES
    link = asyncio.run(_link(*access_of(context, scopes, TOKEN_SECONDS)))
    if options.printed_as_json(context, {"url": link}):
        return
    typer.echo(link)
    if open_browser and sys.stdout.isatty() and not webbrowser.open(link):
        say("no browser was found: open the link yourself")


async def _link(address: str, source: TokenSource) -> str:
    """Raises AuthenticationFailed, DependencyUnavailable and AgentCoreError."""
    token = await Credential(source, TIMEOUT_SECONDS).token()
    url = address.rstrip("/")
    try:
        async with httpx.AsyncClient(timeout=TIMEOUT_SECONDS) as client:
            response = await client.post(f"{url}{LINKS}", headers={"Authorization": f"Bearer {token}"})
    except httpx.HTTPError as cause:
        raise DependencyUnavailable(f"The service at {url} does not answer: is `agentcore serve` running?") from cause
    if response.status_code == HTTPStatus.NOT_FOUND:
        raise AgentCoreError(f"The service at {url} serves no console: start it with CONSOLE=on.")
    try:
        answer = response.json()
        said = answer["path"] if response.is_success else answer["error"]
    except (ValueError, KeyError, TypeError) as cause:
        raise DependencyUnavailable(f"{url} answered {response.status_code}, and not as this service does.") from cause
    if response.status_code == HTTPStatus.UNAUTHORIZED:
        raise AuthenticationFailed(said)
    if not response.is_success:
        raise AgentCoreError(said)
    return f"{url}{said}"
