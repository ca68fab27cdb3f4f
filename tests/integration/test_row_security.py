"""Row security: even without its own conditions, a statement reaches only rows of the service's agent."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors, sql

from agentcore.database import BOUND_ROLE, SERVICE_ROLE, Connection
from agentcore.memory.forgetting.inventory import TABLES, OwnedTable
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.databases import migrated_database
from tests.fixtures.estates import settle
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.places import Holdings, holdings
from tests.fixtures.services import Services

REFUSED = "row-level security policy"
DENIED = "permission denied"
# Searches read the partitions of memories by name.
PARTITIONS = {f"memories_p{number:02}" for number in range(32)}
tables = pytest.mark.parametrize("table", TABLES, ids=lambda table: str(table.name))


def on(statement: str, table: OwnedTable | str, **parts: sql.Composable) -> sql.Composed:
    name = table if isinstance(table, str) else table.name
    return sql.SQL(statement).format(table=sql.Identifier(name), **parts)


@dataclass(frozen=True)
class Walled:
    """Two agents with equal estates, and sessions as the service opens them."""

    services: Services
    runtime: Runtime
    own: str
    other: str
    others_holdings: Holdings

    @asynccontextmanager
    async def session(self, agent_id: str | None) -> AsyncIterator[psycopg.AsyncConnection]:
        """Opens a transaction with the service's role and an agent's setting; it is rolled back."""
        async with await psycopg.AsyncConnection.connect(self.services.database_url) as connection:
            await connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(SERVICE_ROLE)))
            if agent_id is not None:
                await connection.execute("SELECT set_config('agentcore.agent_id', %s, true)", (agent_id,))
            yield connection
            await connection.rollback()

    @asynccontextmanager
    async def lasting(self, agent_id: str) -> AsyncIterator[Connection]:
        """Opens a transaction of the service's pool, which is committed."""
        async with self.runtime.database.transaction(agent_id) as connection:
            yield connection

    async def rows(self, table: OwnedTable) -> int:
        """Returns the number of the agent's rows, counted as the owner."""
        async with self.runtime.database.owner_transaction() as connection:
            cursor = await connection.execute(
                on("SELECT count(*) AS count FROM {table} WHERE agent_id = %s", table), (self.own,)
            )
            return int((await cursor.fetchone() or {})["count"])

    async def assert_other_untouched(self) -> None:
        self.others_holdings.assert_untouched(await holdings(self.runtime, self.other))


@pytest.fixture(scope="module")
async def walled(services: Services, runtime: Runtime) -> Walled:
    """Two agents for all tests of this module, which leave their rows as they are."""
    own, other = await settle(runtime, {Agent(runtime): "heron", Agent(runtime): "zebra"})
    for each in (own, other):
        await runtime.database.owner_rows(
            sql.SQL("INSERT INTO vector_changes (agent_id, memory_id) VALUES (%(agent_id)s, gen_random_uuid())"),
            agent_id=each.agent.agent_id,
        )
    before = await holdings(runtime, other.agent.agent_id)
    return Walled(services, runtime, own.agent.agent_id, other.agent.agent_id, before)


async def values(connection: Any, statement: Any, arguments: Any = ()) -> list[Any]:
    return [
        next(iter(row.values())) if isinstance(row, dict) else row[0]
        for row in await (await connection.execute(statement, arguments)).fetchall()
    ]


async def rows_of(connection: Any, agent_id: str) -> dict[str, set[tuple[str, str]]]:
    """Returns the agent's rows by table, each with the transaction that wrote it."""
    found = {}
    for table in TABLES:
        written = on("SELECT ARRAY[t.xmin::text, t::text] FROM {table} AS t WHERE agent_id = %s", table)
        found[table.name] = {(each[0], each[1]) for each in await values(connection, written, (agent_id,))}
    return found


@pytest.mark.shows("NFR-6.1")
async def test_selecting_without_a_condition_gives_the_own_rows_alone(walled: Walled) -> None:
    for table in TABLES:
        async with walled.session(walled.own) as connection:
            agents = await values(connection, on("SELECT agent_id FROM {table}", table))
            asked = await values(
                connection, on("SELECT agent_id FROM {table} WHERE agent_id = %s", table), (walled.other,)
            )
        assert len(agents) == await walled.rows(table) > 0
        assert set(agents) == {walled.own}
        assert asked == []


