"""Exceeds each limit of a running service, while a second client measures the delay of /healthz.

Prints for each limit the response, the worst delay and the growth of the process. The bounds are 250 ms and
256 MB.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import psutil

from agentcore.auth import mint_token
from agentcore.limits import LIMITS, MAX_K, MAX_TEXT_CHARS
from agentcore.server import ENDPOINT, MCP_ENDPOINT
from benchmarks.ledger import append

DELAY_MS, GROWTH_MB = 250.0, 256.0
SECRET = "a benchmark's secret, long enough for HS256"  # noqa: S105
SETTINGS = {
    "EMBEDDING_MODEL": "hashing",
    "MAX_CONNECTIONS": "80",
    "RATE_LIMIT_PER_MINUTE": "60000",
    "REQUEST_TIMEOUT_SECONDS": "10",
    "MAINTENANCE_IN_SERVER": "false",
}
# Tested in test_rpc.py and test_call_queue.py: no call of a working service takes that long.
ELSEWHERE = frozenset({"call_seconds", "running_calls", "queue_seconds", "counted_memories"})
UNFINISHED, AT_ONCE = 60, 12
AGENTS = ("greedy", "second", "third", "spender")
STORED = 7
LONG_STORED = 40
# The first thousand terms of a long memory are ranked; blanks make the others quick to store.
LONG_TEXT = "The budget of the house in Berlin is 9,000 euros. " * 300
LISTENS = re.compile(r"listens on (http://\S+)")
# Prints the worst delay, and the worst one during which the service used the CPU, in milliseconds.
PING = """
import psutil, socket, sys, threading, time
host, port, service_process = sys.argv[1], int(sys.argv[2]), psutil.Process(int(sys.argv[3]))
worst = own = 0.0
def used():
    times = service_process.cpu_times()
    return times.user + times.system
def ping():
    global worst, own
    with socket.create_connection((host, port)) as service:
        while True:
            sent, before = time.perf_counter(), used()
            service.sendall(b"GET /healthz HTTP/1.1\\r\\nhost: a\\r\\n\\r\\n")
            told = b""
            while not told.endswith(b'{"status":"ok"}'):
                told += service.recv(4096)
                assert told
            delay = time.perf_counter() - sent
            worst, own = max(worst, delay), max(own, min(delay, used() - before))
            time.sleep(0.004)
threading.Thread(target=ping, daemon=True).start()
for line in sys.stdin:
    print(worst * 1000, own * 1000, flush=True)
    worst = own = 0.0
