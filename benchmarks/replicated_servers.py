"""A primary PostgreSQL and a replica with streaming replication, for the tests and for `failover`."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg

from agentcore import migration
from agentcore.embedded import Home
from agentcore.embedded.home import Account, choose_account
from agentcore.embedded.process import find_postgres, processes_in, run_once

HOST = "127.0.0.1"
CATCH_UP_SECONDS = 60
# The data need not outlive the machine, only the process.
SETTINGS = f"""
listen_addresses = '{HOST}'
unix_socket_directories = ''
shared_buffers = 64MB
fsync = off
full_page_writes = off
max_standby_streaming_delay = 100ms
max_standby_archive_delay = 100ms
"""
ACCESS = f"host all all {HOST}/32 trust\nhost replication all {HOST}/32 trust\n"


class Server:
    """One PostgreSQL with a data directory and a port of its own."""

    def __init__(self, home: Home, name: str) -> None:
        self.account: Account = choose_account(home)
        self._programs = find_postgres(home, self.account)
        self.data = home.path / name
        self._log = home.path / f"{name}.log"
        self._log.touch()
        self.account.make_owner(self._log)
        with socket.socket() as free:
            free.bind((HOST, 0))
            self.port = free.getsockname()[1]

    def url(self, user: str = "agentcore", database: str = "agentcore") -> str:
        return f"postgresql://{user}@{HOST}:{self.port}/{database}"

    def run(self, program: str, *arguments: str) -> None:
        command: list[str | Path] = [self._programs / program, *arguments]
        done = run_once(command, directory=self.data.parent, account=self.account)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}{self._log.read_text()[-2_000:]}"

    def make(self) -> None:
        self.run(
            "initdb", f"--pgdata={self.data}", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"
        )
        with (self.data / "postgresql.conf").open("a") as file:
            file.write(SETTINGS)
        (self.data / "pg_hba.conf").write_text(ACCESS)

    def copy(self, primary: Server) -> None:
        """Makes this server a replica named after its directory."""
        source = f"{primary.url('postgres', 'replication')}?application_name={self.data.name}"
        self.run("pg_basebackup", f"--dbname={source}", f"--pgdata={self.data}", "-R", "--checkpoint=fast", "--no-sync")

    def start(self) -> None:
        self.run("pg_ctl", "start", "--wait", f"--pgdata={self.data}", f"--log={self._log}", "-o", f"-p {self.port}")

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "stop", "--wait", f"--pgdata={self.data}", "--mode", mode)

    def promote(self) -> None:
        self.run("pg_ctl", "promote", "--wait", f"--pgdata={self.data}")

    @property
    def pid(self) -> int | None:
        lock = self.data / "postmaster.pid"
        return int(lock.read_text().split()[0]) if lock.exists() else None

    def kill(self) -> None:
        """Kills the postmaster; the other processes end when they notice."""
        assert self.pid is not None
        os.kill(self.pid, signal.SIGKILL)
        (self.data / "postmaster.pid").unlink()

    def processes(self) -> list[psutil.Process]:
        return [psutil.Process(pid) for pid in processes_in(self.data, ("postgres",))]

    def execute(self, statement: str, database: str = "agentcore") -> list[tuple[object, ...]]:
        with psycopg.connect(self.url("postgres", database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


class Replication:
    """A primary and a replica; `url` finds whichever accepts writes."""

    def __init__(self, home: Home) -> None:
        self.primary = Server(home, "primary")
        self.replica = Server(home, "replica")

    @property
    def url(self) -> str:
        hosts = f"{HOST}:{self.primary.port},{HOST}:{self.replica.port}"
        return f"postgresql://agentcore@{hosts}/agentcore?target_session_attrs=read-write"

    def start(self) -> None:
        self.primary.make()
        self.primary.start()
        self.primary.execute("CREATE ROLE agentcore LOGIN CREATEROLE", "postgres")
        self.primary.execute("CREATE DATABASE agentcore OWNER agentcore", "postgres")
        self.primary.execute("CREATE EXTENSION vector")
        self.replica.copy(self.primary)
        self.replica.start()
        migration.upgrade(self.primary.url())

    def commit_on_both(self) -> None:
        """Acknowledges a commit only when the replica has it."""
        self.primary.execute("ALTER SYSTEM SET synchronous_standby_names = 'replica'")
        self.primary.execute("SELECT pg_reload_conf()")
        deadline = time.monotonic() + CATCH_UP_SECONDS
        while self.primary.execute("SELECT sync_state FROM pg_stat_replication") != [("sync",)]:
            assert time.monotonic() < deadline, "the replica did not become synchronous"

    async def caught_up(self) -> None:
        [[position]] = self.primary.execute("SELECT pg_current_wal_insert_lsn()::text")
        replayed = f"SELECT pg_last_wal_replay_lsn() >= '{position}'"
        async with asyncio.timeout(CATCH_UP_SECONDS):
            while await asyncio.to_thread(self.replica.execute, replayed) != [(True,)]:
                pass

    def stop(self) -> None:
        for server in (self.replica, self.primary):
            if server.pid is not None:
                server.stop("immediate")


@contextmanager
def replication(directory: Path) -> Iterator[Replication]:
    """Runs a primary and a replica below a directory that does not exist."""
    directory.mkdir(mode=0o755)
    home = Home(directory)
    choose_account(home).make_owner(directory)
    made = Replication(home)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(directory)
