"""The embedded PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from subprocess import CompletedProcess
from urllib.parse import quote, urlsplit, urlunsplit

import psutil
import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from agentcore.cancellation import run_to_completion
from agentcore.embedded.home import Account, Home, sync_directory
from agentcore.embedded.process import (
    POSTGRES_MAJOR,
    Child,
    LogFile,
    end_processes,
    find_postgres,
    processes_in,
    run_once,
    with_hint,
)
from agentcore.errors import StartupError

PORT = 5432
SERVICE_SECRET = "service"  # noqa: S105 - its name
NOBODY = -1
MAX_POSTGRES_CONNECTIONS = 100
PROGRAMS = ("postgres", "initdb")
FIRST_START_BYTES = 256 * 2**20
LATER_START_BYTES = 32 * 2**20
# SIGINT is the fast shutdown: it ends sessions and writes a checkpoint, which can be slow on a slow disk.
FAST_THEN_FORCED = ((signal.SIGINT, 60.0), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 5.0))
ORPHANED_CHILDREN = ((signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0))
# A parallel index build allocates maintenance_work_mem in /dev/shm; containers often have 64 MB of it.
LEAST_SHARED_MEMORY_BYTES = 512 * 2**20
# Memory limits of the control group, version 2 ("max": no limit) and version 1.
MEMORY_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))

# Log level `log` and terse messages keep failed statements, and so a memory's text, out of the log.
CONFIGURATION = """\
# Written by agentcore at each start; your own settings belong at the end of postgresql.conf.
listen_addresses = ''
port = {port}
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
max_connections = {connections}
shared_buffers = {shared_buffers_mb}MB
huge_pages = off
dynamic_shared_memory_type = {shared_memory}
work_mem = 8MB
maintenance_work_mem = 256MB
autovacuum_work_mem = 64MB
autovacuum_naptime = 15s
effective_cache_size = {cache_mb}MB
random_page_cost = 1.1
jit = off
fsync = on
full_page_writes = on
synchronous_commit = on
min_wal_size = 80MB
max_wal_size = 1GB
checkpoint_completion_target = 0.9
log_destination = stderr
logging_collector = off
log_min_messages = log
log_min_error_statement = panic
log_error_verbosity = terse
log_checkpoints = off
"""


def available_memory(limits: Sequence[Path] = MEMORY_LIMITS) -> int:
    """Returns the machine's memory in bytes, or the limit of the control group if that is lower."""
    memory: int = psutil.virtual_memory().total
    for path in limits:
        with suppress(OSError, ValueError):
            memory = min(memory, int(path.read_text(encoding="ascii")))
    return memory