async def test_a_condition_is_never_asked_of_a_foreign_row(walled: Walled) -> None:
    for table in TABLES:
        async with walled.session(walled.own) as connection:
            # Fails on the first row of another agent.
            statement = on("SELECT 1 FROM {table} WHERE 1 / (agent_id = %s)::integer = 1", table)
            assert set(await values(connection, statement, (walled.own,))) == {1}


@tables
async def test_updating_everything_changes_the_own_rows_alone(walled: Walled, table: OwnedTable) -> None:
    async with walled.lasting(walled.own) as connection:
        cursor = await connection.execute(on("UPDATE {table} SET agent_id = agent_id", table))
        aimed = await connection.execute(
            on("UPDATE {table} SET agent_id = agent_id WHERE agent_id = %s", table), (walled.other,)
        )
    assert (cursor.rowcount, aimed.rowcount) == (await walled.rows(table), 0)
    await walled.assert_other_untouched()


@tables
async def test_deleting_everything_removes_the_own_rows_alone(walled: Walled, table: OwnedTable) -> None:
    expected = await walled.rows(table)
    async with walled.runtime.database.owner_transaction() as connection:
        before = await rows_of(connection, walled.other)
    async with walled.session(walled.own) as connection:
        aimed = await connection.execute(on("DELETE FROM {table} WHERE agent_id = %s", table), (walled.other,))
        cursor = await connection.execute(on("DELETE FROM {table}", table))
        await connection.execute("RESET ROLE")
        own, other = await rows_of(connection, walled.own), await rows_of(connection, walled.other)
    assert (aimed.rowcount, cursor.rowcount) == (0, expected)
    assert own[table.name] == set()
    assert other == before
    await walled.assert_other_untouched()


@tables
async def test_a_row_cannot_be_given_to_another_agent(walled: Walled, table: OwnedTable) -> None:
    async with walled.session(walled.own) as connection:
        with pytest.raises(errors.InsufficientPrivilege, match=REFUSED):
            await connection.execute(on("UPDATE {table} SET agent_id = %s", table), (walled.other,))
    await walled.assert_other_untouched()


async def columns_of(connection: Any, table: OwnedTable) -> sql.Composable:
    """Returns the columns to copy a row with: all but the agent's and generated ones."""
    names = await values(
        connection,
        "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 "
        "AND NOT attisdropped AND attidentity = '' AND attgenerated = '' AND attname <> 'agent_id'",
        (table.name,),
    )
    return sql.SQL("").join(sql.SQL(", ") + sql.Identifier(name) for name in names)


@tables
async def test_a_row_cannot_be_made_for_another_agent(walled: Walled, table: OwnedTable) -> None:
    for clash in (sql.SQL(""), sql.SQL("ON CONFLICT DO NOTHING")):
        async with walled.session(walled.own) as connection:
            statement = on(
                "INSERT INTO {table} (agent_id{others}) SELECT %s{others} FROM {table} LIMIT 1 {clash}",
                table,
                others=await columns_of(connection, table),
                clash=clash,
            )
            with pytest.raises(errors.InsufficientPrivilege, match=REFUSED):
                await connection.execute(statement, (walled.other,))
    await walled.assert_other_untouched()


async def test_a_clash_with_another_agents_key_neither_overwrites_nor_tells(walled: Walled) -> None:
    async with walled.session(walled.own) as connection:
        with pytest.raises(errors.InsufficientPrivilege, match=REFUSED):
            await connection.execute(
                "INSERT INTO completed_tasks (agent_id, task_id, completed_at) "
                "SELECT %s, task_id, completed_at FROM completed_tasks "
                "ON CONFLICT (agent_id, task_id) DO UPDATE SET completed_at = now()",
                (walled.other,),
            )
    await walled.assert_other_untouched()


