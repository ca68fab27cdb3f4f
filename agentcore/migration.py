"""Creates and upgrades the schema under a lock, and refuses a database newer than the code.

Alembic is imported only to upgrade an existing database: the import takes a fifth of the time of a start.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import psycopg

from agentcore.errors import DependencyUnavailable, StartupError

Connection = psycopg.Connection[tuple[Any, ...]]

# The oldest revision that can be upgraded.
FIRST_REVISION = "0033"
LOCK_KEY = 4_205_913_847_102_611_329
LOCK_TIMEOUT_SECONDS = 60
# The timeout of each table lock. Other calls wait behind the migration meanwhile. Longer than deadlock_timeout, after
# which PostgreSQL cancels an autovacuum that holds the lock.
TABLE_LOCK_TIMEOUT_SECONDS = 3
ATTEMPTS, PAUSE_SECONDS = 10, 0.5
NOT_A_URL = "DATABASE_URL is not a PostgreSQL URL (postgresql://user:password@host:5432/database)."
NO_CITUS = (
    "The database has no Citus: install it on every node, add the nodes, and run CREATE EXTENSION citus on each as an "
    "administrator; or migrate without --distribute."
)
NOT_DISTRIBUTABLE = (
    "The database already has tables that are not distributed. Create an empty database, run `agentcore migrate "
    "--distribute` there, and move each agent with `agentcore export` and `agentcore import`."
)
TABLES_LOCKED = (
    "Other sessions held locks on tables that the migration changes: run `agentcore migrate` again. If it fails again, "
    "end the long transactions that pg_stat_activity lists."
)
RUNNER = "agentcore.migration_runner"
_BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected)
_REFUSALS = (
    (
        ("28",),
        re.compile(
            r"authentication failed for user|no password supplied|role \".*\" does not exist|"
            r"no pg_hba\.conf entry|is not permitted to log in|permission denied for database"
        ),
        "PostgreSQL refuses the user or the password of DATABASE_URL: fix them, or allow the user to connect.",
    ),
    (
        ("3D000",),
        re.compile(r"database \".*\" does not exist"),
        "The database that DATABASE_URL names does not exist: create it, or name another.",
    ),
)
_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent / "alembic"
SCRIPTS = _CHECKOUT if (_CHECKOUT / "env.py").exists() else _PACKAGE / "_migrations" / "alembic"


def schema() -> bytes:
    return b"\n".join((SCRIPTS / name).read_bytes() for name in ("procrastinate.sql", "schema.sql"))


@cache
def revisions() -> tuple[str, ...]:
    """Returns the known revisions, oldest first. Raises StartupError if there is none."""
    found = sorted(path.name.partition("_")[0] for path in (SCRIPTS / "versions").glob("*_*.py"))
    if not found:
        raise StartupError("The migrations are missing from this installation: install agentcore again.")
    return tuple(found)


def head_revision() -> str:
    return revisions()[-1]


def current_revision(database_url: str) -> str | None:
    """Returns None before the first start. Raises DependencyUnavailable."""
    with _connected(database_url) as connection:
        return _revision_of(connection)


def check_revision(database_url: str) -> None:
    """Raises StartupError unless the database is at this code's revision."""
    found, head = current_revision(database_url), head_revision()
    if found == head:
        return
    if found is None or found in revisions():
        raise StartupError(
            f"The database schema is at revision {found or 'none'}, this code needs {head}: "
            "run `agentcore migrate` (or `agentcore serve --migrate`)."
        )
    raise StartupError(_unknown(found, head))


def upgrade(database_url: str, *, distribute: bool = False) -> str:
    """Creates or upgrades the schema, one process at a time; returns the new revision.

    `distribute`: creates the tables distributed over the nodes of a Citus cluster. Raises StartupError for a newer
    database, if it cannot be distributed, and if other sessions lock its tables; DependencyUnavailable.
    """
    attempts = ATTEMPTS
    while True:
        try:
            return _upgrade(database_url, distribute)
        except StartupError as refused:
            attempts -= 1
            if not attempts or not isinstance(refused.__cause__, _BUSY):
                raise
        time.sleep(PAUSE_SECONDS)


def _upgrade(database_url: str, distribute: bool) -> str:
    with locked(database_url) as connection:
        found, head = _revision_of(connection), head_revision()
        if distribute:
            _check_distributable(connection, found)
        if found is None:
            _create(connection, head, distribute)
        elif found not in revisions():
            raise StartupError(_unknown(found, head))
        connection.commit()
        if found not in (None, head):
            import_module(RUNNER).upgrade(connection, SCRIPTS, "head")
        return head


