"""Agent transactions and driver errors: row security behind a pooler, and messages per cause."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from agentcore.database import Connection, Database, Statement
from agentcore.errors import (
    AgentCoreError,
    DependencyUnavailable,
    DiskFull,
    NotFound,
    PoolExhausted,
    ReadOnlyDatabase,
    ServerLimit,
    StatementTimeout,
    TransactionConflict,
    Unreachable,
)
from agentcore.sql_errors import translated_errors
from tests.fixtures.services import Services


@asynccontextmanager
async def one_connection(services: Services, options: str = "") -> AsyncIterator[Database]:
    """A database whose pools have one connection each."""
    database = Database(services.database_url + options, pool_size=1)
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def answer(connection: Connection, statement: str) -> object:
    row = await (await connection.execute(statement.encode())).fetchone()
    assert row is not None
    return next(iter(row.values()))


async def test_a_transaction_takes_the_service_role_itself(services: Services) -> None:
    agent_id = f"agent-{uuid4()}"
    async with one_connection(services) as database:
        # As from a pooler in transaction mode: a session without any setting.
        async with database.write.connection() as connection:
            await connection.execute("RESET ROLE")
            await connection.execute("RESET plan_cache_mode")
        async with database.transaction(agent_id) as connection:
            assert await answer(connection, "SELECT current_user") == "agentcore_service"
            assert await answer(connection, "SELECT current_setting('agentcore.agent_id')") == agent_id
            assert await answer(connection, "SHOW plan_cache_mode") == "force_custom_plan"
        async with database.write.connection() as connection:
            assert await answer(connection, "SELECT current_user") == "agentcore"


def each(*statements: str) -> list[Statement]:
    return [(sql.SQL(statement), {}) for statement in statements]


async def test_what_is_fetched_together_is_one_transaction_of_its_agent(services: Services) -> None:
    agent_id = f"agent-{uuid4()}"
    whose = "SELECT current_user, current_setting('agentcore.agent_id'), pg_current_xact_id()::text AS id"
    async with one_connection(services) as database:
        async with database.write.connection() as connection:
            await connection.execute("RESET ROLE")
        [first], [second] = await database.fetch(agent_id, each(whose, whose))
        assert first == second
        assert list(first.values())[:2] == ["agentcore_service", agent_id]
        async with database.write.connection() as connection:
            assert await answer(connection, "SELECT current_setting('agentcore.agent_id', true)") == ""
            assert await answer(connection, "SELECT current_user") == "agentcore"


@pytest.mark.parametrize(
    "statements",
    [("SELECT 1 / 0", "SELECT 2"), ("SELECT 2", "SELECT 1 / 0"), ("SELECT nothing", "SELECT 2"), ("SELEKT",)],
)
async def test_a_statement_that_fails_leaves_its_connection_clean(
    services: Services, statements: tuple[str, ...]
) -> None:
    async with one_connection(services) as database:
        [[before]] = await database.fetch("anyone", each("SELECT pg_backend_pid() AS pid"))
        with pytest.raises((psycopg.errors.DivisionByZero, psycopg.ProgrammingError)):
            await database.fetch("anyone", each(*statements))
        [[after]] = await database.fetch("anyone", each("SELECT pg_backend_pid() AS pid"))
        assert before == after


async def test_a_caller_who_goes_away_leaves_no_answer_behind(services: Services) -> None:
    async with one_connection(services) as database:
        async with database.owner_transaction() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock(4711)")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await database.fetch("anyone", each("SELECT pg_advisory_xact_lock_shared(4711)"))
        [[row]] = await database.fetch("anyone", each("SELECT 7 AS seven"))
        assert row == {"seven": 7}


async def test_a_connection_that_the_server_closed_is_not_handed_out(services: Services) -> None:
    async with one_connection(services) as database:
        [[row]] = await database.fetch("anyone", each("SELECT pg_backend_pid() AS pid"))
        async with database.owner_transaction() as connection:
            await connection.execute("SELECT pg_terminate_backend(%s, 5000)", (row["pid"],))
        [[after]] = await database.fetch("anyone", each("SELECT pg_backend_pid() AS pid"))
        assert after["pid"] != row["pid"]


async def test_every_connection_tells_time_in_utc(services: Services) -> None:
    async with one_connection(services, "&options=-c%20TimeZone%3DAsia/Tokyo") as database:
        async with database.transaction("anyone") as connection:
            assert await answer(connection, "SHOW TimeZone") == "UTC"
        async with database.read.connection() as connection:
            assert await answer(connection, "SHOW TimeZone") == "UTC"
        async with database.owner_transaction() as connection:
            assert await answer(connection, "SHOW TimeZone") == "UTC"
        async with database.owner_autocommit() as connection:
            assert await answer(connection, "SHOW TimeZone") == "UTC"


async def test_a_standby_that_takes_no_changes_is_a_passing_trouble(services: Services) -> None:
    async with one_connection(services) as database:
        with pytest.raises(DependencyUnavailable, match="standby"):
            async with database.transaction("anyone") as connection:
                await connection.execute("SET TRANSACTION READ ONLY")
                await connection.execute("DELETE FROM memories WHERE agent_id = 'anyone'")


async def test_a_link_to_what_was_deleted_meanwhile_finds_nothing(services: Services) -> None:
    async with one_connection(services) as database:
        with pytest.raises(NotFound, match="deleted meanwhile"):
            async with database.transaction("anyone") as connection:
                await connection.execute(
                    "INSERT INTO memory_links (agent_id, source_id, target_id, relation) "
                    "VALUES ('anyone', gen_random_uuid(), gen_random_uuid(), 'beside')"
                )


@pytest.mark.parametrize(
    ("sqlstate", "error", "sentence"),
    [
        ("08006", Unreachable, "does not answer"),
        ("25006", ReadOnlyDatabase, "standby"),
        ("40001", TransactionConflict, "nothing of it was kept"),
        ("40P01", TransactionConflict, "nothing of it was kept"),
        ("53100", DiskFull, "no room on its disk"),
        ("53400", ServerLimit, "temp_file_limit"),
        ("53300", PoolExhausted, "no more connections"),
        ("57014", StatementTimeout, "took too long"),
        ("57P01", Unreachable, "does not answer"),
    ],
)
@pytest.mark.shows("issue13-error-causes")
async def test_each_cause_of_a_servers_error_has_its_class(
    services: Services, sqlstate: str, error: type[AgentCoreError], sentence: str
) -> None:
    block = sql.SQL("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = {}; END $$")
    raising = block.format(sql.Literal(sqlstate))
    async with await psycopg.AsyncConnection.connect(services.database_url) as connection:
        with pytest.raises(error, match=sentence), translated_errors():
            await connection.execute(raising)
        await connection.rollback()


async def test_a_statement_that_is_wrong_stays_what_it_is(services: Services) -> None:
    async with await psycopg.AsyncConnection.connect(services.database_url) as connection:
        with pytest.raises(psycopg.errors.DivisionByZero), translated_errors():
            await connection.execute("SELECT 1 / 0")
        await connection.rollback()
