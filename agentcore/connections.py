"""Connection limits: header size and time, time to read a response, and the number of connections."""

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

# A client must read this much of a buffered response in UNREAD_SECONDS.
MIN_READ_BYTES = 65_536
# Drains what a rejected client still sends: closing at once would reset the connection and lose the reply.
DRAIN_SECONDS = 2.0
# File descriptors reserved for threads, Redis, the archive and the start of embedded servers.
RESERVED_FILES = 48
MIN_CONNECTIONS = 4

logger = logging.getLogger(__name__)


class LimitedProtocol(HttpToolsProtocol):
    """Adds limits to uvicorn's protocol, which has none for headers and unread responses."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn
        super().connection_made(transport)
        # Bytes since the last complete header block or body part: headers, trailers, chunk sizes.
        self._unframed = 0
        self._reads_headers = True
        self._rejected = False
        self._unread = 0
        self._timers: dict[str, asyncio.TimerHandle] = {}
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            self.connections.discard(self)
            self._reject(HTTPStatus.SERVICE_UNAVAILABLE, b"retry-after: 1\r\n")
            transport.close()  # without draining: the file descriptor is needed
        else:
            self._start("headers", HEADER_SECONDS, self._on_header_timeout)

    def connection_lost(self, exc: Exception | None) -> None:
        for name in list(self._timers):
            self._stop(name)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._rejected:
            return
        answered = self.cycle is not None and self.cycle.response_complete
        if (self._reads_headers or answered) and "headers" not in self._timers:
            self._start("headers", HEADER_SECONDS, self._on_header_timeout)
        rest = memoryview(data)
        while rest and not self.transport.is_closing():
            fits = MAX_HEADER_BYTES - self._unframed
            piece, rest = rest[:fits], rest[fits:]
            self._unframed += len(piece)
            super().data_received(bytes(piece))
            if self._unframed >= MAX_HEADER_BYTES and not self.transport.is_closing():
                self._reject(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
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
        self._start("unread", UNREAD_SECONDS, self._on_read_timeout)

    def resume_writing(self) -> None:
        self._stop("unread")
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._limit_flush()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._limit_flush()

    def shutdown(self) -> None:
        super().shutdown()
        self._limit_flush()

    def _limit_flush(self) -> None:
        """Limits the flush of a closed transport, which asyncio does not."""
        if self.transport.is_closing() and self.transport.get_write_buffer_size() > 0:
            self._start("flush", UNREAD_SECONDS, self.transport.abort)

    def _start(self, name: str, seconds: float, callback: Any) -> None:
        self._stop(name)
        self._timers[name] = self.loop.call_later(seconds, callback)

    def _stop(self, name: str) -> None:
        if name in self._timers:
            self._timers.pop(name).cancel()

    def _on_header_timeout(self) -> None:
        if self.cycle is not None and not self.cycle.response_complete:
            return self._start("headers", HEADER_SECONDS, self._on_header_timeout)
        return self.transport.abort()

    def _on_read_timeout(self) -> None:
        unread = self.transport.get_write_buffer_size()
        if self._unread - unread < MIN_READ_BYTES:
            return self.transport.abort()
        self._unread = unread
        return self._start("unread", UNREAD_SECONDS, self._on_read_timeout)

    def _reject(self, status: HTTPStatus, header: bytes = b"") -> None:
        self._rejected = True
        self._unset_keepalive_if_required()
        if self.cycle is not None and not self.cycle.response_complete:
            return self.transport.abort()
        body = f'{{"error": "{status.phrase}"}}'.encode()
        self.transport.write(
            f"HTTP/1.1 {status.value} {status.phrase}\r\ncontent-type: application/json\r\n".encode() + header
            + f"connection: close\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        self.transport.write_eof()
        return self._start("headers", DRAIN_SECONDS, self.transport.abort)


def connection_limit(wanted: int, pool_size: int) -> int:
    """Returns how many connections may be open, so that the pools and dependencies have file descriptors.

    First raises this process's soft limit of open files to its hard limit.
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
            "connections": max(MIN_CONNECTIONS, free), "open_files": soft,
            "hint": "raise the hard limit, such as ulimit -Hn or LimitNOFILE="})
    return min(wanted, max(MIN_CONNECTIONS, free))