def replace_functions(connection: Connection) -> None:
    """Replaces functions, triggers and policies. A change of the file needs a new revision."""
    connection.execute((SCRIPTS / "functions.sql").read_bytes())


def _check_distributable(connection: Connection, found: str | None) -> None:
    if not connection.execute("SELECT FROM pg_extension WHERE extname = 'citus'").fetchall():
        raise StartupError(NO_CITUS)
    if (
        found is not None
        and connection.execute("SELECT FROM pg_partitioned_table WHERE partrelid = to_regclass('memories')").fetchall()
    ):
        raise StartupError(NOT_DISTRIBUTABLE)


def _create(connection: Connection, revision: str, distribute: bool) -> None:
    # Distributed tables have shards instead of partitions.
    connection.execute(schema().replace(b") PARTITION BY HASH (agent_id);", b");") if distribute else schema())
    connection.execute(
        "CREATE TABLE alembic_version (version_num varchar(32) CONSTRAINT alembic_version_pkc PRIMARY KEY)"
    )
    connection.execute("INSERT INTO alembic_version VALUES (%s)", (revision,))
    replace_functions(connection)
    if distribute:
        connection.execute((SCRIPTS / "distribute.sql").read_bytes())


def _revision_of(connection: Connection) -> str | None:
    [(table,)] = connection.execute("SELECT to_regclass('alembic_version')::text")
    row = None if table is None else connection.execute("SELECT version_num FROM alembic_version").fetchone()
    return None if row is None else str(row[0])


def _unknown(found: str, head: str) -> str:
    if found < FIRST_REVISION:
        return (
            f"The database schema is at revision {found}, from before the first release, and cannot be "
            "upgraded. Nothing was changed. Export each agent with the agentcore that created the database "
            "(agentcore export), and import into a new one (agentcore import)."
        )
    return (
        f"The database schema is at revision {found}, which this code (revision {head}) does not know: "
        "it was made by a newer agentcore. Nothing was changed; run that newer version."
    )


@contextmanager
def locked(database_url: str) -> Iterator[Connection]:
    """Connects and takes the lock of migrations. Raises StartupError and DependencyUnavailable."""
    with _connected(database_url) as connection:
        connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT_SECONDS}s'".encode())
        try:
            connection.execute("SELECT pg_advisory_lock(%s)", (LOCK_KEY,))
        except psycopg.errors.LockNotAvailable:
            raise StartupError(
                "Another process is migrating this database and did not end within "
                f"{LOCK_TIMEOUT_SECONDS} s: wait for it, then start again."
            ) from None
        connection.execute(f"SET lock_timeout = '{TABLE_LOCK_TIMEOUT_SECONDS}s'".encode())
        connection.commit()
        yield connection


@contextmanager
def _connected(database_url: str) -> Iterator[Connection]:
    """Closes without a commit. Raises StartupError and DependencyUnavailable."""
    try:
        connection = psycopg.connect(database_url, connect_timeout=10)
    except psycopg.ProgrammingError as cause:
        if cause.sqlstate is not None:
            raise
        # The driver's message quotes the URL, and with it the password.
        raise StartupError(NOT_A_URL) from None
    except psycopg.OperationalError as cause:
        raise _refusal(cause) from cause
    try:
        yield connection
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported) as cause:
        raise StartupError(f"The migration is not possible here: {_explained(cause)}") from cause
    except _BUSY as cause:
        raise StartupError(TABLES_LOCKED) from cause
    except psycopg.OperationalError as cause:
        raise _refusal(cause) from cause
    finally:
        connection.close()


def _refusal(error: psycopg.OperationalError) -> StartupError | DependencyUnavailable:
    said = str(error)
    for states, words, sentence in _REFUSALS:
        if (error.sqlstate or "").startswith(states) or words.search(said):
            return StartupError(sentence)
    if error.sqlstate is not None and not error.sqlstate.startswith(("08", "57P")):
        return DependencyUnavailable(f"PostgreSQL stopped the migration: {_explained(error)}")
    return DependencyUnavailable("PostgreSQL does not answer at DATABASE_URL.")


def _explained(error: psycopg.Error) -> str:
    said = [error.diag.message_primary, error.diag.message_detail, error.diag.message_hint]
    if "vector" in (error.diag.message_primary or ""):
        said.append("Install pgvector on the server and, as an administrator, run: CREATE EXTENSION vector;")
    return " ".join(sentence for sentence in said if sentence)