@pytest.mark.parametrize("setting", [None, ""])
async def test_without_an_agent_there_is_nothing(walled: Walled, setting: str | None) -> None:
    for table in TABLES:
        async with walled.session(setting) as connection:
            assert await values(connection, on("SELECT count(*) FROM {table}", table)) == [0]
            assert (await connection.execute(on("DELETE FROM {table}", table))).rowcount == 0
    async with walled.session(setting) as connection:
        with pytest.raises(errors.InsufficientPrivilege, match=REFUSED):
            await connection.execute(
                "INSERT INTO completed_tasks (agent_id, task_id, completed_at) VALUES (%s, 't', now())", (walled.own,)
            )
    await walled.assert_other_untouched()


async def test_the_setting_ends_with_its_transaction_also_when_that_fails(walled: Walled) -> None:
    pool = walled.runtime.database.write
    for agent_id in (walled.own, walled.other) * 8:
        with pytest.raises(errors.DivisionByZero):
            async with walled.lasting(agent_id) as connection:
                await connection.execute("SELECT 1 / 0")
        async with pool.connection() as connection:
            assert await values(connection, "SELECT count(*) FROM memories") == [0]
            assert await values(connection, "SELECT current_user::text") == [SERVICE_ROLE]


@pytest.mark.parametrize(
    ("parent", "statements"),
    [("memories", ()), ("memory_passages", ("SELECT * FROM {table}", "COPY {table} TO STDOUT"))],
)
async def test_partitions_are_closed_to_the_service(walled: Walled, parent: str, statements: Sequence[str]) -> None:
    """Those of memories are readable."""
    async with walled.session(walled.own) as connection:
        leaves = await values(
            connection, "SELECT inhrelid::regclass FROM pg_inherits WHERE inhparent = %s::regclass", (parent,)
        )
    assert len(leaves) == 32
    for leaf in leaves:
        async with walled.session(walled.own) as connection:
            for statement in (
                *statements,
                "UPDATE {table} SET agent_id = agent_id",
                "DELETE FROM {table}",
                "INSERT INTO {table} (agent_id) VALUES ('x')",
                "TRUNCATE {table}",
            ):
                with pytest.raises(errors.InsufficientPrivilege, match=DENIED):
                    async with connection.transaction():
                        await connection.execute(on(statement, leaf))


@tables
async def test_the_service_may_neither_empty_nor_change_a_table(walled: Walled, table: OwnedTable) -> None:
    statements = (
        "TRUNCATE {table}",
        "ALTER TABLE {table} DISABLE ROW LEVEL SECURITY",
        "DROP TABLE {table}",
        "DROP POLICY own_agent ON {table}",
        "CREATE INDEX ON {table} (agent_id)",
        "CREATE TRIGGER t AFTER INSERT ON {table} EXECUTE FUNCTION tsvector_update_trigger()",
    )
    async with walled.session(walled.own) as connection:
        for statement in statements:
            with pytest.raises(errors.InsufficientPrivilege, match=f"{DENIED}|must be owner"):
                async with connection.transaction():
                    await connection.execute(on(statement, table))


async def test_the_services_role_is_bound_and_owns_nothing(walled: Walled) -> None:
    async with walled.session(walled.own) as connection:
        assert await values(
            connection,
            "SELECT rolsuper OR rolbypassrls OR rolcreaterole FROM pg_roles WHERE rolname = %s",
            (SERVICE_ROLE,),
        ) == [False]
        assert (
            await values(connection, "SELECT relname FROM pg_class WHERE relowner = %s::regrole", (SERVICE_ROLE,)) == []
        )
        assert (
            await values(
                connection,
                "SELECT rolname FROM pg_auth_members JOIN pg_roles r ON r.oid = roleid "
                "WHERE member = %s::regrole AND (rolname <> %s OR inherit_option OR admin_option)",
                (SERVICE_ROLE, BOUND_ROLE),
            )
            == []
        ), "it may switch to the narrower role, and no other"
        reachable = await values(
            connection,
            "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace "
            "AND relkind IN ('r', 'p', 'v', 'm') "
            "AND has_table_privilege(oid, 'SELECT, INSERT, UPDATE, DELETE')",
        )
    assert set(reachable) == {table.name for table in TABLES} | PARTITIONS


