"""Schema migrations: a single head, upgrade and downgrade, a lock, and refusal of newer databases."""

from __future__ import annotations

import asyncio
import hashlib
import os
import subprocess
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
import pytest
from procrastinate.schema import SchemaManager
from psycopg import sql

from agentcore import migration, migration_runner
from agentcore.errors import DependencyUnavailable, StartupError
from agentcore.memory.models import MemoryType
from agentcore.memory.params.archived import ArchivedParams, RestoreParams
from agentcore.memory.params.changes import HistoryParams, UpdateParams
from agentcore.memory.params.memories import PruneParams
from agentcore.runtime import open_runtime
from tests.fixtures.databases import migrated_database, own_database
from tests.fixtures.embedded_parts import eventually
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services

CATALOG = """
SELECT 'column', table_name || '.' || column_name,
       concat_ws(' ', data_type, is_nullable, column_default, generation_expression, is_identity)
  FROM information_schema.columns WHERE table_schema = 'public'
 UNION ALL
SELECT 'storage', c.relname || '.' || a.attname, a.attstorage::text
  FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
   AND a.attnum > 0 AND NOT a.attisdropped
 UNION ALL
SELECT 'relation', relname,
       concat_ws(' ', relkind, relacl, reloptions, relrowsecurity, pg_get_partkeydef(oid),
                 pg_get_expr(relpartbound, oid), obj_description(oid, 'pg_class'))
  FROM pg_class WHERE relnamespace = 'public'::regnamespace
 UNION ALL
SELECT 'function', p.oid::regprocedure::text, concat_ws(' ', pg_get_functiondef(p.oid), p.proacl)
  FROM pg_proc p
 WHERE p.pronamespace = 'public'::regnamespace AND p.prokind = 'f'
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
 UNION ALL
SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
 UNION ALL
SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
  FROM pg_constraint WHERE connamespace = 'public'::regnamespace
 UNION ALL
SELECT 'policy', tablename || '.' || policyname, concat_ws(' ', permissive, roles, cmd, qual, with_check)
  FROM pg_policies
 UNION ALL
SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = 'public'
 UNION ALL
SELECT 'trigger', tgrelid::regclass || '.' || tgname, pg_get_triggerdef(oid)
  FROM pg_trigger WHERE NOT tgisinternal
 UNION ALL
SELECT 'value', t.typname || '.' || e.enumlabel, e.enumsortorder::text
  FROM pg_enum e JOIN pg_type t ON t.oid = e.enumtypid"""

# Tables of agents with their columns, in an order that foreign keys allow.
COLUMNS = """
SELECT t.relname, array_agg(a.attname::text)
  FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0
   AND a.attgenerated = '' AND a.attidentity = ''
 WHERE t.relnamespace = 'public'::regnamespace AND t.relkind IN ('r', 'p') AND NOT t.relispartition
   AND EXISTS (SELECT FROM pg_attribute k WHERE k.attrelid = t.oid AND k.attname = 'agent_id')
 GROUP BY t.relname ORDER BY t.relname <> 'memories'"""
ROOT = Path(__file__).resolve().parents[2]
ONE_REVISION_BACK = "UPDATE alembic_version SET version_num = '0038'"
OLD_SCHEMA = ROOT / "tests" / "data" / "schema_0033.sql"


@pytest.fixture
def empty_database(services: Services) -> Iterator[str]:
    """A separate empty database on the run's server."""
    with own_database(services) as own:
        yield own.url


