"""Limits of a connection: bytes and time of its headers, an unread response, and how many there may be."""

from __future__ import annotations

import asyncio
import logging
import resource
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import psutil
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from agentcore.limits import HEADER_SECONDS, MAX_HEADER_BYTES, UNREAD_SECONDS

# What a reader must take of its response in UNREAD_SECONDS.
LEAST_READ_BYTES = 65_536
# How long a refused client may go on sending: a reset would take the refusal from it.
LINGER_SECONDS = 2.0
# Files that threads, Redis, the archive and a start of a part may open.
RESERVED_FILES = 48
LEAST_CONNECTIONS = 4

logger = logging.getLogger(__name__)


class LimitedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which by itself accepts headers of any size and waits for them forever."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        # Bytes that were neither a complete header nor part of a body: headers, trailers, chunk sizes.
        self._unframed = 0
        self._reads_headers = True
        self._refused = False
        self._unread = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self.connections.discard(self)
            self._refuse(HTTPStatus.SERVICE_UNAVAILABLE, b"retry-after: 1\r\n")
            transport.close()  # without lingering: its file is needed
        else:
            self._start("headers", HEADER_SECONDS, self._headers_are_late)

    def connection_lost(self, exc: Exception | None) -> None:
        for name in list(self._timers):
            self._stop(name)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        answered = self.cycle is not None and self.cycle.response_complete
        if (self._reads_headers or answered) and "headers" not in self._timers:
            self._start("headers", HEADER_SECONDS, self._headers_are_late)
        rest = memoryview(data)
        while rest and not self.transport.is_closing():
            fits = MAX_HEADER_BYTES - self._unframed
            piece, rest = rest[:fits], rest[fits:]
            self._unframed += len(piece)
            super().data_received(bytes(piece))
            if self._unframed >= MAX_HEADER_BYTES and not self.transport.is_closing():
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
                break

    def on_headers_complete(self) -> None:
        self._unframed = 0
        self._reads_headers = False
        self._stop("headers")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._unframed = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unframed = 0
        self._reads_headers = True
        self._stop("headers")
        super().on_message_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.transport.get_write_buffer_size()
        self._start("unread", UNREAD_SECONDS, self._response_is_unread)

    def resume_writing(self) -> None:
        self._stop("unread")
        super().resume_writing()

    def _start(self, name: str, seconds: float, late: Any) -> None:
        self._stop(name)
        self._timers[name] = self.loop.call_later(seconds, late)

    def _stop(self, name: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()

    def _headers_are_late(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            return self._start("headers", HEADER_SECONDS, self._headers_are_late)
        return self.transport.abort()

    def _response_is_unread(self) -> None:
        left = self.transport.get_write_buffer_size()
        if self._unread - left < LEAST_READ_BYTES:
            return self.transport.abort()
        self._unread = left
        return self._start("unread", UNREAD_SECONDS, self._response_is_unread)

    def _refuse(self, status: HTTPStatus, header: bytes = b"") -> None:
        self._refused = True
        self._unset_keepalive_if_required()
        if self.cycle is not None and not self.cycle.response_complete:
            return self.transport.abort()
        body = f'{{"error": "{status.phrase}"}}'.encode()
        self.transport.write(
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n".encode() + header
            + f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.write_eof()
        return self._start("headers", LINGER_SECONDS, self.transport.abort)


def connection_limit(wanted: int, pool_size: int) -> int:
    """Returns how many connections may be open: no more than leaves files for the pools and the parts.

    Raises this process's soft limit of open files to its hard limit first.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # a system may allow less than the hard limit that it reports
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        soft = hard
    if soft == resource.RLIM_INFINITY:
        return wanted
    free = soft - int(psutil.Process().num_fds()) - RESERVED_FILES - 2 * pool_size
    if free < wanted:
        logger.warning("fewer connections than MAX_CONNECTIONS: the limit of open files is too low", extra={
            "connections": max(LEAST_CONNECTIONS, free), "open_files": soft,
            "hint": "raise the hard limit, such as ulimit -Hn or LimitNOFILE="})
    return min(wanted, max(LEAST_CONNECTIONS, free))
