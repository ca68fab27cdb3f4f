"""The isolation matrix: every method with another agent's ids, against every place of the text inventory.

A method without a row fails, and so does a table, column or Redis key that the inventory lacks.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from psycopg import sql

from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from agentcore.database import Connection, Database, Statement
from agentcore.database import Row as DatabaseRow
from agentcore.errors import AgentCoreError
from agentcore.memory.api import METHODS, SCOPES, AnyMethod, Caller, MemoryApi
from agentcore.memory.forgetting.inventory import ARCHIVE, TABLES, RedisKeys
from agentcore.memory.forgetting.inventory import INVENTORY as PLACES
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import MemoryType, Strict
from agentcore.memory.ranking.candidates import SearchLimits
from agentcore.memory.storage import MemoryStorage
from agentcore.memory.vector_store import PgVectorStore
from agentcore.memory.working import GENERATION_PREFIX, INSTANCE_KEY
from agentcore.params import (
    CompleteTaskParams,
    DeleteParams,
    GetContextParams,
    PruneParams,
    StoreBatchParams,
    StoreParams,
)
from agentcore.runtime import Runtime
from agentcore.server import create_app
from tests.fixtures.estates import Estate, Strange, clear, settle
from tests.fixtures.memory import Agent
from tests.fixtures.places import holdings
from tests.fixtures.requests_of_strangers import MATRIX
from tests.fixtures.services import Services

UUID_FORM = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
VOLATILE = {
    "job_id",
    "enqueued_at",
    "timings_ms",
    "created_at",
    "updated_at",
    "expires_at",
    "changed_at",
    "archived_at",
    "sha256",
    "size_bytes",
    "signed_receipt",
}


async def _outcome(memory: MemoryApi, attribute: str, params: Strict, names: dict[str, str]) -> Any:
    """Returns the caller's result, with ids replaced by roles and without values that vary per call."""
    try:
        seen = (await getattr(memory, attribute)(params)).model_dump(mode="json")
    except AgentCoreError as error:
        seen = {
            "error": type(error).__name__,
            "code": int(error.code),
            "message": error.message,
            "retryable": error.retryable,
            "data": error.data,
        }
    return _plain(seen, names)