"""


@dataclass(frozen=True)
class Seen:
    """The effect of one request beyond a limit.

    `delay_ms`: the worst delay of others. `own_ms`: the worst delay, capped at the CPU time that the service
    used meanwhile, to exclude other programs of a busy machine.
    """

    limit: str
    answer: str
    delay_ms: float
    own_ms: float
    growth_mb: float


class Watch:
    """A client in a separate process that polls /healthz, and the service's memory usage."""

    def __init__(self, url: str, pid: int) -> None:
        host, port = url.removeprefix("http://").split(":")
        self._ping = subprocess.Popen(
            [sys.executable, "-c", PING, host, port, str(pid)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._service = psutil.Process(pid)
        self._peak = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._ended.wait(0.01):
            self._peak = max(self._peak, self._service.memory_info().rss)

    def worst_ms(self) -> tuple[float, float]:
        """Returns the worst delay since the last call, and the worst one caused by the service."""
        assert self._ping.stdin is not None
        assert self._ping.stdout is not None
        self._ping.stdin.write("\n")
        self._ping.stdin.flush()
        delay, own = self._ping.stdout.readline().split()
        return float(delay), float(own)

    def baseline_ms(self, seconds: float = 2.0) -> float:
        """Returns the worst delay without load."""
        self.worst_ms()
        self._ended.wait(seconds)
        return self.worst_ms()[0]

    def during(self, limit: str, exceed: Callable[[], str]) -> Seen:
        """Returns the effect on others of exceeding the limit."""
        self.worst_ms()
        before = self._peak = self._service.memory_info().rss
        answer = exceed()
        delay, own = self.worst_ms()
        return Seen(limit, answer, round(delay, 1), round(own, 1), round((self._peak - before) / 1e6, 1))

    def until_closed(self, port: int | None = None) -> bool:
        """Waits until the service has no connection from this port, or few at all; returns False on a
        timeout."""
        for _ in range(600):
            ports = [each.raddr.port for each in self._service.net_connections("tcp") if each.raddr]
            if (len(ports) < 10) if port is None else (port not in ports):
                return True
            self._ended.wait(0.1)
        return False

    def close(self) -> None:
        """Ends both processes."""
        self._ended.set()
        self._thread.join()
        self._ping.kill()
        self._ping.communicate()


# --- requests ----------------------------------------------------------------------------------------------


def call(method: str, raw_params: bytes) -> bytes:
    """Returns a request whose params are JSON text."""
    return b'{"jsonrpc": "2.0", "id": 1, "method": "' + method.encode() + b'", "params": ' + raw_params + b"}"


def _with(method: str, **params: Any) -> bytes:
    return call(method, json.dumps(params).encode())


def _members(count: int) -> bytes:
    return b"{" + b",".join(b'"%x":0' % number for number in range(count)) + b"}"


def _nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


ID = "01920000-0000-7000-8000-000000000000"
# Each body and its response: the HTTP status and the error code.
BODIES: Mapping[str, tuple[Callable[[], bytes], str]] = {
    "request_bytes": (lambda: _with("memory.list", tags=["a" * 9_000_000]), "413 -32003"),
    "batch_calls": (lambda: b"[" + b",".join([_with("memory.count")] * 101) + b"]", "413 -32003"),
    "nesting": (lambda: call("memory.store", b"[" * 65 + b"]" * 65), "200 -32700"),
    "json_values": (lambda: call("memory.store", b"[" + b"0," * 4_000_000 + b"0]"), "413 -32003"),
    "object_members": (lambda: call("rpc.discover", _members(99_000)), "413 -32003"),
    "all_members": (lambda: call("rpc.discover", _members(780_000)), "413 -32003"),
    "number_chars": (lambda: call("memory.store", b"[" + (b"9" * 4_000 + b",") * 2_000 + b"0]"), "200 -32700"),
    "a2a_bytes": (
        lambda: json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "memory.count", "a2a_context": {"a": ["abcdefgh"] * 490_000}}
        ).encode(),
        "200 -32600",
    ),
    "text_chars": (lambda: _with("memory.store", content="\n\u00e9" * 900_000), "200 -32602"),
    "query_chars": (lambda: _with("memory.retrieve", query="a " * 4_000_000), "200 -32602"),
    "id_chars": (lambda: _with("memory.list", session_id="a" * 8_000_000), "200 -32602"),
    "labels": (lambda: _with("memory.list", tags=["a"] * 490_000), "200 -32602"),
    "dimensions": (lambda: call("memory.store", b'{"embedding": [' + b"0.1234," * 490_000 + b"1]}"), "200 -32602"),
    "metadata_values": (lambda: _with("memory.store", content="a", metadata={"a": [0] * 490_000}), "200 -32602"),
    "metadata_nesting": (lambda: _with("memory.store", content="a", metadata={"a": _nested(50)}), "200 -32602"),
    "batch_items": (lambda: _with("memory.store_batch", items=[{"content": "a"}] * 50_000), "200 -32602"),
    "links": (lambda: _with("memory.store", content="a", links=[{"target_id": ID}] * 90_000), "200 -32602"),
    "k": (lambda: _with("memory.retrieve", query="a", k=201), "200 -32602"),
    "page": (lambda: _with("memory.list", limit=1_001), "200 -32602"),
    "projected": (lambda: _with("memory.project", limit=20_001), "200 -32602"),
    "traced": (lambda: _with("memory.retrieve", query="a", trace=[ID] * 21), "200 -32602"),
    "history_page": (lambda: _with("memory.history", memory_id=ID, limit=1_001), "200 -32602"),
    "archived_page": (lambda: _with("memory.archived", limit=1_001), "200 -32602"),
    "delete_ids": (lambda: _with("memory.delete", memory_ids=[ID] * 200_000), "200 -32602"),
    "restore_ids": (lambda: _with("memory.restore", memory_ids=[ID] * 200_000), "200 -32602"),
    "context_tokens": (lambda: _with("memory.get_context", query="a", max_tokens=1_000_001), "200 -32602"),
    "summary_tokens": (lambda: _with("memory.summarize", session_id="a", max_tokens=4_001), "200 -32602"),
}
# Bodies within the limits that are as expensive as possible.
WITHIN: Mapping[str, Callable[[], bytes]] = {
    "within: unknown fields of items": lambda: call(
        "memory.store_batch", b'{"items": [' + b",".join([_members(95)] * 990) + b"]}"
    ),
    "within: wrong vectors of items": lambda: call(
        "memory.store_batch",
        b'{"items": [' + b",".join([b'{"content": "a", "embedding": [' + b'"a",' * 495 + b'"a"]}'] * 990) + b"]}",
    ),
    "within: metadata of items": lambda: call(
        "memory.store_batch",
        b'{"items": [' + b",".join([b'{"content": "", "metadata": ' + _members(95) + b"}"] * 990) + b"]}",
    ),
    "within: strings with escapes": lambda: call("memory.list", b'{"tags": [' + rb'"\n\u00e9",' * 490_000 + b"0]}"),
    "within: empty arrays": lambda: call("memory.list", b'{"tags": [' + b"[]," * 99_000 + b"0]}"),
    "params by position": lambda: call("memory.list", b"[" + b"0," * 490_000 + b"0]"),
}


