"""Peers: memory systems side by side, with one embedding model, one PostgreSQL, one machine, in one run.

Each system runs in an environment of its own (`benchmarks/peer_systems/requirements/NAME.txt`), through its public
API, without a language model. The same local model embeds for all, over an OpenAI-compatible endpoint, which knows
from the phase whether a text is a query. Quality: lives and a LoCoMo file; there this product runs with its defaults.
Speed: synthetic memories of one user, stored one system after another with vectors the endpoint knows already, and
searched in turns with new queries; `agentcore_local` is this product with the model in its own process.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import os
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
import psycopg
import uvicorn
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from agentcore.assembly import make_embedder
from agentcore.embedded.home import Home
from agentcore.embedded.parts import EmbeddedParts
from agentcore.embedded.postgres import superuser_url
from agentcore.memory.embeddings import Embedder, EmbeddingKind
from benchmarks import current_answers, labelled
from benchmarks.corpus import question, sentence
from benchmarks.current_answers import DEPTH, LIVES, Outcome, lives, text_of
from benchmarks.labelled import Row, conversations, moment
from benchmarks.ledger import append, percentiles
from benchmarks.measures import interval, recall
from benchmarks.service import bench_settings, run

PEERS = Path(__file__).parent / "peer_systems"
# The second has the model in its own process, which is its default; only the speed part has both.
OWN = ("agentcore", "agentcore_local")
SYSTEMS = {
    "agentcore": "agentcore_http.py",
    "agentcore_local": "agentcore_http.py",
    "mem0": "mem0_library.py",
    "langgraph": "langgraph_store.py",
    "hindsight": "hindsight_server.py",
    "pgmemory": "pgmemory_library.py",
    "adk": "adk_sqlite.py",
}
BATCH = 100
K = 5
SPEED_USER = "speed"
# Distinct queries of a phase of one second, more than any system answers.
QUERIES_PER_SECOND = 400
FIRST_MEMORY = datetime(2026, 1, 1, tzinfo=UTC)


# --- the embedding endpoint --------------------------------------------------------------------------------


class Embeddings:
    """An OpenAI-compatible endpoint of the local model; keeps vectors of documents in a file.

    `kind`: of the texts that arrive now.
    """

    def __init__(self, embedder: Embedder, file: Path) -> None:
        self.kind: EmbeddingKind = "document"
        self._embedder = embedder
        self._kept = sqlite3.connect(file, isolation_level=None)
        self._kept.execute("CREATE TABLE IF NOT EXISTS vectors (text_hash BLOB PRIMARY KEY, vector BLOB)")

    async def vectors(self, texts: Sequence[str]) -> list[Any]:
        """Returns a vector for each text, 32-bit floats."""
        if self.kind == "query":
            return list(await self._embedder.embed(texts, "query"))
        keys = [hashlib.sha256(text.encode()).digest() for text in texts]
        known = {key: vector for key in keys if (vector := self._vector(key)) is not None}
        missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
        if missing:
            made = await self._embedder.embed(list(missing.values()), "document")
            known |= zip(missing, made, strict=True)
            rows = [(key, known[key].astype(np.float32).tobytes()) for key in missing]
            self._kept.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?)", rows)
        return [known[key] for key in keys]

    def _vector(self, key: bytes) -> Any:
        row = self._kept.execute("SELECT vector FROM vectors WHERE text_hash = ?", (key,)).fetchone()
        return np.frombuffer(row[0], np.float32) if row else None

    async def answer(self, request: Request) -> JSONResponse:
        asked = await request.json()
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        encode = _base64 if asked.get("encoding_format") == "base64" else _numbers
        data = [
            {"object": "embedding", "index": at, "embedding": encode(vector)}
            for at, vector in enumerate(await self.vectors(texts))
        ]
        usage = {"prompt_tokens": 0, "total_tokens": 0}
        return JSONResponse({"object": "list", "data": data, "model": asked["model"], "usage": usage})


def _base64(vector: Any) -> str:
    return base64.b64encode(vector.astype(np.float32).tobytes()).decode()


def _numbers(vector: Any) -> list[float]:
    numbers: list[float] = vector.tolist()
    return numbers


@asynccontextmanager
async def embeddings(home: Path) -> AsyncIterator[tuple[Embeddings, str]]:
    """Runs the endpoint in this process; yields it with its base URL."""
    embedder = make_embedder(bench_settings(home))
    assert embedder is not None
    await embedder.open()
    endpoint = Embeddings(embedder, home / "vectors.sqlite")
    app = Starlette(routes=[Route("/v1/embeddings", endpoint.answer, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    listening = socket.create_server(("127.0.0.1", 0))
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    port = listening.getsockname()[1]
    try:
        yield endpoint, f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        await serving
        await embedder.close()


# --- one system --------------------------------------------------------------------------------------------


@dataclass
class Peer:
    """A running driver process."""

    name: str
    database: str
    directory: Path
    process: asyncio.subprocess.Process

    async def do(self, do: str, **command: Any) -> Row:
        """Runs one command. Raises RuntimeError if the driver ended."""
        return await self.send({"do": do, **command})

    async def send(self, line: Row) -> Row:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(line).encode() + b"\n")
        answer = await self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} ended; its messages are in {self.directory / 'messages.log'}")
        reply: Row = json.loads(answer)
        return reply

    async def resident_mib(self) -> int:
        """Returns the resident memory of the system's processes, without PostgreSQL."""
        found: set[psutil.Process] = set()
        for pid in (await self.do("processes"))["processes"]:
            found |= {psutil.Process(pid), *psutil.Process(pid).children(recursive=True)}
        resident: int = sum(each.memory_info().rss for each in found)
        return resident // 2**20


