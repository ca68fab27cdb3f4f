"""Routes of the console, sign-in, and the checks of every request.

A session belongs to one token: isolation, scopes, rate limit and logs are those of the methods that the pages call.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentcore.admission import RateLimit
from agentcore.auth import Principal, TokenVerifier
from agentcore.client import MemoryClient
from agentcore.config import Settings
from agentcore.console.pages import PAGES
from agentcore.console.sessions import LINK_SECONDS, SESSION_SECONDS, ConsoleSessions, csrf_token
from agentcore.console.visit import PREFIX, ServiceStatus, Visit, make_templates, read_form
from agentcore.errors import (
    AgentCoreError,
    AuthenticationFailed,
    Conflict,
    DependencyUnavailable,
    InvalidParams,
    NotAuthorised,
    NotFound,
    RateLimited,
    TooLarge,
)

COOKIE = "agentcore_console"
MAX_SIGN_IN_BYTES = 65_536
# By client address, in this process.
FAILED_SIGN_INS_PER_MINUTE = 10
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")
# HTTP status by class of error; 500 for others.
STATUS = {
    AuthenticationFailed: 401,
    NotAuthorised: 403,
    NotFound: 404,
    Conflict: 409,
    TooLarge: 413,
    InvalidParams: 422,
    RateLimited: 429,
    DependencyUnavailable: 503,
}
# No script or style but our own files; no request to another host.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # With "no-referrer", browsers send the origin of a form as "null", which the check of the origin rejects.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}

logger = logging.getLogger(__name__)


def console_is_on(settings: Settings, address: str) -> bool:
    """Returns the setting; by default on if the service listens on loopback only."""
    return is_loopback(address) if settings.console is None else settings.console


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Console:
    """The application at /console; `rpc` answers JSON-RPC."""

    def __init__(
        self,
        settings: Settings,
        sessions: ConsoleSessions,
        verifier: TokenVerifier,
        status: ServiceStatus,
        rpc: ASGIApp,
    ) -> None:
        named = (each.strip().lower() for each in settings.console_hosts.split(","))
        self._hosts = frozenset([*LOOPBACK_NAMES, *filter(None, named)])
        self._sessions = sessions
        self._verifier = verifier
        self._status = status
        self._rpc = rpc
        self._templates = make_templates()
        self._failures = RateLimit(FAILED_SIGN_INS_PER_MINUTE)

    def mount(self) -> Mount:
        routes = [
            Route("/sign-in", self._sign_in, methods=["GET", "POST"]),
            Route("/links", self._create_link, methods=["POST"]),
            Route("/sign-out", self._page(self._sign_out), methods=["POST"]),
            *(Route(path, self._page(page), methods=[method]) for path, method, page in PAGES),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ]
        return Mount(PREFIX, routes=routes, middleware=[Middleware(_Guard, self._hosts)])

    # --- sign-in -------------------------------------------------------------------------------------------

    async def _create_link(self, request: Request) -> Response:
        """Exchanges a token for a link that is valid once."""
        try:
            principal = await self._verifier.verify(request.headers.get("authorization"))
            token = request.headers["authorization"].partition(" ")[2].strip()
            link = await self._sessions.create(token, LINK_SECONDS, is_link=True)
        except AgentCoreError as error:
            return JSONResponse({"error": error.message}, _status(error))
        _log("console link created", principal)
        return JSONResponse({"path": f"{PREFIX}/sign-in?link={link}", "expires_in_seconds": LINK_SECONDS})

    async def _sign_in(self, request: Request) -> Response:
        """Shows the form; a post exchanges a token or a link for a session.

        A link is redeemed by a post only: previews of links do not use it up, and other sites cannot sign a browser in.
        """
        if request.method != "POST":
            return self._sign_in_page(link=request.query_params.get("link"))
        try:
            form = await read_form(request, MAX_SIGN_IN_BYTES)
            with self._limit_failures(client_network(request)):
                token = await self._given_token(form)
                principal = await self._verifier.verify(f"Bearer {token}")
                seconds = min(SESSION_SECONDS, principal.expires_at - time.time())
                if seconds < 1:
                    raise AuthenticationFailed("The token has expired.")
                session_id = await self._sessions.create(token, seconds)
        except AgentCoreError as error:
            return self._sign_in_page(error)
        _log("console sign-in", principal)
        response = RedirectResponse(f"{PREFIX}/", 303)
        response.set_cookie(
            COOKIE,
            session_id,
            max_age=int(seconds),
            path=PREFIX,
            httponly=True,
            samesite="strict",
            secure=not is_loopback(_host_name(request) or ""),
        )
        return response

    @contextmanager
    def _limit_failures(self, address: str) -> Iterator[None]:
        """Limits failed sign-ins of an address. Each attempt counts at its start, so that parallel guesses do."""
        try:
            self._failures.admit(address, 1)
        except RateLimited as error:
            raise RateLimited("Too many failed sign-ins from your address: wait a moment.", data=error.data) from error
        failed = False
        try:
            yield
        except AuthenticationFailed:
            failed = True
            raise
        finally:
            if not failed:
                self._failures.refund(address, 1)

    async def _given_token(self, form: Mapping[str, Sequence[str]]) -> str:
        if "link" not in form:
            return "".join(form.get("token", [])).strip()
        token = await self._sessions.redeem(form["link"][-1])
        if token is None:
            raise AuthenticationFailed("This link was used or has expired: run `agentcore console` for another.")
        return token

    def _sign_in_page(self, error: AgentCoreError | None = None, link: str | None = None) -> Response:
        problem, status = ("", 200) if error is None else (error.message, _status(error))
        headers = {}
        if isinstance(error, RateLimited):
            headers["Retry-After"] = str(math.ceil(error.data["retry_after_seconds"]))
        page = self._templates.get_template("sign_in.html").render(problem=problem, link=link)
        return HTMLResponse(page, status, headers)

    async def _sign_out(self, visit: Visit) -> Response:
        await self._sessions.end(visit.request.cookies[COOKIE])
        _log("console sign-out", visit.principal)
        response = RedirectResponse(f"{PREFIX}/sign-in", 303)
        response.delete_cookie(COOKIE, path=PREFIX)
        return response

    # --- pages ---------------------------------------------------------------------------------------------

    def _page(self, page: Callable[[Visit], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            session_id = request.cookies.get(COOKIE, "")
            try:
                token = await self._sessions.token(session_id) if session_id else None
                principal = await self._verifier.verify(f"Bearer {token}") if token else None
            except AuthenticationFailed:
                token = principal = None
            except AgentCoreError as error:  # the database, or the source of the keys
                return self._sign_in_page(error)
            if token is None or principal is None:
                return self._signed_out(request)
            open_memory = partial(MemoryClient.in_process, self._rpc, token)
            async with open_memory(max_attempts=1) as memory:
                visit = Visit(
                    request, principal, csrf_token(session_id), memory, open_memory, self._templates, self._status
                )
                try:
                    if request.method == "POST":
                        visit.form = await read_form(request)
                        _check_csrf(visit)
                    return await page(visit)
                except AgentCoreError as error:
                    return visit.render(
                        "error_part.html" if visit.wants_fragment else "error.html", _status(error), error=error
                    )

        return endpoint

    def _signed_out(self, request: Request) -> Response:
        if "hx-request" in request.headers:
            return Response(status_code=401, headers={"HX-Redirect": f"{PREFIX}/sign-in"})
        if request.method != "GET":
            return self._sign_in_page(AuthenticationFailed("Your session has ended: sign in again."))
        return RedirectResponse(f"{PREFIX}/sign-in", 303)


def _check_csrf(visit: Visit) -> None:
    given = visit.request.headers.get("x-csrf-token") or "".join(visit.form.get("csrf", [])[-1:])
    if not hmac.compare_digest(given.encode(), visit.csrf.encode()):
        raise NotAuthorised("This form is from another session: reload the page.")


def _status(error: AgentCoreError) -> int:
    return next((status for kind, status in STATUS.items() if isinstance(error, kind)), 500)


def client_network(request: Request) -> str:
    """Returns the address of the client; for IPv6 its /64 network, which one client usually controls."""
    host = request.client.host if request.client else ""
    try:
        address = ipaddress.ip_address(host)
        if isinstance(address, ipaddress.IPv4Address):
            return host
        return str(address.ipv4_mapped or ipaddress.ip_network(f"{address}/64", strict=False))
    except ValueError:
        return host


def _log(event: str, principal: Principal) -> None:
    logger.info(event, extra={"agent_id": principal.agent_id, "token_id": principal.token_id})


class _Guard:
    """Rejects requests for other host names (DNS rebinding) and changes from other origins; adds headers."""

    def __init__(self, app: ASGIApp, hosts: frozenset[str]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        problem = self._problem(request)
        app = self._app if problem is None else JSONResponse({"error": problem}, 403)
        is_static = scope["path"].startswith(f"{PREFIX}/static/")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers["Cache-Control"] = "no-cache" if is_static else "no-store"
            await send(message)

        try:
            await app(scope, receive, send_with_headers)
        except HTTPException as refusal:
            answer = JSONResponse({"error": refusal.detail}, refusal.status_code, headers=refusal.headers)
            await answer(scope, receive, send_with_headers)

    def _problem(self, request: Request) -> str | None:
        name = _host_name(request)
        if name not in self._hosts:
            return f"This console does not serve the host {name!r}: add it to CONSOLE_HOSTS."
        if request.method in ("GET", "HEAD"):
            return None
        host = request.headers.get("host", "").lower()
        if request.headers.get("origin", f"http://{host}").lower() not in (f"http://{host}", f"https://{host}"):
            return "Origin not allowed."
        if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return "Origin not allowed."
        return None


def _host_name(request: Request) -> str | None:
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        return None
