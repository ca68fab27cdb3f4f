"""What the database holds before the schema: the extension, its owner, and the role the service acts as."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from agentcore.embedded.home import Home
from agentcore.errors import StartupError

SUPERUSER = "postgres"
OWNER = "agentcore"
DATABASE = "agentcore"
SERVICE_ROLE, BOUND_ROLE = "agentcore_service", "agentcore_bound"
CONNECT_SECONDS = 10

ROLE_EXISTS = "SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = %s)"
DATABASE_EXISTS = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = %s)"
EXTENSION_VERSIONS = """
    SELECT installed_version, default_version FROM pg_available_extensions WHERE name = 'vector'"""
CREATE_OWNER = "CREATE ROLE {owner} LOGIN CREATEROLE NOSUPERUSER"
LET_SERVICE_LOG_IN = "ALTER ROLE {service} LOGIN PASSWORD {service_password}"
SET_PASSWORD = "ALTER ROLE {owner} PASSWORD {password}"  # noqa: S105 - a statement
CREATE_SERVICE_ROLE = "CREATE ROLE {service} NOLOGIN NOSUPERUSER NOBYPASSRLS"
CREATE_BOUND_ROLE = "CREATE ROLE {bound} NOLOGIN NOSUPERUSER NOBYPASSRLS"
GRANT_SERVICE_ROLE = "GRANT {service} TO {owner} WITH SET TRUE, INHERIT FALSE"
# The service switches to it for a token that is bound to users.
GRANT_BOUND_ROLE = "GRANT {bound} TO {owner}, {service} WITH SET TRUE, INHERIT FALSE"
CREATE_DATABASE = "CREATE DATABASE {database} OWNER {owner}"
CLOSE_DATABASE = "REVOKE ALL ON DATABASE {database} FROM PUBLIC"
OPEN_DATABASE = "GRANT CONNECT ON DATABASE {database} TO {service}"


def superuser_url(home: Home, url: str) -> str:
    """Returns where the database at `url`, of the running embedded PostgreSQL, is open to its superuser."""
    return make_conninfo(url, user=SUPERUSER, password=home.secret("postgres"))


async def provision(
    url: str, password: str, service_url: str, service_password: str, superuser_url: Callable[[str], str]
) -> None:
    """See that both URLs open a database with today's extension; make what is missing."""
    if await _usable(url) and await _usable(service_url):
        return
    try:
        async with await _connect(superuser_url("postgres")) as connection:
            await _make_roles_and_database(connection, password, service_password)
        async with await _connect(superuser_url(DATABASE)) as connection:
            await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
            await connection.execute("ALTER EXTENSION vector UPDATE")
    except psycopg.Error as cause:
        raise StartupError(f"The embedded PostgreSQL runs but cannot be set up: {cause}. If it refuses the "
                           "password, bring back the home's `secrets` directory that belongs to its database."
                           ) from cause


async def _usable(url: str) -> bool:
    try:
        async with await _connect(url) as connection:
            found = await (await connection.execute(EXTENSION_VERSIONS)).fetchone()
    except psycopg.OperationalError:
        return False
    return found is not None and found[0] is not None and found[0] == found[1]


async def _make_roles_and_database(
    connection: psycopg.AsyncConnection, password: str, service_password: str
) -> None:
    names = {"owner": sql.Identifier(OWNER), "service": sql.Identifier(SERVICE_ROLE),
             "bound": sql.Identifier(BOUND_ROLE),
             "database": sql.Identifier(DATABASE), "password": sql.Literal(password),
             "service_password": sql.Literal(service_password)}
    steps = [] if await _exists(connection, ROLE_EXISTS, OWNER) else [CREATE_OWNER]
    steps += [SET_PASSWORD]
    steps += [] if await _exists(connection, ROLE_EXISTS, SERVICE_ROLE) else [CREATE_SERVICE_ROLE]
    steps += [] if await _exists(connection, ROLE_EXISTS, BOUND_ROLE) else [CREATE_BOUND_ROLE]
    steps += [GRANT_SERVICE_ROLE, GRANT_BOUND_ROLE, LET_SERVICE_LOG_IN]
    steps += [] if await _exists(connection, DATABASE_EXISTS, DATABASE) else [CREATE_DATABASE]
    for step in [*steps, CLOSE_DATABASE, OPEN_DATABASE]:
        await connection.execute(sql.SQL(step).format(**names))


async def _exists(connection: psycopg.AsyncConnection, question: str, name: str) -> bool:
    answer = await (await connection.execute(question, [name])).fetchone()
    return answer is not None and bool(answer[0])


async def _connect(url: str) -> psycopg.AsyncConnection:
    return await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=CONNECT_SECONDS)