@dataclass(frozen=True)
class Servers:
    """PostgreSQL and Redis, and the embedding endpoint, for all systems."""

    home: Path
    database_url: str
    redis_url: str
    embeddings: Embeddings
    embeddings_url: str

    @asynccontextmanager
    async def running(self, name: str, purpose: str, environment: dict[str, str]) -> AsyncIterator[Peer]:
        """Runs a system on a database of its own."""
        directory = self.home / f"{purpose}-{name}"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        database = f"{purpose}_{name}"
        account = conninfo_to_dict(self.database_url)
        self.new_database(database, str(account["user"]))
        if name not in OWN:
            account = conninfo_to_dict(self.superuser("postgres"))
        options = {
            "database": f"postgresql://{account['user']}:{account['password']}@/{database}?host={account['host']}",
            "embeddings": self.embeddings_url,
            "dimensions": 384,
            "directory": str(directory),
            "redis": self.redis_url,
            "environment": environment,
        }
        with (directory / "messages.log").open("wb") as messages:
            own_package = str(Path(__file__).parents[1]) if name in OWN else ""
            process = await asyncio.create_subprocess_exec(
                python_of(name, self.home),
                str(PEERS / SYSTEMS[name]),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=messages,
                limit=2**30,
                # Without a network, mem0's telemetry would only cost it time.
                env={**os.environ, "PYTHONPATH": own_package, "MEM0_TELEMETRY": "False"},
            )
        peer = Peer(name, database, directory, process)
        try:
            await peer.send(options)
            yield peer
        finally:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()

    def superuser(self, database: str) -> str:
        return make_conninfo(superuser_url(Home(self.home / "servers"), self.database_url), dbname=database)

    def execute(self, database: str, *statements: sql.SQL | sql.Composed) -> list[Any]:
        """Runs statements as the superuser; returns the rows of the last one, if it has any."""
        with psycopg.connect(self.superuser(database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def new_database(self, name: str, owner: str) -> None:
        database = sql.Identifier(name)
        self.execute(
            "postgres",
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(database),
            sql.SQL("CREATE DATABASE {} OWNER {}").format(database, sql.Identifier(owner)),
        )
        self.execute(name, sql.SQL("CREATE EXTENSION vector"))


def python_of(name: str, home: Path) -> str:
    """Returns the interpreter of a system's environment, which is made once."""
    if name in OWN:
        return sys.executable
    directory = home / "environments" / name
    python = directory / "bin" / "python"
    wanted = PEERS / "requirements" / f"{name}.txt"
    installed = directory / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted.read_text():
        print(f"installing {name}")
        uv = str(Path(sys.executable).with_name("uv"))
        subprocess.run([uv, "venv", "-q", "--clear", "-p", sys.executable, str(directory)], check=True)
        subprocess.run([uv, "pip", "install", "-q", "-p", str(python), "-r", str(wanted)], check=True)
        installed.write_text(wanted.read_text())
    return str(python)


# --- quality -----------------------------------------------------------------------------------------------


async def of_lives(servers: Servers, peer: Peer, which: str, names: Sequence[str]) -> Row:
    """Stores lives and asks all questions: the current answer first, outdated ones, abstention.

    Each user of a life is a user of the system. Off-topic prompts are asked of the first.
    """
    outcomes: list[Outcome] = []
    silent: list[bool] = []
    for life in lives(LIVES / which, names):
        stores: dict[str, list[Row]] = {}
        for each in life.messages:
            row = {name: each[name] for name in ("id", "at", "session", "speaker")}
            row |= {"text": text_of(each), "params": current_answers.stored_form(each)}
            stores.setdefault(f"{life.name}-{each.get('user_id')}", []).append(row)
        for user, rows in stores.items():
            await fill(servers, peer, user, rows)
        questions: dict[str, list[Row]] = {}
        for each in life.questions:
            questions.setdefault(f"{life.name}-{each.get('user_id')}", []).append(each)
        for user, asked_of in questions.items():
            found = await ask(servers, peer, user, asked_of)
            outcomes += [Outcome(each, ranked) for each, ranked in zip(asked_of, found, strict=True)]
        silent += [not ranked for ranked in await ask(servers, peer, next(iter(stores)), life.off_topic)]
    return {**current_answers.figures(outcomes), "off-topic silent": share_of(silent)}


async def of_conversations(servers: Servers, peer: Peer, file: Path) -> Row:
    """Stores labeled conversations and asks the answerable questions: recall at ten."""
    values: list[float] = []
    for conversation in conversations(file):
        rows = [
            {
                "id": each["id"],
                "text": f"{each['speaker']}: {each['text']}" if each.get("speaker") else each["text"],
                "at": moment(each["timestamp"]),
                "session": each.get("session_id"),
                "speaker": each.get("speaker") or "user",
                "params": labelled.stored_form(each),
            }
            for each in conversation.memories
        ]
        await fill(servers, peer, conversation.agent_id, rows)
        answerable = conversation.answerable()
        found = await ask(servers, peer, conversation.agent_id, answerable)
        values += [recall(ranked, each["relevant_ids"], 10) for ranked, each in zip(found, answerable, strict=True)]
    return {"questions": len(values), "R@10": round(100 * sum(values) / len(values), 1), "interval": interval(values)}


async def fill(servers: Servers, peer: Peer, user: str, rows: Sequence[Row]) -> None:
    servers.embeddings.kind = "document"
    await peer.do("store", user=user, rows=rows, batch=BATCH)
    await peer.do("settle", complete=True)


async def ask(servers: Servers, peer: Peer, user: str, questions: Sequence[Row]) -> list[list[str]]:
    servers.embeddings.kind = "query"
    queries = [
        {"text": each["text"], "at": moment(each["asked_at"]) if each.get("asked_at") else None} for each in questions
    ]
    ids: list[list[str]] = (await peer.do("search", user=user, queries=queries, k=DEPTH))["ids"]
    return ids


def share_of(values: Sequence[bool]) -> float:
    return round(100 * sum(values) / len(values), 1)


async def quality(servers: Servers, options: argparse.Namespace) -> Row:
    """Runs all sets on one system after the other."""
    found: Row = {}
    for name in options.systems:
        if name == "agentcore_local":
            continue
        async with servers.running(name, "quality", {}) as peer:
            found[name] = {f"{options.lives} lives": await of_lives(servers, peer, options.lives, options.life)}
            if options.conversations:
                found[name][options.conversations.name] = await of_conversations(servers, peer, options.conversations)
        print(name, json.dumps(found[name]))
    return found


# --- speed -------------------------------------------------------------------------------------------------


def synthetic(count: int, seed: int) -> list[Row]:
    """Returns memories an hour apart."""
    chance = random.Random(seed)
    rows = []
    for at in range(count):
        text, moment_of = sentence(chance), (FIRST_MEMORY + timedelta(minutes=at)).isoformat()
        params = {"content": text, "timestamp": moment_of, "external_id": f"m{at}"}
        session = f"s{at // 20}"
        rows.append(
            {"id": f"m{at}", "text": text, "at": moment_of, "session": session, "speaker": "user", "params": params}
        )
    return rows


async def speed(servers: Servers, options: argparse.Namespace) -> Row:
    """Fills all systems, then searches in turns; figures by system."""
    environment = {
        "EMBEDDING_MODEL": "openai",
        "EMBEDDING_MODEL_NAME": "same",
        "EMBEDDING_DIMENSIONS": "384",
        "OPENAI_BASE_URL": servers.embeddings_url,
    }
    found: Row = {name: {} for name in options.systems}
    rows, chance = synthetic(options.memories, options.seed), random.Random(options.seed + 1)
    servers.embeddings.kind = "document"
    for at in range(0, len(rows), BATCH):
        await servers.embeddings.vectors([row["text"] for row in rows[at : at + BATCH]])
    async with AsyncExitStack() as stack:
        peers = {
            name: await stack.enter_async_context(
                servers.running(name, "speed", environment if name != "agentcore_local" else {})
            )
            for name in found
        }
        for name, peer in peers.items():
            taken = (await peer.do("store", user=SPEED_USER, rows=rows, batch=BATCH))["seconds"]
            settled = (await peer.do("settle", complete=False))["seconds"]
            await asyncio.to_thread(servers.execute, peer.database, sql.SQL("VACUUM ANALYZE"))
            found[name] = {"stores/s": round(len(rows) / taken, 1), "background seconds": round(settled, 1)}
            print(name, found[name])
        servers.embeddings.kind = "query"
        searches: dict[tuple[str, int], list[Row]] = {}
        for _ in range(options.rounds):
            for name, peer in peers.items():
                for callers in (1, 10):
                    asked = [
                        {"text": f"{question(chance)} ({chance.randrange(10**9)})"}
                        for _ in range(int(QUERIES_PER_SECOND * options.seconds))
                    ]
                    done = await peer.do(
                        "load", user=SPEED_USER, queries=asked, callers=callers, seconds=options.seconds, k=K
                    )
                    searches.setdefault((name, callers), []).append(done)
        for (name, callers), done_rounds in searches.items():
            of_round = [len(each["milliseconds"]) / each["seconds"] for each in done_rounds]
            found[name][f"{callers} callers"] = {
                "searches/s": round(median(of_round), 1),
                **percentiles([value for each in done_rounds for value in each["milliseconds"]]),
            }
        for name, peer in peers.items():
            found[name] |= {"resident MiB": await peer.resident_mib(), "disk MiB": disk_mib(servers, peer)}
            print(name, json.dumps(found[name]))
    return found


def disk_mib(servers: Servers, peer: Peer) -> int:
    """Returns the size of a system's database and files."""
    size = servers.execute("postgres", sql.SQL("SELECT pg_database_size({})").format(sql.Literal(peer.database)))
    files = sum(each.stat().st_size for each in peer.directory.rglob("*") if each.is_file())
    total: int = size[0][0] + files
    return total // 2**20


# --- all ---------------------------------------------------------------------------------------------------


async def measure(options: argparse.Namespace) -> Row:
    options.home.mkdir(parents=True, exist_ok=True)
    options.home.chmod(0o755)
    for name in options.systems:
        python_of(name, options.home)
    async with AsyncExitStack() as stack:
        parts = EmbeddedParts(Home(options.home / "servers"), postgres=True, redis=True, log=print)
        urls = (await stack.enter_async_context(parts)).urls
        assert urls.database_url and urls.redis_url
        endpoint, url = await stack.enter_async_context(embeddings(options.home))
        servers = Servers(options.home, urls.database_url, urls.redis_url, endpoint, url)
        found: Row = {"versions": {name: version_of(name) for name in options.systems}}
        if options.quality:
            found["quality"] = await quality(servers, options)
        if options.memories:
            found["speed"] = await speed(servers, options)
        return found


def version_of(name: str) -> str:
    """Returns the first line of a system's requirements: its package and version."""
    return "this commit" if name in OWN else (PEERS / "requirements" / f"{name}.txt").read_text().splitlines()[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    parser.add_argument("--memories", type=int, default=100_000, help="of the speed part; 0 leaves it out")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each phase of searches")
    parser.add_argument("--rounds", type=int, default=3, help="of searches; figures are medians of the rounds")
    parser.add_argument("--no-quality", dest="quality", action="store_false")
    parser.add_argument("--lives", choices=("judging", "learning"), default="judging")
    parser.add_argument("--life", action="append", default=[], help="this life alone; may be repeated")
    parser.add_argument("--conversations", type=Path, help="a file of labeled conversations, such as LoCoMo")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--home", type=Path, required=True, help="environments, vectors and databases; kept")
    options = parser.parse_args()
    options.home = options.home.absolute()
    found = run(measure(options))
    given = {name: value for name, value in vars(options).items() if name not in {"home", "conversations"}}
    append("peers", {**given, "conversations": options.conversations and options.conversations.name}, found)
    return 0