STRINGS = WITHIN["within: strings with escapes"]
MARKS = "a" + "\u0301" * 100_000
# Each pair of characters is a term; the last word is beyond the index.
HAN = "".join(chr(0x4E00 + number * 7_919 % 20_000) for number in range(MAX_TEXT_CHARS - 6))


class Exceeding:
    """A client that exceeds each limit of the service at a URL."""

    def __init__(self, url: str, token: str) -> None:
        self._address = ("127.0.0.1", int(url.rpartition(":")[2]))
        self._http = httpx.Client(
            base_url=url, timeout=120, headers={"authorization": f"Bearer {token}", "content-type": "application/json"}
        )

    def close(self) -> None:
        self._http.close()

    def post(self, body: bytes, path: str = ENDPOINT) -> tuple[str, Any]:
        """Returns the status and the error code, and the response."""
        response = self._http.post(path, content=body)
        told = response.json()
        code = told.get("error", {}).get("code", "") if isinstance(told, dict) else ""
        return f"{response.status_code} {code}".strip(), told

    def status(self, body: bytes, path: str = ENDPOINT) -> str:
        """Returns only the status and the error code."""
        return self.post(body, path)[0]

    def fill(self) -> None:
        """Stores memories whose total exceeds a page."""
        large = {"a": "x" * 1_000_000}
        items = [{"content": f"Fact {number}", "metadata": large} for number in range(STORED)]
        _, told = self.post(_with("memory.store_batch", items=items))
        assert told["result"]["success"], told

    def page(self) -> str:
        """Lists all of them in one call."""
        _, told = self.post(_with("memory.list", limit=1_000))
        given = len(told["result"]["memories"])
        return "ends early" if 0 < given < STORED and told["result"]["next_cursor"] else f"{given} memories"

    def responses(self) -> str:
        """Lists all of them twenty times in a batch."""
        _, told = self.post(b"[" + b",".join([_with("memory.list", limit=1_000)] * 20) + b"]")
        codes = {each.get("error", {}).get("code", 0) for each in told}
        return "-32003 after some" if codes == {0, -32003} else str(codes)

    def fill_long(self) -> None:
        """Stores the longest memories."""
        for number in range(0, LONG_STORED, 4):
            texts = [f"Note {number + each}: {LONG_TEXT}".ljust(MAX_TEXT_CHARS - 1) for each in range(4)]
            items = [{"content": f"{text}.", "force": True} for text in texts]
            _, told = self.post(_with("memory.store_batch", items=items))
            assert told["result"]["success"], told

    def searches(self) -> str:
        """Searches them twenty times in a batch."""
        search = _with("memory.retrieve", query="What is the budget?", k=MAX_K, distinct=False)
        _, told = self.post(b"[" + b",".join([search] * 20) + b"]")
        codes = {each.get("error", {}).get("code", 0) for each in told}
        return "-32003 after some" if codes == {0, -32003} else str(codes)

    def unfinished(self) -> str:
        """Sends many bodies of 8 MB without their last byte."""
        opened = [self._begin(8_388_608) for _ in range(UNFINISHED)]
        try:
            for each in opened:
                for _ in range(127):
                    each.sendall(b" " * 65_536)
            while len(answered := select.select(opened, [], [], 0)[0]) < UNFINISHED - 4:
                select.select([], [], [], 0.1)
            told = answered[0].recv(4_096)
            return told.partition(b" ")[2][:3].decode() + (" Retry-After" if b"retry-after" in told else "")
        finally:
            for each in opened:
                each.close()

    def beside_unfinished(self, other: Exceeding) -> str:
        """Uses one agent's whole share, while another one sends a small and a large body."""
        with self._begin(8_388_608) as held:
            for _ in range(127):
                held.sendall(b" " * 65_536)
            small, large = other.status(_with("memory.count")), other.status(STRINGS())
            return f"{small}, {large}"

    def at_once(self, others: Sequence[Exceeding]) -> str:
        """Sends large bodies of several agents at the same time."""
        clients, body = [self, *others], STRINGS()
        with ThreadPoolExecutor(AT_ONCE) as threads:
            told = threads.map(lambda number: clients[number % len(clients)].status(body), range(AT_ONCE))
            return "some" if set(told) == {"200 -32602", "429 -32004"} else "unexpected"

    def spend(self) -> str:
        """Spends more than a minute's units."""
        items = [_with("memory.store_batch", items=[{}] * 1_000)] * 29
        told = [self.status(b"[" + b",".join(items) + b"]") for _ in range(3)]
        return " ".join(dict.fromkeys(told))

    def words(self) -> str:
        """Stores more terms than are indexed, and searches for the last one."""
        self.status(_with("memory.store", content=f"{HAN} zebra", force=True))
        told = [self.post(_with("memory.retrieve", query=query))[1] for query in (HAN[:2], "zebra")]
        found = [each["result"]["receipt"]["candidates"]["lexical"] for each in told]
        return "not indexed" if found == [1, 0] else str(found)

    def header(self) -> str:
        """Sends a header of 16 MiB."""
        with self._open() as service:
            service.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\nx: ")
            for _ in range(256):
                try:
                    service.sendall(b"a" * 65_536)
                except OSError:
                    break
            return service.recv(4_096).partition(b" ")[2][:3].decode()

    def connections(self) -> str:
        """Opens more connections than allowed."""
        opened = [self._open() for _ in range(int(SETTINGS["MAX_CONNECTIONS"]) + 20)]
        try:
            told = opened[-1].recv(4_096)
            return told.partition(b" ")[2][:3].decode() + (" Retry-After" if b"retry-after" in told else "")
        finally:
            for each in opened:
                each.close()

    def late(self) -> Iterator[tuple[str, socket.socket]]:
        """Yields connections that send no byte, half a header or half a body, and one that never reads."""
        yield "header_seconds", self._open()
        half = self._open()
        half.sendall(b"GET / HTTP/1.1\r\nx")
        yield "header_seconds", half
        body = self._begin(100)
        body.sendall(b"{")
        yield "body_seconds", body
        large = b"[" + b",".join([_with("memory.list", limit=1_000)] * 5) + b"]"
        unread = self._begin(len(large))
        unread.sendall(large)
        yield "unread_seconds", unread

    def _begin(self, size: int) -> socket.socket:
        """Opens a connection and sends the header of a body."""
        token, opened = self._http.headers["authorization"], self._open()
        opened.sendall(
            f"POST {ENDPOINT} HTTP/1.1\r\nhost: a\r\nauthorization: {token}\r\ncontent-length: {size}\r\n\r\n".encode()
        )
        return opened

    def _open(self) -> socket.socket:
        opened = socket.create_connection(self._address, timeout=60)
        if opened.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) > 0:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65_536)
        return opened