def _plain(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {
            key: each is not None if key == "next_cursor" else _plain(each, names)
            for key, each in value.items()
            if key not in VOLATILE
        }
    if isinstance(value, list):
        return [_plain(each, names) for each in value]
    if isinstance(value, float):
        return round(value, 6)  # terms are summed in the order of keys, which differ by agent
    if isinstance(value, str):
        return UUID_FORM.sub(lambda found: names.get(found[0], "new"), value)
    return value


async def _outcomes(memory: MemoryApi, method: AnyMethod, strange: Strange, own: Estate) -> list[Any]:
    names = {str(each): f"strange-{number}" for number, each in enumerate(strange.ids)}
    names |= {str(each): f"own-{number}" for number, each in enumerate(own.ids)}
    return [await _outcome(memory, method.attribute, params, names) for params in MATRIX[method.name](strange, own)]


# --- call paths ---------------------------------------------------------------------------------------------


class OwnersDatabase(Database):
    """Owner transactions, which bypass row security: only the statements' own conditions remain."""

    @asynccontextmanager
    async def transaction(self, agent_id: str, *, record_lsn: bool = True) -> AsyncIterator[Connection]:
        async with super().transaction(agent_id, record_lsn=record_lsn) as connection:
            await connection.execute("SET LOCAL ROLE NONE")
            yield connection

    async def fetch(
        self, agent_id: str, statements: Sequence[Statement], *, primary: bool = False, by_key: bool = False
    ) -> list[list[DatabaseRow]]:
        async with self.transaction(agent_id) as connection:
            cursors = [await connection.execute(*statement) for statement in statements]
            return [list(await cursor.fetchall()) for cursor in cursors]


Way = Callable[[Agent], MemoryApi]


@pytest.fixture
async def over_http(runtime: Runtime) -> AsyncIterator[Way]:
    """Calls the whole service: token, JSON bytes, statement conditions and row security."""
    transport = httpx.ASGITransport(create_app(runtime))
    secret = runtime.settings.jwt_secret_key
    assert secret is not None

    def way(agent: Agent) -> MemoryApi:
        token = mint_token(secret.get_secret_value(), agent.agent_id, [*SCOPES], 600)
        return MemoryClient("http://service", token, transport=transport, max_attempts=1)

    yield way
    await transport.aclose()


@asynccontextmanager
async def _without_row_security(runtime: Runtime, services: Services, limits: SearchLimits) -> AsyncIterator[Way]:
    database = OwnersDatabase(services.database_url)
    await database.open()
    active = sql.SQL("SELECT row_security_active('memories') AS active")
    async with database.transaction("nobody") as connection:
        assert await (await connection.execute(active)).fetchone() == {"active": False}
    assert await database.fetch("nobody", [(active, {})]) == [[{"active": False}]]
    vectors = PgVectorStore(database, runtime.parts.policy.embedding_dimensions, limits)
    parts = replace(runtime.parts, storage=MemoryStorage(database), vectors=vectors)
    yield lambda agent: MemoryManager(parts, Caller(agent.agent_id))
    await database.close()


@pytest.fixture
async def past_the_second_wall(runtime: Runtime, services: Services) -> AsyncIterator[Way]:
    """Calls in-process without row security: only the statements' conditions isolate agents."""
    async with _without_row_security(runtime, services, runtime.parts.policy.limits) as way:
        yield way


@pytest.fixture
async def past_it_as_a_large_agent(runtime: Runtime, services: Services) -> AsyncIterator[Way]:
    """Same, with the statements that search a large agent through an index."""
    limits = replace(runtime.parts.policy.limits, exact_search_limit=0)
    async with _without_row_security(runtime, services, limits) as way:
        yield way


@pytest.fixture(params=["over_http", "past_the_second_wall", "past_it_as_a_large_agent"])
def way(request: pytest.FixtureRequest) -> Way:
    """Each path to call a method."""
    chosen: Way = request.getfixturevalue(request.param)
    return chosen


def _logged(services: Services, captured: str) -> str:
    files = Path(services.home / "log").glob("*.log*")
    return captured + "".join(path.read_text(errors="replace") for path in files)


def _nearly(answers: Any) -> Any:
    """Replaces numbers by approximate values, since scores decay within seconds."""
    if isinstance(answers, float):
        return pytest.approx(answers, abs=1e-4)
    if isinstance(answers, dict):
        return {name: _nearly(value) for name, value in answers.items()}
    return [_nearly(value) for value in answers] if isinstance(answers, list) else answers


# --- the tests ---------------------------------------------------------------------------------------------


@pytest.mark.shows("issue2-isolation")
def test_the_matrix_has_a_row_for_each_method_and_no_other() -> None:
    assert set(MATRIX) == {method.name for method in METHODS}


# Methods that change nothing share one pair of agents; each other method finds them complete.
READING = tuple(method for method in METHODS if method.scope == "memory:read")
TOGETHER = [READING, *((method,) for method in METHODS if method not in READING)]


@pytest.mark.parametrize(
    "methods", TOGETHER, ids=lambda methods: "reading" if methods == READING else str(methods[0].name)
)
@pytest.mark.shows("NFR-6.1")
async def test_another_agents_things_are_as_if_they_did_not_exist_and_stay_as_they_are(
    runtime: Runtime,
    services: Services,
    new_agent: Callable[..., Agent],
    way: Way,
    methods: Sequence[AnyMethod],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG", "agentcore")
    theirs, ours = f"zebra{secrets.token_hex(8)}", f"heron{secrets.token_hex(8)}"
    # The control agent calls first, before the other agent exists: no data can leak into its results.
    await clear(runtime)
    nobodys = Strange.nobodys(theirs)
    [twin] = await settle(runtime, {new_agent(): ours})
    expected = {method.name: await _outcomes(way(twin.agent), method, nobodys, twin) for method in methods}

    owner, caller = await settle(runtime, {new_agent(): theirs, new_agent(): ours})
    # Another agent completes a task with the caller's task id; the caller's task must remain.
    await owner.agent.memory.complete_task(CompleteTaskParams(task_id=f"only-{ours}"))
    before = await holdings(runtime, owner.agent.agent_id)
    assert before.empty_places() == set()
    seen = {method.name: await _outcomes(way(caller.agent), method, Strange.of(owner), caller) for method in methods}
    await runtime.parts.accesses.flush(runtime.parts.storage)

    assert seen == _nearly(expected)
    for method in methods:
        assert any("error" not in each for each in seen[method.name]), method.name
    assert theirs not in json.dumps(seen)
    after = await holdings(runtime, owner.agent.agent_id)
    before.assert_untouched(after)
    assert theirs not in _logged(services, caplog.text)


async def test_every_table_with_an_agent_stands_in_the_inventory(runtime: Runtime) -> None:
    async with runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT DISTINCT c.table_name AS name FROM information_schema.columns c "
            "JOIN pg_class k ON k.oid = format('%I.%I', c.table_schema, c.table_name)::regclass "
            "WHERE c.table_schema = current_schema() AND c.column_name = 'agent_id' AND NOT k.relispartition"
        )
        found = {row["name"] for row in await cursor.fetchall()}
    assert found == {table.name for table in TABLES}


async def test_every_column_that_could_hold_text_is_of_a_kind(runtime: Runtime) -> None:
    async with runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT table_name, column_name, data_type, udt_name FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND table_name = ANY (%s) AND column_name <> 'agent_id'",
            ([table.name for table in TABLES],),
        )
        rows = await cursor.fetchall()
    numbers = {"smallint", "integer", "bigint", "real", "numeric", "boolean", "date", "timestamp with time zone"}
    for table in TABLES:
        columns = {row["column_name"]: row for row in rows if row["table_name"] == table.name}
        known = {*table.text, *table.vectors, *table.digests, *table.labels}
        assert known <= set(columns), table.name
        unknown = {name for name, row in columns.items() if row["data_type"] not in numbers} - known
        assert unknown <= {"term_memories"}, table.name  # counts, in an array
        assert {name for name, row in columns.items() if row["udt_name"] in ("halfvec", "vector")} == set(
            table.vectors
        ), table.name


