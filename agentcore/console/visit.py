"""One request of a signed-in browser: its memory client, its form, and how it renders pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode
from uuid import UUID

from jinja2 import Environment, PackageLoader
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from agentcore.auth import Principal
from agentcore.client import MemoryClient
from agentcore.console import display
from agentcore.console.history import MetricHistory
from agentcore.errors import InvalidParams, NotFound, TooLarge
from agentcore.limits import REQUEST_SECONDS
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.memories import GetResult

PREFIX = "/console"
MAX_FORM_BYTES = 2_000_000
MAX_FORM_FIELDS = 2_000
CONCURRENT_READS = 8


def make_templates() -> Environment:
    templates = Environment(
        loader=PackageLoader("agentcore.console"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters.update(
        count=display.count,
        json_text=display.as_text,
        share=display.share,
        shortened=display.shortened,
        visible=display.visible,
        when=display.when,
    )
    templates.globals.update(prefix=PREFIX)
    return templates


@dataclass(frozen=True)
class ServiceStatus:
    """The metrics of the last hour, and the state of each dependency."""

    history: MetricHistory
    readiness: Callable[[], Awaitable[Mapping[str, Mapping[str, Any]]]]


@dataclass
class Visit:
    """`memory` is closed when the page returns; `open_memory` returns a client for a response that is streamed."""

    request: Request
    principal: Principal
    csrf: str
    memory: MemoryClient
    open_memory: Callable[..., MemoryClient]
    templates: Environment
    status: ServiceStatus
    form: Mapping[str, list[str]] = field(default_factory=dict)

    @property
    def wants_fragment(self) -> bool:
        """Whether htmx sent the request: it replaces a part of the page."""
        headers = self.request.headers
        return "hx-request" in headers and "hx-history-restore-request" not in headers

    @property
    def path(self) -> str:
        return str(self.request.scope["path"])

    def may(self, scope: str) -> bool:
        return scope in self.principal.scopes

    def text(self, name: str, default: str = "") -> str:
        """Returns the last value of a field of the form or the query string, stripped."""
        return (self.texts(name) or [default])[-1]

    def texts(self, name: str) -> list[str]:
        """Returns the non-empty values of a field."""
        given = self.form[name] if name in self.form else self.request.query_params.getlist(name)
        return [each.strip() for each in given if each.strip()]

    def exact(self, name: str) -> str:
        """Returns the last value of a field as it was sent: an id may begin or end with a space."""
        return (self.form.get(name) or self.request.query_params.getlist(name) or [""])[-1]

    def number(self, name: str) -> float | int | None:
        """Raises InvalidParams unless the field is empty or a number."""
        given = self.text(name)
        try:
            return (int(given) if given.lstrip("-").isdecimal() else float(given)) if given else None
        except ValueError as cause:
            raise InvalidParams(f"{name} is not a number.") from cause

    def moment(self, name: str) -> datetime | None:
        """Reads a field as ISO 8601, in UTC if it has no zone. Raises InvalidParams."""
        given = self.text(name)
        if not given:
            return None
        try:
            read = datetime.fromisoformat(given)
            return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)
        except (ValueError, OverflowError) as cause:
            raise InvalidParams(f"{name} is not a time: write 2026-05-01 or 2026-05-01T17:30.") from cause

    def labels(self, name: str) -> list[str]:
        """Returns the comma-separated parts of a field."""
        return [part.strip() for each in self.texts(name) for part in each.split(",") if part.strip()]

    def ids(self, name: str) -> list[UUID]:
        """Returns the chosen memories. Raises InvalidParams if there is none, or an id is not valid."""
        try:
            chosen = [UUID(each) for each in self.labels(name)]
        except ValueError as cause:
            raise InvalidParams("A chosen memory has no valid id.") from cause
        if not chosen:
            raise InvalidParams("Choose at least one memory.")
        return chosen

    def with_cursor(self, cursor: str) -> str:
        """Returns the query string of the next page."""
        return self.with_value("cursor", cursor)

    def with_value(self, name: str, value: str) -> str:
        """Returns the query string of the first page with another value of a field."""
        items = self.request.query_params.multi_items()
        kept = [(other, given) for other, given in items if given and other not in (name, "cursor")]
        return urlencode([*kept, (name, value)])

    def render(self, template: str, status: int = 200, **values: Any) -> Response:
        shown = self.templates.get_template(template).render(
            visit=self, agent_id=self.principal.agent_id, csrf=self.csrf, path=self.path, **values
        )
        return HTMLResponse(shown, status)

    def go(self, path: str) -> Response:
        """Redirects after a change, so that reloading the page repeats nothing."""
        return RedirectResponse(f"{PREFIX}{path}", 303)


def filters(visit: Visit, prefix: str = "") -> dict[str, Any]:
    """Returns the filters of a form that are set, by the names of the API."""
    given: dict[str, Any] = {
        "memory_types": visit.texts(f"{prefix}memory_types"),
        "after": visit.moment(f"{prefix}after"),
        "before": visit.moment(f"{prefix}before"),
        "min_importance": visit.number(f"{prefix}min_importance"),
    }
    for name in ("task_id", "session_id", "user_id", "namespace"):
        given[name] = visit.exact(f"{prefix}{name}")
    for name in ("entities", "keywords", "tags"):
        given[name] = visit.labels(f"{prefix}{name}")
    return {name: value for name, value in given.items() if value not in ("", [], None)}


# Path below /console, HTTP method, and the function that answers.
Page = tuple[str, str, Callable[[Visit], Awaitable[Response]]]


async def records(visit: Visit, memory_ids: Sequence[UUID]) -> list[MemoryRecord]:
    """Returns the memories that exist."""
    found: list[MemoryRecord] = []
    for start in range(0, len(memory_ids), CONCURRENT_READS):
        wanted = memory_ids[start : start + CONCURRENT_READS]
        read = await asyncio.gather(*(visit.memory.get(memory_id=each) for each in wanted), return_exceptions=True)
        for each in read:
            if isinstance(each, GetResult):
                found.append(each.memory)
            elif not isinstance(each, NotFound):
                raise each
    return found


async def read_form(request: Request, max_bytes: int = MAX_FORM_BYTES) -> dict[str, list[str]]:
    """Returns the fields of an urlencoded form. Raises TooLarge, InvalidParams."""
    chunks: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            async for chunk in request.stream():
                size += len(chunk)
                if size > max_bytes:
                    raise TooLarge(f"The form is larger than {max_bytes:,} bytes.")
                chunks.append(chunk)
        pairs = parse_qsl(
            b"".join(chunks).decode(), keep_blank_values=True, max_num_fields=MAX_FORM_FIELDS, errors="strict"
        )
    except (TimeoutError, ClientDisconnect, ValueError) as cause:
        raise InvalidParams("The form is not readable.") from cause
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return fields