@pytest.mark.shows("A14-role")
async def test_a_login_of_its_own_serves_agents_and_cannot_become_the_owner(services: Services, agent: Agent) -> None:
    login, password = f"login_{uuid4().hex}", uuid4().hex
    names = {"login": sql.Identifier(login), "role": sql.Identifier(SERVICE_ROLE)}
    with psycopg.connect(services.superuser_url(), autocommit=True) as administrator:
        administrator.execute(
            sql.SQL("CREATE ROLE {login} LOGIN PASSWORD {password}").format(password=sql.Literal(password), **names)
        )
        administrator.execute(sql.SQL("GRANT {role} TO {login}").format(**names))
        administrator.execute(sql.SQL("GRANT CONNECT ON DATABASE agentcore TO {login}").format(**names))
    await agent.stored_id("The canoe is green.")
    parts = urlsplit(services.database_url)
    url = urlunsplit(parts._replace(netloc=f"{login}:{password}@"))
    async with open_runtime(settings_for(services, database_service_url=url)) as running:
        own = Agent(running, agent.agent_id)
        await own.stored_id("The kite is red.")
        assert sorted(await own.found("canoe kite")) == ["The canoe is green.", "The kite is red."]
        async with running.database.transaction(agent.agent_id) as connection:
            await connection.execute("RESET ROLE")
            assert await values(connection, "SELECT current_user::text") == [login]
        async with running.database.transaction(agent.agent_id) as connection:
            with pytest.raises(errors.InsufficientPrivilege):
                await (await connection.execute("SET ROLE agentcore")).fetchall()
    with psycopg.connect(services.superuser_url(), autocommit=True) as administrator:
        administrator.execute(sql.SQL("REVOKE CONNECT ON DATABASE agentcore FROM {login}").format(**names))
        administrator.execute(sql.SQL("DROP ROLE {login}").format(**names))


async def test_row_security_is_on_wherever_an_agent_owns_rows(walled: Walled) -> None:
    async with walled.session(walled.own) as connection:
        secured = await values(
            connection, "SELECT relname FROM pg_class WHERE relrowsecurity AND row_security_active(oid)"
        )
        policies = await values(connection, "SELECT tablename FROM pg_policies WHERE %s = ANY (roles)", (SERVICE_ROLE,))
    tables = {table.name for table in TABLES} | PARTITIONS
    assert sorted(secured) == sorted(policies) == sorted(tables)


async def test_a_partition_read_by_name_has_the_agents_rows_alone(walled: Walled) -> None:
    async with walled.session(walled.own) as connection:
        of_all = await values(connection, "SELECT memory_id FROM memories")
        of_partitions = [
            each for leaf in PARTITIONS for each in await values(connection, on("SELECT memory_id FROM {table}", leaf))
        ]
    assert of_all
    assert sorted(of_all) == sorted(of_partitions)


async def test_the_planners_statistics_tell_no_foreign_words(walled: Walled) -> None:
    async with walled.runtime.database.owner_transaction() as connection:
        await connection.execute("ANALYZE")
        seen = set(await values(connection, "SELECT tablename FROM pg_stats WHERE attname = 'agent_id'"))
    assert {table.name for table in TABLES} <= seen
    async with walled.session(walled.own) as connection:
        assert (
            await values(connection, "SELECT tablename FROM pg_stats WHERE tablename = ANY (%s)", (list(seen),)) == []
        )


LEXICAL = "SELECT * FROM lexical_hits(%s, %s::bigint[], %s::real[], '{}', 100, 1.2, 0.75)"


async def term_keys_of(walled: Walled, agent_id: str) -> list[int]:
    async with walled.runtime.database.owner_transaction() as connection:
        return await values(
            connection, "SELECT DISTINCT unnest(term_keys) FROM memories WHERE agent_id = %s", (agent_id,)
        )


async def test_the_lexical_function_serves_the_agent_of_the_transaction_alone(walled: Walled) -> None:
    own, foreign = await term_keys_of(walled, walled.own), await term_keys_of(walled, walled.other)
    async with walled.session(walled.own) as connection:
        assert await values(connection, LEXICAL, (walled.own, own, [1.0] * len(own))) != []
        assert await values(connection, LEXICAL, (walled.own, foreign, [1.0] * len(foreign))) == []
        for stranger in (walled.other, None, ""):
            with pytest.raises(errors.InsufficientPrivilege, match="agent of the transaction alone"):
                async with connection.transaction():
                    await connection.execute(LEXICAL, (stranger, foreign, [1.0] * len(foreign)))


