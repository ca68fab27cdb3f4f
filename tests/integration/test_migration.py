"""The schema's version: one head, up and down and up again, a lock, and no damage to a newer database."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from agentcore import migration
from agentcore.errors import DependencyUnavailable, StartupError
from tests.fixtures.services import Services

SHAPE = """
SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
 WHERE table_schema = 'public' ORDER BY 1, 2"""


@pytest.fixture
def empty_database(services: Services) -> Iterator[str]:
    """A database of its own on the run's server."""
    name = f"migration_{uuid4().hex}"
    superuser_url = services.superuser_url()
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {} OWNER agentcore").format(sql.Identifier(name)))
    with psycopg.connect(superuser_url.replace("/postgres?", f"/{name}?"), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    yield services.database_url.replace("/agentcore?", f"/{name}?")
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


def shape(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(SHAPE).fetchall()


def test_up_down_up_ends_where_it_began(empty_database: str) -> None:
    assert migration.current_revision(empty_database) is None
    assert migration.upgrade(empty_database) == migration.head_revision()
    first = shape(empty_database)
    migration.downgrade(empty_database, "base")
    assert {row[0] for row in shape(empty_database)} == {"alembic_version"}
    migration.upgrade(empty_database)
    assert shape(empty_database) == first


async def test_two_processes_that_migrate_at_once_both_end_well(empty_database: str) -> None:
    upgrades = [asyncio.to_thread(migration.upgrade, empty_database) for _ in range(2)]
    assert await asyncio.gather(*upgrades) == [migration.head_revision()] * 2


def test_a_database_that_is_behind_is_told_how_to_catch_up(empty_database: str) -> None:
    with pytest.raises(StartupError, match="agentcore migrate"):
        migration.check_revision(empty_database)
    migration.upgrade(empty_database)
    migration.check_revision(empty_database)


def test_a_database_newer_than_the_code_is_refused_and_not_damaged(empty_database: str) -> None:
    migration.upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = shape(empty_database)
    for attempt in (migration.upgrade, migration.check_revision):
        with pytest.raises(StartupError, match="newer agentcore"):
            attempt(empty_database)
    assert shape(empty_database) == before


def test_a_role_that_may_not_grant_is_told_what_an_administrator_must_run(
    services: Services, empty_database: str
) -> None:
    stranger = f"stranger_{uuid4().hex}"
    database = urlsplit(empty_database).path[1:]
    superuser_url = services.superuser_url().replace("/postgres?", f"/{database}?")
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        name = sql.Identifier(stranger)
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'p'").format(name))
        connection.execute(sql.SQL("GRANT ALL ON SCHEMA public TO {}").format(name))
    url = f"postgresql://{stranger}:p@/{database}?{empty_database.split('?')[1]}"
    with pytest.raises(StartupError, match="GRANT agentcore_service TO"):
        migration.upgrade(url)
    assert migration.current_revision(empty_database) is None
    with psycopg.connect(superuser_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP OWNED BY {name}; DROP ROLE {name}").format(name=name))


def test_a_server_that_does_not_answer_is_a_dependency() -> None:
    with pytest.raises(DependencyUnavailable):
        migration.upgrade("postgresql://nobody@/none?host=/nonexistent")


def test_memories_are_partitioned_by_agent_and_nothing_has_a_vector_index_yet(empty_database: str) -> None:
    migration.upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        parts = connection.execute(
            "SELECT count(*) FROM pg_inherits WHERE inhparent = 'memories'::regclass"
        ).fetchone()
        keys = connection.execute("SELECT pg_get_partkeydef('memories'::regclass)").fetchone()
        vectors = connection.execute(
            "SELECT count(*) FROM pg_indexes WHERE indexdef ~ 'ivfflat|hnsw'"
        ).fetchone()
    assert (parts, keys, vectors) == ((32,), ("HASH (agent_id)",), (0,))
