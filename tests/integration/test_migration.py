"""Schema migrations: a single head, upgrade and downgrade, a lock, and refusal of newer databases."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Iterator
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from procrastinate.schema import SchemaManager
from psycopg import sql

from agentcore import migration
from agentcore.errors import DependencyUnavailable, StartupError
from tests.fixtures.databases import own_database
from tests.fixtures.services import Services

SHAPE = """
SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
 WHERE table_schema = 'public' ORDER BY 1, 2"""


@pytest.fixture
def empty_database(services: Services) -> Iterator[str]:
    """A separate empty database on the run's server."""
    with own_database(services) as own:
        yield own.url


def shape(url: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url) as connection:
        return connection.execute(SHAPE).fetchall()


def lexical_functions(url: str) -> set[str]:
    with psycopg.connect(url) as connection:
        found = connection.execute(
            "SELECT proname FROM pg_proc WHERE starts_with(proname, 'lexical_') "
            "AND has_function_privilege('agentcore_service', oid, 'EXECUTE')")
        return {name for (name,) in found}


def test_up_down_up_ends_where_it_began(empty_database: str) -> None:
    assert migration.current_revision(empty_database) is None
    assert migration.upgrade(empty_database) == migration.head_revision()
    first = shape(empty_database)
    migration.downgrade(empty_database, "base")
    assert {row[0] for row in shape(empty_database)} == {"alembic_version"}
    migration.upgrade(empty_database)
    assert shape(empty_database) == first


def test_a_step_back_brings_the_functions_back_that_the_step_dropped(empty_database: str) -> None:
    migration.upgrade(empty_database)
    assert lexical_functions(empty_database) == {"lexical_hits"}
    migration.downgrade(empty_database, "0007")
    assert lexical_functions(empty_database) == {"lexical_arm", "lexical_sessions", "lexical_hits"}


def test_a_step_back_recreates_the_table_of_aliases_with_its_row_security(empty_database: str) -> None:
    migration.upgrade(empty_database)
    with psycopg.connect(empty_database, autocommit=True) as connection:
        assert connection.execute("SELECT to_regclass('memory_aliases')").fetchall() == [(None,)]
        migration.downgrade(empty_database, "0030")
        policies = connection.execute(
            "SELECT policyname, permissive, roles::text[] FROM pg_policies "
            "WHERE tablename = 'memory_aliases' ORDER BY 1").fetchall()
        [(granted, secured)] = connection.execute(
            "SELECT has_table_privilege('agentcore_service', oid, 'SELECT, INSERT, UPDATE, DELETE') "
            "AND has_table_privilege('agentcore_bound', oid, 'SELECT, INSERT, UPDATE, DELETE'), "
            "relrowsecurity FROM pg_class WHERE relname = 'memory_aliases'").fetchall()
    assert policies == [
        ("own_agent", "PERMISSIVE", ["agentcore_bound", "agentcore_service"]),
        ("own_users", "RESTRICTIVE", ["agentcore_bound"])]
    assert (granted, secured) == (True, True)


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


@pytest.mark.parametrize("url", [
    "foo", "postgresql+psycopg://ada:hunter2@db/memory", "postgresql://ada:hunter2%zz@db/memory",
])
def test_what_is_no_url_of_postgresql_is_named_so_and_not_quoted(url: str) -> None:
    for attempt in (migration.upgrade, migration.check_revision):
        with pytest.raises(StartupError, match="DATABASE_URL is not a PostgreSQL URL") as refused:
            attempt(url)
        told = "".join(traceback.format_exception(refused.value))
        assert "hunter2" not in told
        assert '"foo"' not in told


@pytest.fixture
def locked_out(services: Services) -> Iterator[str]:
    """A role without the right to connect to the run's database."""
    name = f"stranger_{uuid4().hex}"
    with psycopg.connect(services.superuser_url(), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'right'").format(sql.Identifier(name)))
        yield f"{name}:right"
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@pytest.mark.parametrize(("user", "database", "sentence"), [
    ("agentcore:hunter2", "agentcore", "refuses the user or the password of DATABASE_URL"),
    ("nobody_here:hunter2", "agentcore", "refuses the user or the password of DATABASE_URL"),
    (None, "agentcore", "refuses the user or the password of DATABASE_URL"),
    (None, "postgres", "run `agentcore migrate`"),
    (None, "not_made", "The database that DATABASE_URL names does not exist"),
])
def test_a_refused_connection_says_what_of_the_url_is_wrong(
    services: Services, locked_out: str, user: str | None, database: str, sentence: str
) -> None:
    url = f"postgresql://{user or locked_out}@/{database}?{urlsplit(services.database_url).query}"
    with pytest.raises(StartupError, match=sentence):
        migration.check_revision(url)


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


CATALOG = """
SELECT 'column', table_name || '.' || column_name,
       data_type || ' ' || is_nullable || ' ' || coalesce(column_default, '')
  FROM information_schema.columns WHERE table_schema = 'public' AND table_name LIKE 'procrastinate%'
 UNION ALL
SELECT 'function', proname, pg_get_functiondef(oid) FROM pg_proc WHERE proname LIKE 'procrastinate%'
 UNION ALL
SELECT 'index', indexname, indexdef FROM pg_indexes WHERE indexname LIKE '%procrastinate%'
 UNION ALL
SELECT 'constraint', conname, pg_get_constraintdef(oid) FROM pg_constraint
 WHERE conname LIKE '%procrastinate%'
 UNION ALL
SELECT 'trigger', tgname, pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname LIKE 'procrastinate%'
 UNION ALL
SELECT 'value', t.typname || ' ' || e.enumlabel, e.enumsortorder::text
  FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid
 ORDER BY 1, 2, 3"""


def test_the_schema_of_the_job_library_is_that_of_the_installed_version(
    empty_database: str, services: Services
) -> None:
    migration.upgrade(empty_database)
    with own_database(services) as other, psycopg.connect(other.url) as theirs:
        theirs.execute(SchemaManager.get_schema())
        expected = theirs.execute(CATALOG).fetchall()
    assert len(expected) > 70
    with psycopg.connect(empty_database) as ours:
        assert ours.execute(CATALOG).fetchall() == expected