async def test_every_key_in_redis_belongs_to_a_place(runtime: Runtime, agent: Agent) -> None:
    await settle(runtime, {agent: "otter"})
    assert runtime.redis is not None
    prefixes = tuple(place.prefix for place in PLACES if isinstance(place, RedisKeys))
    keys = [key.decode() async for key in runtime.redis.scan_iter(count=1_000)]
    assert {prefix for prefix in prefixes for key in keys if key.startswith(prefix)} == set(prefixes)
    others = {key for key in keys if not key.startswith(prefixes)} - {INSTANCE_KEY}
    for key in others:
        if key.startswith("memory:positions:"):
            continue  # numbers, of the tests of replicas
        assert key.startswith(GENERATION_PREFIX)
        generation = await runtime.redis.get(key)
        assert isinstance(generation, bytes)
        assert re.fullmatch(rb"[0-9a-f]{32}", generation)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(("a:b", "c"), ("a", "b:c"), id="separator"),
        pytest.param(("a%3Ad", "c"), ("a:d", "c"), id="already encoded"),
        pytest.param(("../x", "t"), ("x", "../t"), id="parent directory"),
        pytest.param((".", "."), ("..", ".."), id="dots"),
        pytest.param(("/etc", "/t"), ("\\etc", "\\t"), id="slashes"),
        pytest.param(("*", "*"), ("?", "?"), id="wildcards of Redis"),
        pytest.param(("%", "%"), ("_", "_"), id="wildcards of SQL"),
        pytest.param(("'; DROP TABLE memories; --", "'"), ('"', '"'), id="quotes"),
        pytest.param(("Zoe\u0308", "t"), ("Zo\u00eb", "t"), id="two forms of one letter"),
        pytest.param(("ada-l", "t"), ("Ada-L", "t"), id="case"),
        pytest.param(("👩‍🚀🜁", "任务"), ("👩‍🚀🜂", "任务"), id="unicode"),
        pytest.param(("x" * 255, "y" * 255), ("x" * 254 + "z", "y" * 255), id="255 characters"),
    ],
)
@pytest.mark.shows("issue2-isolation")
async def test_hostile_ids_meet_nobody(
    runtime: Runtime, new_agent: Callable[..., Agent], over_http: Way, first: tuple[str, str], second: tuple[str, str]
) -> None:
    runtime.maintenance.stop()  # it would count the owner's own accesses meanwhile
    agents = [new_agent(agent_id) for agent_id, _ in (first, second)]
    words = ["zebra", "heron"]
    for agent, (_, task_id), word in zip(agents, (first, second), words, strict=True):
        memory = over_http(agent)
        items = [
            StoreParams(
                content=f"{word} has note {number} of two.", task_id=task_id, idempotency_key=f"{task_id[:9]}-{number}"
            )
            for number in range(2)
        ]
        assert (await memory.store_batch(StoreBatchParams(items=items))).success
        await memory.store(StoreParams(content=f"{word} can be pruned.", memory_type=MemoryType.SEMANTIC))
        assert (await memory.prune(PruneParams(memory_layer=MemoryType.SEMANTIC, target=1))).pruned_count == 1
        context = await memory.get_context(GetContextParams(query="note", task_id=task_id))
        assert [other for other in words if other in context.context] == [word]
    before = await holdings(runtime, agents[0].agent_id)
    assert {"memories", "working memory", "archive"} & before.empty_places() == set()
    root = runtime.home.archive.resolve()
    assert (root / ARCHIVE.folder(agents[0].agent_id)).resolve().parent == root

    intruder = over_http(agents[1])
    for task_id in (first[1], second[1]):
        await intruder.get_context(GetContextParams(query="note", task_id=task_id))
        await intruder.complete_task(CompleteTaskParams(task_id=task_id))
    assert (await intruder.delete(DeleteParams(all=True, confirm=True))).deleted_count == 2
    before.assert_untouched(await holdings(runtime, agents[0].agent_id))
    again = await over_http(agents[0]).get_context(GetContextParams(query="note", task_id=first[1]))
    assert again.context.count("zebra") >= 2
