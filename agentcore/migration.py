"""Schema migrations: upgrades under a lock, and rejects a database newer than the code.

Only Alembic changes the schema; its scripts execute the SQL files in alembic/sql.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from alembic import command, op
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from agentcore.errors import DependencyUnavailable, StartupError

# The oldest that can be upgraded.
FIRST_REVISION = "0033"
LOCK_KEY = 4_205_913_847_102_611_329
LOCK_TIMEOUT_SECONDS = 60
NOT_A_URL = "DATABASE_URL is not a PostgreSQL URL (postgresql://user:password@host:5432/database)."
_REFUSALS = (
    (("28",), re.compile(r"authentication failed for user|no password supplied|role \".*\" does not exist|"
                         r"no pg_hba\.conf entry|is not permitted to log in|permission denied for database"),
     "PostgreSQL refuses the user or the password of DATABASE_URL: mend them, or allow the user to connect."),
    (("3D000",), re.compile(r"database \".*\" does not exist"),
     "The database that DATABASE_URL names does not exist: create it, or name another."),
)
_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parent / "alembic"
SCRIPTS = _CHECKOUT if (_CHECKOUT / "env.py").exists() else _PACKAGE / "_migrations" / "alembic"


def run_sql(name: str) -> None:
    """Executes one SQL file of the migrations within the running migration."""
    connection = op.get_bind()
    cursor = connection.connection.cursor()
    cursor.execute((SCRIPTS / name).read_text(encoding="utf-8"))


def head_revision() -> str:
    """Returns the newest revision that this code has."""
    head = ScriptDirectory(str(SCRIPTS)).get_current_head()
    if head is None:
        raise StartupError("The migrations are missing from this installation: install agentcore again.")
    return head


def current_revision(database_url: str) -> str | None:
    """Returns the database's revision; None before the first migration. Raises DependencyUnavailable."""
    with _connected(database_url) as connection:
        return MigrationContext.configure(connection).get_current_revision()


def check_revision(database_url: str) -> None:
    """Raises StartupError with a fix unless the database is at this code's revision."""
    found, head = current_revision(database_url), head_revision()
    if found == head:
        return
    if found is None or _is_known(found):
        raise StartupError(
            f"The database schema is at revision {found or 'none'}, this code needs {head}: "
            "run `agentcore migrate` (or `agentcore serve --migrate`)."
        )
    raise StartupError(_unknown(found, head))


def upgrade(database_url: str) -> str:
    """Migrates the database to this code's revision, under a lock; returns the revision.

    Raises StartupError for a database newer than the code, DependencyUnavailable if it does not respond.
    """
    with _connected(database_url) as connection:
        _lock(connection)
        found, head = MigrationContext.configure(connection).get_current_revision(), head_revision()
        if found is not None and not _is_known(found):
            raise StartupError(_unknown(found, head))
        connection.commit()
        if found != head:
            config = Config()
            config.set_main_option("script_location", str(SCRIPTS).replace("%", "%%"))
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
            connection.commit()
        return head


def _is_known(revision: str) -> bool:
    return any(script.revision == revision for script in ScriptDirectory(str(SCRIPTS)).walk_revisions())


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


def _lock(connection: Connection) -> None:
    cursor = connection.connection.cursor()
    cursor.execute(f"SET lock_timeout = '{LOCK_TIMEOUT_SECONDS}s'")
    try:
        cursor.execute("SELECT pg_advisory_lock(%s)", (LOCK_KEY,))
    except psycopg.errors.LockNotAvailable as cause:
        raise StartupError(
            "Another process is migrating this database and did not end within "
            f"{LOCK_TIMEOUT_SECONDS} s: wait for it, then start again."
        ) from cause


@contextmanager
def _connected(database_url: str) -> Iterator[Connection]:
    def connect() -> psycopg.Connection[tuple[object, ...]]:
        return psycopg.connect(database_url, connect_timeout=10)

    engine = create_engine("postgresql+psycopg://", creator=connect, poolclass=NullPool)
    try:
        with engine.connect() as connection:
            yield connection
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.FeatureNotSupported) as cause:
        raise StartupError(f"The migration is not possible here: {_explained(cause)}") from cause
    except psycopg.OperationalError as cause:
        raise _refusal(cause) from cause
    except DBAPIError as cause:
        if isinstance(cause.orig, psycopg.OperationalError):
            raise _refusal(cause.orig) from cause
        if isinstance(cause.orig, psycopg.ProgrammingError) and cause.orig.sqlstate is None:
            # The driver's message quotes the URL with its password.
            raise StartupError(NOT_A_URL) from None
        raise
    finally:
        engine.dispose()


def _refusal(error: psycopg.OperationalError) -> StartupError | DependencyUnavailable:
    said = str(error)
    for states, words, sentence in _REFUSALS:
        if (error.sqlstate or "").startswith(states) or words.search(said):
            return StartupError(sentence)
    return DependencyUnavailable("PostgreSQL does not answer at DATABASE_URL.")


def _explained(error: psycopg.Error) -> str:
    said = [error.diag.message_primary, error.diag.message_detail, error.diag.message_hint]
    if "vector" in (error.diag.message_primary or ""):
        said.append("Install pgvector on the server and, as an administrator, run: CREATE EXTENSION vector;")
    return " ".join(sentence for sentence in said if sentence)