@pytest.mark.parametrize("setting", [None, ""])
async def test_the_lexical_function_finds_nothing_without_an_agent(walled: Walled, setting: str | None) -> None:
    keys = await term_keys_of(walled, walled.other)
    async with walled.session(setting) as connection:
        with pytest.raises(errors.InsufficientPrivilege, match="agent of the transaction alone"):
            async with connection.transaction():
                await connection.execute(LEXICAL, (walled.other, keys, [1.0] * len(keys)))
        assert await values(connection, LEXICAL, (setting, keys, [1.0] * len(keys))) == []


async def test_the_lexical_function_reads_no_table_that_the_caller_puts_in_front(walled: Walled) -> None:
    """It runs with its owner's rights, and temporary objects come first in the search path by default."""
    keys = await term_keys_of(walled, walled.own)
    async with walled.session(walled.own) as connection:
        # As granted in databases that our setup did not create.
        await connection.execute("RESET ROLE")
        await connection.execute("GRANT TEMPORARY ON DATABASE agentcore TO agentcore_service")
        await connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(SERVICE_ROLE)))
        await connection.execute("CREATE TEMPORARY TABLE memories (agent_id text)")
        assert await values(connection, LEXICAL, (walled.own, keys, [1.0] * len(keys))) != []


@pytest.mark.shows("B20")
async def test_the_constants_of_bm25_are_defined_in_python_alone(walled: Walled) -> None:
    async with walled.runtime.database.owner_transaction() as connection:
        [source] = await values(connection, "SELECT prosrc FROM pg_proc WHERE proname = 'lexical_hits'")
    assert not re.search(r"[0-9]\.[0-9]", source)


# --- users -------------------------------------------------------------------------------------------------


OF_USERS = {
    "memories",
    "memory_usage",
    "memory_links",
    "memory_history",
    "memory_subjects",
    "memory_passages",
    "archived_memories",
    "archived_copies",
    "lexical_terms",
    "lexical_totals",
    "lexical_deltas",
}


async def _filled(connection: Connection) -> set[str]:
    """Returns the tables in which the transaction sees a row."""
    return {table.name for table in TABLES if await values(connection, on("SELECT count(*) FROM {table}", table)) > [0]}


@pytest.mark.shows("issue13-users")
async def test_a_transaction_bound_to_users_sees_no_row_of_others(walled: Walled) -> None:
    async with walled.runtime.database.transaction(walled.own) as connection:
        everything = await _filled(connection)
    assert everything == {table.name for table in TABLES}
    for users in (["somebody else"], []):
        async with walled.runtime.database.bound_to(users).transaction(walled.own) as connection:
            assert await values(connection, "SELECT current_user::text") == [BOUND_ROLE]
            assert everything - await _filled(connection) == OF_USERS


@pytest.mark.shows("issue13-users")
async def test_a_transaction_bound_to_users_cannot_write_for_others(walled: Walled) -> None:
    bound = walled.runtime.database.bound_to(["somebody else"])
    with pytest.raises(errors.InsufficientPrivilege, match="row-level security"):
        async with bound.transaction(walled.own) as connection:
            await connection.execute(
                "INSERT INTO memories (agent_id, memory_id, memory_type, content, summary, timestamp, "
                "content_hash, user_id) VALUES (%s, gen_random_uuid(), 'episodic', 'x', 'x', now(), '', 'b')",
                (walled.own,),
            )


async def test_a_temporary_table_of_the_caller_is_not_changed_with_the_owners_rights(services: Services) -> None:
    with migrated_database(services) as own:
        async with await psycopg.AsyncConnection.connect(own.url) as connection:
            await connection.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(SERVICE_ROLE)))
            await connection.execute("SELECT set_config('agentcore.agent_id', 'ada', true)")
            await connection.execute("CREATE TEMPORARY TABLE two_phase_commits AS SELECT 1 AS row_id")
            await connection.execute("GRANT ALL ON two_phase_commits TO PUBLIC")
            await connection.execute("SELECT enqueue_job('ada', 'embed_passages', '{}', 'lock', now())")
            cursor = await connection.execute("SELECT row_id FROM two_phase_commits")
            assert await cursor.fetchall() == [(1,)]