def cache_sizes(memory: int) -> dict[str, int]:
    """Returns an eighth of the memory (256 MB to 4 GB) for shared buffers, and half of it for the planner."""
    megabytes = memory // 2**20
    return {"shared_buffers_mb": min(4_096, max(256, megabytes // 8)), "cache_mb": max(512, megabytes // 2)}


def service_url_of(home: Home, database_url: str) -> str:
    """Returns the URL for the service's own role, which cannot act as another."""
    password = home.secret(SERVICE_SECRET)
    return urlunsplit(urlsplit(database_url)._replace(netloc=f"{SERVICE_ROLE}:{password}@"))


class PostgresPart:
    name = "PostgreSQL"

    def __init__(self, home: Home, account: Account, sockets: Path, tell: Callable[[str], None]) -> None:
        self._home = home
        self._account = account
        self._sockets = sockets
        self._tell = tell
        self._data = home.postgres_data
        self.log = LogFile(home, "postgres")
        self.child: Child | None = None

    async def start(self) -> str:
        """Creates the database if missing; returns the URL of its owner, no superuser."""
        await run_to_completion(asyncio.to_thread(self._prepare))
        await self.launch()
        password = self._home.secret("database")
        url = self._url(OWNER, password, DATABASE)
        superuser_password = self._home.secret("postgres")
        await provision(
            url,
            password,
            service_url_of(self._home, url),
            self._home.secret(SERVICE_SECRET),
            lambda name: self._url(SUPERUSER, superuser_password, name),
        )
        return url

    async def launch(self) -> None:
        """Ends any earlier process first."""
        await self.stop()
        if not self._data.is_dir():
            raise StartupError(f"{self._data} has gone: bring it back and start the service again.")
        self._configure()
        self.child = Child(
            [self._programs / "postgres", "-D", self._data],
            directory=self._data,
            account=self._account,
            log=self.log,
            farewell=signal.SIGINT,
        )
        await self.child.until(self._ready)

    async def stop(self) -> None:
        if self.child is not None:
            await self.child.end(FAST_THEN_FORCED)
            self.child = None
        await self._end_leftovers()

    @cached_property
    def _programs(self) -> Path:
        return find_postgres(self._home, self._account)

    def _url(self, user: str, password: str, database: str) -> str:
        return f"postgresql://{user}:{password}@/{database}?host={quote(str(self._sockets))}&port={PORT}"

    def _prepare(self) -> None:
        for draft in self._home.run.glob("initdb-*"):
            _clear(draft)
        version = self._data / "PG_VERSION"
        with self._home.startup_errors():
            if version.exists():
                self._check(version.read_text().strip())
                self._home.require_space(LATER_START_BYTES)
                return
            if any(self._home.path.glob("restore-*")):
                raise StartupError("A restore was interrupted: run `agentcore restore-backup --force` again.")
            if self._data.exists() and any(self._data.iterdir()):
                raise StartupError(
                    f"{self._data} holds something else than a PostgreSQL database: move it "
                    "away, or set AGENTCORE_HOME to another directory."
                )
            self._home.require_space(FIRST_START_BYTES)
            self._tell("Making the database (only the first time)")
            self._make()

    def _check(self, major: str) -> None:
        if major != str(POSTGRES_MAJOR):
            raise StartupError(
                f"{self._data} was made by PostgreSQL {major}, this version carries {POSTGRES_MAJOR}; "
                "nothing was changed. Start the version that made it and `agentcore export` each agent's "
                f"memories, move {self._data} away, then start this one and `agentcore import` them."
            )

    def _make(self) -> None:
        draft = Path(tempfile.mkdtemp(prefix="initdb-", dir=self._home.run))
        try:
            password = draft / "password"
            self._home.write(password, self._home.secret("postgres"))
            for made in (draft, password):
                self._account.make_owner(made)
            done = self._initdb(draft, password, "C.UTF-8")
            if "invalid locale" in done.stderr:
                done = self._initdb(draft, password, "C")
            if done.returncode != 0:
                words = with_hint(done.stderr.strip())
                raise StartupError(f"PostgreSQL could not make its data directory:\n{words}")
            with (draft / "data" / "postgresql.conf").open("a") as file:
                file.write("\ninclude 'agentcore.conf'\n")
                file.flush()
                os.fsync(file.fileno())
            (draft / "data").rename(self._data)
            sync_directory(self._home.path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)

    def _initdb(self, draft: Path, password: Path, character_type: str) -> CompletedProcess[str]:
        """`character_type` defines letters for the text search parser; some systems lack C.UTF-8."""
        return run_once(
            [
                self._programs / "initdb",
                f"--pgdata={draft / 'data'}",
                f"--username={SUPERUSER}",
                f"--pwfile={password}",
                "--auth=scram-sha-256",
                "--encoding=UTF8",
                "--data-checksums",
                "--no-instructions",
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--locale=C",
                f"--lc-ctype={character_type}",
            ],
            directory=draft,
            account=self._account,
        )

    def _configure(self) -> None:
        kept = self._data / "agentcore.conf"
        self._home.write(
            kept,
            CONFIGURATION.format(
                port=PORT,
                sockets=self._sockets,
                shared_memory=_shared_memory(),
                connections=MAX_POSTGRES_CONNECTIONS,
                **cache_sizes(available_memory()),
            ),
        )
        self._account.make_owner(kept)
        # An interrupted purge leaves wal_recycle=off here.
        altered = self._data / "postgresql.auto.conf"
        lines = altered.read_text().splitlines(keepends=True) if altered.exists() else []
        if any(line.startswith("wal_recycle") for line in lines):
            self._home.write(altered, "".join(line for line in lines if not line.startswith("wal_recycle")))
            self._account.make_owner(altered)

    async def _ready(self) -> bool:
        return self._says_ready() and await self._listens() and self._says_ready()

    def _says_ready(self) -> bool:
        return self.child is not None and _status(self._data / "postmaster.pid") == (self.child.pid, "ready")

    async def _listens(self) -> bool:
        try:
            _, writer = await asyncio.open_unix_connection(self._sockets / f".s.PGSQL.{PORT}")
        except OSError:
            return False
        writer.close()
        await writer.wait_closed()
        return True

    async def _end_leftovers(self) -> None:
        """Ends an earlier server: two servers, or a late child, must not write to one data directory."""
        server = _status(self._data / "postmaster.pid")[0]
        found = self._processes()
        if found:
            self._tell("Ending the PostgreSQL of an earlier server")
        if server in found:
            await end_processes(lambda: [server] if server in self._processes() else [], FAST_THEN_FORCED)
        await end_processes(self._processes, ORPHANED_CHILDREN)
        for lock in (self._data / "postmaster.pid", self._sockets / f".s.PGSQL.{PORT}.lock"):
            # PostgreSQL removes a dead server's lock file, unless it is empty or its pid was reused.
            holder = _status(lock)[0]
            if holder == NOBODY or psutil.pid_exists(holder):
                lock.unlink(missing_ok=True)

    def _processes(self) -> list[int]:
        return processes_in(self._data, PROGRAMS)


def _status(lock: Path) -> tuple[int, str]:
    # PostgreSQL creates the file before it writes it: it may be empty for a moment, or after a crash.
    with suppress(OSError, ValueError, IndexError):
        lines = lock.read_text().splitlines()
        return int(lines[0]), lines[7].strip() if len(lines) > 7 else ""
    return NOBODY, ""


def _clear(draft: Path) -> None:
    """Removes an interrupted initdb; one that still runs loses its directory and fails."""
    for pid in [*processes_in(draft, PROGRAMS), *processes_in(draft / "data", PROGRAMS)]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    shutil.rmtree(draft, ignore_errors=True)


def _shared_memory() -> str:
    try:
        room = shutil.disk_usage("/dev/shm").total  # noqa: S108 - the kernel's own name for it
    except OSError:
        room = 0
    return "posix" if sys.platform != "linux" or room >= LEAST_SHARED_MEMORY_BYTES else "mmap"


SUPERUSER = "postgres"
OWNER = "agentcore"
DATABASE = "agentcore"
SERVICE_ROLE, BOUND_ROLE = "agentcore_service", "agentcore_bound"
CONNECT_SECONDS = 10

EXISTING_ROLES = "SELECT rolname FROM pg_roles"
EXISTING_DATABASES = "SELECT datname FROM pg_database"
EXTENSION_VERSIONS = """
    SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'"""
CREATE_OWNER = "CREATE ROLE {owner} LOGIN CREATEROLE NOSUPERUSER"
LET_SERVICE_LOG_IN = "ALTER ROLE {service} LOGIN PASSWORD {service_password}"
SET_PASSWORD = "ALTER ROLE {owner} PASSWORD {password}"  # noqa: S105 - a statement
CREATE_SERVICE_ROLE = "CREATE ROLE {service} NOLOGIN NOSUPERUSER NOBYPASSRLS"
CREATE_BOUND_ROLE = "CREATE ROLE {bound} NOLOGIN NOSUPERUSER NOBYPASSRLS"
GRANT_SERVICE_ROLE = "GRANT {service} TO {owner} WITH SET TRUE, INHERIT FALSE"
# The service sets this role for a token that is bound to users.
GRANT_BOUND_ROLE = "GRANT {bound} TO {owner}, {service} WITH SET TRUE, INHERIT FALSE"
CREATE_DATABASE = "CREATE DATABASE {database} OWNER {owner}"
CLOSE_DATABASE = "REVOKE ALL ON DATABASE {database} FROM PUBLIC"
OPEN_DATABASE = "GRANT CONNECT ON DATABASE {database} TO {service}"


def superuser_url(home: Home, url: str) -> str:
    """Returns the superuser's URL of the database at `url` in the running embedded PostgreSQL."""
    return make_conninfo(url, user=SUPERUSER, password=home.secret("postgres"))


async def provision(
    url: str, password: str, service_url: str, service_password: str, superuser_url: Callable[[str], str]
) -> None:
    """Creates roles, database and extension if missing. Raises StartupError."""
    if await _usable(url) and await _usable(service_url):
        return
    try:
        async with await _connect(superuser_url("postgres")) as connection:
            await _make_roles_and_database(connection, password, service_password)
        async with await _connect(superuser_url(DATABASE)) as connection:
            await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            await connection.execute("ALTER EXTENSION vector UPDATE")
    except psycopg.Error as cause:
        raise StartupError(
            f"The embedded PostgreSQL runs but cannot be set up: {cause}. If it refuses the "
            "password, bring back the home's `secrets` directory that belongs to its database."
        ) from cause


async def _usable(url: str) -> bool:
    try:
        async with await _connect(url) as connection:
            found = await (await connection.execute(EXTENSION_VERSIONS)).fetchone()
    except psycopg.OperationalError:
        return False
    return found is not None and found[0] is not None and found[0] == found[1]


async def _make_roles_and_database(connection: psycopg.AsyncConnection, password: str, service_password: str) -> None:
    names = {
        "owner": sql.Identifier(OWNER),
        "service": sql.Identifier(SERVICE_ROLE),
        "bound": sql.Identifier(BOUND_ROLE),
        "database": sql.Identifier(DATABASE),
        "password": sql.Literal(password),
        "service_password": sql.Literal(service_password),
    }
    roles = [name for (name,) in await (await connection.execute(EXISTING_ROLES)).fetchall()]
    databases = [name for (name,) in await (await connection.execute(EXISTING_DATABASES)).fetchall()]
    create = {OWNER: CREATE_OWNER, SERVICE_ROLE: CREATE_SERVICE_ROLE, BOUND_ROLE: CREATE_BOUND_ROLE}
    steps = [statement for role, statement in create.items() if role not in roles]
    steps += [SET_PASSWORD, GRANT_SERVICE_ROLE, GRANT_BOUND_ROLE, LET_SERVICE_LOG_IN]
    steps += [] if DATABASE in databases else [CREATE_DATABASE]
    for step in [*steps, CLOSE_DATABASE, OPEN_DATABASE]:
        await connection.execute(sql.SQL(step).format(**names))


async def _connect(url: str) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS)