def exceed_all(url: str, pid: int, tokens: Mapping[str, str]) -> tuple[float, list[Seen]]:
    """Returns the delay without load, and the effect of exceeding each limit; `tokens` are those of
    `AGENTS`."""
    watch = Watch(url, pid)
    client, second, third, spender = (Exceeding(url, tokens[name]) for name in AGENTS)
    try:
        client.fill()
        baseline = watch.baseline_ms()
        bodies = [(limit, make()) for limit, (make, _) in BODIES.items()]
        bodies += [(name, make()) for name, make in WITHIN.items()]
        seen = [watch.during(limit, partial(client.status, body)) for limit, body in bodies]
        message = _with("tools/list", cursor="a" * 300_000)
        others: Sequence[tuple[str, Callable[[], str]]] = (
            ("mcp_message_bytes", partial(client.status, message, MCP_ENDPOINT)),
            ("page_bytes", client.page),
            ("response_bytes", client.responses),
            ("rate_units", spender.spend),
            ("terms", second.words),
            ("mark_run", partial(second.status, _with("memory.store", content=MARKS, force=True))),
            ("bodies_bytes", client.unfinished),
            ("within: beside an unfinished body", partial(client.beside_unfinished, second)),
            ("within: large bodies at once", partial(client.at_once, [second, third])),
            ("header_bytes", client.header),
            ("connections", client.connections),
        )
        seen += [watch.during(limit, exceed) for limit, exceed in others]
        watch.until_closed()
        client.fill_long()
        seen.append(watch.during("within: searches of long texts", client.searches))
        watch.until_closed()
        late = list(client.late())
        seen += [watch.during(limit, partial(_ended, watch, limit, each)) for limit, each in late]
    finally:
        for each in (client, second, third, spender):
            each.close()
        watch.close()
    return baseline, seen