def catalog(url: str) -> dict[tuple[str, str], str]:
    """Everything of the schema but `alembic_version`, by type and name."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(CATALOG).fetchall()
    return {(kind, name): text for kind, name, text in rows if "alembic_version" not in name}


def test_migrations_produce_the_schema_of_a_new_database(empty_database: str, services: Services) -> None:
    assert migration.current_revision(empty_database) is None
    assert migration.upgrade(empty_database) == migration.head_revision()
    assert migration.current_revision(empty_database) == migration.head_revision()
    with own_database(services) as other:
        migration_runner.upgrade(psycopg.connect(other.url), migration.SCRIPTS, "head")
        assert migration.current_revision(other.url) == migration.head_revision()
        expected = catalog(other.url)
    assert len(expected) > 6_000
    assert catalog(empty_database) == expected


def test_a_start_on_a_current_database_imports_neither_alembic_nor_sqlalchemy(services: Services) -> None:
    script = (
        "import sys; from agentcore import migration, runtime, server; "
        "migration.upgrade(sys.argv[1]); migration.check_revision(sys.argv[1]); "
        "print(sorted({'alembic', 'sqlalchemy'} & sys.modules.keys()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, services.database_url], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_kind_of_a_memory_is_that_of_its_provenance(empty_database: str) -> None:
    migration.upgrade(empty_database)
    insert = (
        "INSERT INTO memories (agent_id, memory_id, memory_type, content, summary, timestamp, content_hash, "
        "provenance) VALUES ('ada', gen_random_uuid(), 'semantic', '', '', now(), '', "
        "jsonb_build_object('form', %s::text)) RETURNING kind"
    )
    with psycopg.connect(empty_database, autocommit=True) as connection:
        assert connection.execute(insert, ("fact",)).fetchone() == ("fact",)
        with pytest.raises(psycopg.errors.CheckViolation):
            connection.execute(insert, ("rumor",))


@pytest.mark.shows("issue2-3-migrations")
async def test_two_processes_that_migrate_at_once_both_end_well(empty_database: str) -> None:
    upgrades = [asyncio.to_thread(migration.upgrade, empty_database) for _ in range(2)]
    assert await asyncio.gather(*upgrades) == [migration.head_revision()] * 2


@pytest.fixture
def old_database(empty_database: str) -> str:
    """A database as the version of the first revision created it."""
    with psycopg.connect(empty_database) as connection:
        connection.execute(OLD_SCHEMA.read_bytes())
        connection.execute("CREATE TABLE alembic_version (version_num varchar(32) PRIMARY KEY)")
        connection.execute("INSERT INTO alembic_version VALUES (%s)", [migration.FIRST_REVISION])
    return empty_database


def copy_agent(source: str, target: str) -> dict[str, int]:
    """Copies the rows of all agents; returns the number of rows by table."""
    copied = {}
    with psycopg.connect(source) as here, psycopg.connect(target) as there:
        for table, columns in there.execute(COLUMNS).fetchall():
            name, names = sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
            rows = here.execute(sql.SQL("SELECT jsonb_agg(to_jsonb(t))::text FROM {} t").format(name)).fetchone()
            insert = sql.SQL(
                "INSERT INTO {name} ({names}) SELECT {names} FROM jsonb_populate_recordset(NULL::{name}, %s)"
            ).format(name=name, names=names)
            copied[table] = there.execute(insert, rows).rowcount
    return copied


@pytest.mark.shows("issue2-3-migrations")
async def test_an_old_database_gets_the_schema_of_a_new_one_and_keeps_its_rows(
    old_database: str, services: Services
) -> None:
    with migrated_database(services) as new:
        async with open_runtime(settings_for(services, database_url=new.url)) as running:
            agent = Agent(running)
            archived = await agent.stored_id("Ada keeps bees on the roof.")
            await agent.memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, strategy="oldest_first", target=1.0))
            kept = await agent.stored_id("The ferry leaves at 7.")
            changed = {"memory_id": kept, "updates": {"content": "The ferry to Skye leaves at 7:15."}}
            await agent.memory.update(UpdateParams.model_validate(changed))
            await agent.stored_id("Mira learns the cello.")
        copied = copy_agent(new.url, old_database)
        assert copied["memories"] == 2
        assert copied["archived_memories"] == copied["archived_copies"] == 1
        assert copied["memory_history"] >= 1
        assert migration.upgrade(old_database) == migration.head_revision()
        assert catalog(old_database) == catalog(new.url)
    async with open_runtime(settings_for(services, database_url=old_database)) as running:
        agent = Agent(running, agent.agent_id)
        assert (await agent.found("When does the ferry to Skye leave?"))[0] == "The ferry to Skye leaves at 7:15."
        assert [each.version for each in (await agent.memory.history(HistoryParams(memory_id=kept))).changes]
        assert [each.memory_id for each in (await agent.memory.archived(ArchivedParams())).memories] == [archived]
        assert (await agent.memory.restore(RestoreParams(memory_ids=[archived]))).restored_count == 1
        assert (await agent.get(archived)).content == "Ada keeps bees on the roof."
        await agent.stored_id("The heron comes to the pond at dusk.")
        assert "The heron comes to the pond at dusk." in await agent.found("heron at the pond")


def test_the_command_of_alembic_ends_with_the_same_schema(old_database: str, services: Services) -> None:
    with migrated_database(services) as new:
        expected = catalog(new.url)
    environment = {**os.environ, "DATABASE_URL": old_database}
    command = [sys.executable, "-m", "alembic", "upgrade", "head"]
    subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=True)
    assert migration.current_revision(old_database) == migration.head_revision()
    assert catalog(old_database) == expected


def test_an_upgrade_replaces_the_functions(empty_database: str) -> None:
    migration.upgrade(empty_database)
    expected = catalog(empty_database)
    broken = (
        "CREATE OR REPLACE FUNCTION json_texts(value jsonb) RETURNS text[] LANGUAGE sql IMMUTABLE RETURN NULL::text[]"
    )
    with psycopg.connect(empty_database, autocommit=True) as connection:
        connection.execute(broken)
        connection.execute(ONE_REVISION_BACK)
    migration.upgrade(empty_database)
    assert catalog(empty_database) == expected
    # A current database is not locked: other processes may serve.
    with psycopg.connect(empty_database) as reading:
        reading.execute("SELECT FROM memories")
        migration.upgrade(empty_database)


def test_a_change_of_the_functions_comes_with_a_revision() -> None:
    """Databases at the newest revision do not get functions.sql again: replace the digest in a new revision."""
    digest = hashlib.sha256((migration.SCRIPTS / "functions.sql").read_bytes()).hexdigest()
    [newest] = (migration.SCRIPTS / "versions").glob(f"{migration.head_revision()}_*.py")
    assert digest in newest.read_text()


async def test_an_upgrade_locks_tables_in_the_order_of_an_erasure(
    empty_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    migration.upgrade(empty_database)
    monkeypatch.setattr(migration, "ATTEMPTS", 1)
    with psycopg.connect(empty_database) as erasing, psycopg.connect(empty_database, autocommit=True) as looking:
        looking.execute(ONE_REVISION_BACK)
        erasing.execute("SELECT FROM archived_memories FOR UPDATE")
        upgrade = asyncio.create_task(asyncio.to_thread(migration.upgrade, empty_database))
        blocked = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
        await eventually(lambda: looking.execute(blocked, [erasing.info.backend_pid]).fetchone() == (1,))
        # Would deadlock if the upgrade had locked a later table first.
        for table in ("memories", "memory_links", "memory_history", "archived_copies", "lexical_deltas"):
            erasing.execute(sql.SQL("DELETE FROM {}").format(sql.Identifier(table)))
        erasing.commit()
        assert await upgrade == migration.head_revision()


def test_locks_of_other_sessions_are_named_and_the_next_upgrade_goes_on(
    old_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migration, "TABLE_LOCK_TIMEOUT_SECONDS", 1)
    monkeypatch.setattr(migration, "ATTEMPTS", 2)
    with psycopg.connect(old_database) as reading:
        reading.execute("SELECT FROM memories")
        with pytest.raises(StartupError, match=r"Other sessions held locks.*run `agentcore migrate` again"):
            migration.upgrade(old_database)
    assert migration.current_revision(old_database) == "0034"
    assert migration.upgrade(old_database) == migration.head_revision()


def test_tombstones_without_an_archive_stop_the_upgrade_with_their_repair(old_database: str) -> None:
    with psycopg.connect(old_database) as connection:
        connection.execute(
            "INSERT INTO archived_memories (agent_id, memory_id, version, memory_type, object_key, sha256, size_bytes, "
            "reason) VALUES ('ada', gen_random_uuid(), 1, 'episodic', 'key', '', 0, 'test')"
        )
    with pytest.raises(StartupError, match=r"^1 archived memories .*`agentcore archive verify --adopt`") as refused:
        migration.upgrade(old_database)
    assert migration.current_revision(old_database) == "0036"
    [repair] = [each for each in str(refused.value).split(": ") if each.startswith("DELETE")]
    with psycopg.connect(old_database) as connection:
        connection.execute(repair.partition(". Then")[0].encode())
    assert migration.upgrade(old_database) == migration.head_revision()


def test_a_database_that_is_behind_is_told_how_to_catch_up(empty_database: str) -> None:
    with pytest.raises(StartupError, match="agentcore migrate"):
        migration.check_revision(empty_database)
    migration.upgrade(empty_database)
    migration.check_revision(empty_database)


@pytest.mark.shows("issue2-3-migrations")
def test_a_database_newer_than_the_code_is_refused_and_not_damaged(empty_database: str) -> None:
    migration.upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    before = catalog(empty_database)
    for attempt in (migration.upgrade, migration.check_revision):
        with pytest.raises(StartupError, match="newer agentcore"):
            attempt(empty_database)
    assert catalog(empty_database) == before


def test_a_database_from_before_the_first_release_is_refused(empty_database: str) -> None:
    migration.upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '0023'")
    before = catalog(empty_database)
    for attempt in (migration.upgrade, migration.check_revision):
        with pytest.raises(StartupError, match="agentcore export"):
            attempt(empty_database)
    assert catalog(empty_database) == before


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


@pytest.mark.parametrize(
    "url", ["foo", "postgresql+psycopg://ada:hunter2@db/memory", "postgresql://ada:hunter2%zz@db/memory"]
)
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


@pytest.mark.parametrize(
    ("user", "database", "sentence"),
    [
        ("agentcore:hunter2", "agentcore", "refuses the user or the password of DATABASE_URL"),
        ("nobody_here:hunter2", "agentcore", "refuses the user or the password of DATABASE_URL"),
        (None, "agentcore", "refuses the user or the password of DATABASE_URL"),
        (None, "postgres", "run `agentcore migrate`"),
        (None, "not_made", "The database that DATABASE_URL names does not exist"),
    ],
)
def test_a_refused_connection_says_what_of_the_url_is_wrong(
    services: Services, locked_out: str, user: str | None, database: str, sentence: str
) -> None:
    url = f"postgresql://{user or locked_out}@/{database}?{urlsplit(services.database_url).query}"
    with pytest.raises(StartupError, match=sentence):
        migration.check_revision(url)


@pytest.mark.shows("issue2-3-schema")
def test_memories_are_partitioned_by_agent_and_nothing_has_a_vector_index_yet(empty_database: str) -> None:
    migration.upgrade(empty_database)
    with psycopg.connect(empty_database) as connection:
        parts = connection.execute("SELECT count(*) FROM pg_inherits WHERE inhparent = 'memories'::regclass").fetchone()
        keys = connection.execute("SELECT pg_get_partkeydef('memories'::regclass)").fetchone()
        vectors = connection.execute("SELECT count(*) FROM pg_indexes WHERE indexdef ~ 'ivfflat|hnsw'").fetchone()
    assert (parts, keys, vectors) == ((32,), ("HASH (agent_id)",), (0,))


@pytest.mark.shows("issue4-9-schema")
def test_the_schema_of_the_job_library_is_that_of_the_installed_version(
    empty_database: str, services: Services
) -> None:
    def of_the_library(url: str) -> dict[tuple[str, str], str]:
        return {key: text for key, text in catalog(url).items() if "procrastinate" in key[1]}

    migration.upgrade(empty_database)
    with own_database(services) as other:
        with psycopg.connect(other.url) as connection:
            connection.execute(SchemaManager.get_schema())
        expected = of_the_library(other.url)
    assert len(expected) > 70
    assert of_the_library(empty_database) == expected