def _ended(watch: Watch, limit: str, service: socket.socket) -> str:
    """Returns how the service ends a connection that sends or reads too little."""
    with service:
        if limit == "unread_seconds":  # the kernel buffers unread bytes: only the service knows
            return "closed" if watch.until_closed(service.getsockname()[1]) else "open"
        return service.recv(4_096).partition(b" ")[2][:3].decode() or "closed"


ANSWERS: Mapping[str, str] = {
    **{limit: answer for limit, (_, answer) in BODIES.items()},
    "mcp_message_bytes": "413 -32003",
    "rate_units": "200 429 -32004",
    "terms": "not indexed",
    "mark_run": "200",
    "bodies_bytes": "429 Retry-After",
    "within: beside an unfinished body": "200, 200 -32602",
    "within: large bodies at once": "some",
    "page_bytes": "ends early",
    "response_bytes": "-32003 after some",
    "within: searches of long texts": "-32003 after some",
    "header_bytes": "431",
    "connections": "503 Retry-After",
    "header_seconds": "closed",
    "body_seconds": "200",
    "unread_seconds": "closed",
}


# --- the service -------------------------------------------------------------------------------------------


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    """Starts a service in a separate home; yields its URL and process id."""
    place = Path(tempfile.mkdtemp(prefix="agentcore-limits-"))
    place.chmod(0o755)
    known = {limit.setting for limit in LIMITS} | {"AGENTCORE_URL", "DATABASE_URL", "REDIS_URL"}
    kept = {name: value for name, value in os.environ.items() if name not in known}
    environment = {**kept, **SETTINGS, "AGENTCORE_HOME": str(place / "home"), "JWT_SECRET_KEY": SECRET}
    process = subprocess.Popen(
        [sys.executable, "-m", "agentcore", "serve", "--port", "0"],
        text=True,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        assert process.stdout is not None
        found = next(match for line in process.stdout if (match := LISTENS.search(line)))
        threading.Thread(target=process.stdout.read, daemon=True).start()
        yield found[1], process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        shutil.rmtree(place, ignore_errors=True)


def main() -> int:
    """Exceeds each limit; returns 1 if one affected others beyond the bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    with served() as (url, pid):
        scopes = ["memory:read", "memory:write"]
        baseline, seen = exceed_all(
            url, pid, {name: mint_token(SECRET, name, scopes, 3_600, now=time.time()) for name in AGENTS}
        )
    for each in seen:
        print(f"{each.limit:<34} {each.answer:<20} {each.delay_ms:7.1f} ms {each.growth_mb:7.1f} MB")
    worst, most = max(each.delay_ms for each in seen), max(each.growth_mb for each in seen)
    print(f"worst delay {worst} ms (without load {baseline:.1f}), most growth {most} MB")
    append(
        "limits",
        {},
        {
            "baseline_ms": round(baseline, 1),
            "worst_delay_ms": worst,
            "most_growth_mb": most,
            "seen": [asdict(each) for each in seen],
        },
    )
    wrong = [each.limit for each in seen if each.answer != ANSWERS.get(each.limit, each.answer)]
    if wrong:
        print(f"answered otherwise than expected: {', '.join(wrong)}", file=sys.stderr)
    return int(bool(wrong) or worst > DELAY_MS or most > GROWTH_MB)
