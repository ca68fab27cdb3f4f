"""PostgreSQL and Redis that hang, refuse or are full: calls end within their timeout, and service resumes."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager

import psutil
import pytest
from psycopg import OperationalError, sql
from redis.exceptions import NoScriptError

from agentcore.auth import mint_token
from agentcore.circuit_breaker import CircuitBreaker
from agentcore.client import MemoryClient
from agentcore.config import Settings
from agentcore.database import ConnectionGate, Database, Statement, TimeoutConnection
from agentcore.embedded import Home
from agentcore.errors import AgentCoreError, DependencyUnavailable, PoolExhausted, StatementTimeout, Unreachable
from agentcore.maintenance import job_queue
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.memories import GetContextParams, ListParams, RetrieveParams, StoreParams
from agentcore.memory.working import GuardedRedis
from agentcore.runtime import Runtime, open_runtime
from agentcore.server import create_app
from tests.fixtures.databases import OwnDatabase, migrated_database, own_database
from tests.fixtures.embedded_parts import PATIENCE_SECONDS, new_home, processes_of, until
from tests.fixtures.embedding_providers import openai_answer
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.scripted_http import Reply, scripted_http
from tests.fixtures.services import Services

REQUEST_SECONDS, DATABASE_SECONDS = 3.0, 1.0
# Longer than the other work of a test takes on busy cores.
REDIS_SECONDS = 3.0
# The delay after its timeout with which a call may end on busy cores.
SLACK_SECONDS = 3.0
CIRCUIT = "agentcore.circuit_breaker"
SLEEP: list[Statement] = [(sql.SQL("SELECT pg_sleep_for('20 s') AS slept"), {})]
NUMBER: list[Statement] = [(sql.SQL("SELECT 7 AS seven"), {})]


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with new_home() as made:
        yield made


@pytest.fixture
async def runtime(home: Home) -> AsyncIterator[Runtime]:
    """A service with its own PostgreSQL and Redis, which a test may freeze."""
    settings = Settings(
        _env_file=None,
        agentcore_home=home.path,
        embedding_model="hashing",
        embedding_dimensions=64,
        request_timeout_seconds=REQUEST_SECONDS,
        database_timeout_seconds=DATABASE_SECONDS,
        redis_timeout_seconds=REDIS_SECONDS,
        database_pool_size=4,
        maintenance_in_server=False,
    )
    async with open_runtime(settings) as running:
        yield running


@pytest.fixture
async def memory(runtime: Runtime, home: Home) -> AsyncIterator[MemoryClient]:
    """A client of the service's endpoint without retries."""
    token = mint_token(home.secret("jwt"), "ada", ["memory:read", "memory:write"], 3_600)
    async with MemoryClient.in_process(create_app(runtime), token, max_attempts=1) as client:
        yield client


@contextmanager
def frozen(home: Home, name: str) -> Iterator[None]:
    """Stops every process of that program with SIGSTOP until the block ends."""
    stopped = [each for each in processes_of(home) if each.name() == name]
    assert stopped
    for each in stopped:
        each.suspend()
    try:
        yield
    finally:
        for each in stopped:
            with psutil_errors():
                each.resume()


@contextmanager
def psutil_errors() -> Iterator[None]:
    try:
        yield
    except psutil.NoSuchProcess:
        return


Call = Callable[[MemoryApi, int], Awaitable[object]]
CALLS: dict[str, Call] = {
    "store": lambda memory, n: memory.store(StoreParams(content=f"Pot {n} is red.", task_id="t")),
    "retrieve": lambda memory, n: memory.retrieve(RetrieveParams(query=f"Which pot is number {n}?")),
    "get_context": lambda memory, n: memory.get_context(GetContextParams(query=f"Pot {n}?", task_id="t")),
    "list": lambda memory, n: memory.list(ListParams(limit=n + 1)),
}


async def ended(memory: MemoryApi, call: Call, number: int) -> tuple[float, AgentCoreError | None]:
    """Returns the duration of a call in seconds, and its error."""
    begun = time.monotonic()
    try:
        await call(memory, number)
    except AgentCoreError as failure:
        return time.monotonic() - begun, failure
    return time.monotonic() - begun, None


def lines(caplog: pytest.LogCaptureFixture, start: str, logger: str = CIRCUIT) -> list[str]:
    said = (record.getMessage() for record in caplog.records if record.name == logger)
    return [line for line in said if line.startswith(start)]


def figure(runtime: Runtime, name: str) -> float:
    [line] = [each for each in runtime.metrics.exposition().decode().splitlines() if each.startswith(name)]
    return float(line.rpartition(" ")[2])


# --- Redis -------------------------------------------------------------------------------------------------


@pytest.mark.shows("A10", "B12")
async def test_a_hung_redis_delays_one_call_and_is_seen_in_log_metrics_and_readiness(
    runtime: Runtime, home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    memory = Agent(runtime).memory
    for call in CALLS.values():
        await call(memory, 100)
    with frozen(home, "valkey-server"):
        await CALLS["get_context"](memory, 101)
        begun = time.monotonic()
        for number, call in enumerate(CALLS.values()):
            await call(memory, number)
        assert time.monotonic() - begun < REDIS_SECONDS
        assert lines(caplog, "redis: ") == lines(caplog, "redis: circuit open: Timeout")
        assert len(lines(caplog, "redis: circuit open")) == 1
        assert figure(runtime, 'agentcore_circuit_open{dependency="redis"}') == 1.0
        state = (await runtime.readiness())["redis"]
        assert (state["ok"], state["required"], state["circuit"]) == (False, False, "open")

    async def answers() -> bool:
        return bool((await runtime.readiness())["redis"]["ok"])

    await until(answers)
    assert len(lines(caplog, "redis: circuit closed")) == 1
    assert figure(runtime, 'agentcore_circuit_open{dependency="redis"}') == 0.0
    assert figure(runtime, 'agentcore_circuit_openings_total{dependency="redis"}') == 1.0


@pytest.mark.shows("A14-readyz-writes")
async def test_a_redis_that_answers_but_refuses_writes_is_not_ready(runtime: Runtime) -> None:
    assert runtime.redis is not None
    assert (await runtime.readiness())["redis"] == {"ok": True, "required": False}
    await runtime.redis.config_set("min-replicas-to-write", 1)
    try:
        assert await runtime.parts.working.answers()
        assert not (await runtime.readiness())["redis"]["ok"]
    finally:
        await runtime.redis.config_set("min-replicas-to-write", 0)
    assert [key async for key in runtime.redis.scan_iter(match="memory:ready*")] == []


@pytest.mark.shows("issue13-circuit-breaker")
async def test_a_script_that_a_restarted_redis_does_not_know_closes_the_circuit(runtime: Runtime) -> None:
    redis = runtime.redis
    assert isinstance(redis, GuardedRedis)
    redis.circuit.record_failure("connection refused")
    redis.circuit._next_probe_at = 0.0
    with pytest.raises(NoScriptError):
        await redis.evalsha("0" * 40, 0)
    assert not redis.circuit.is_open


# --- PostgreSQL that hangs ---------------------------------------------------------------------------------


@pytest.mark.shows("A11")
async def test_every_call_ends_within_its_limit_while_postgresql_hangs_and_all_goes_on_after(
    runtime: Runtime, memory: MemoryClient, home: Home, caplog: pytest.LogCaptureFixture
) -> None:
    for call in CALLS.values():
        await call(memory, 200)
    with frozen(home, "postgres"):
        crowd = [ended(memory, call, number) for number in range(3) for call in CALLS.values()]
        for seconds, failure in await asyncio.gather(*crowd):
            assert seconds < REQUEST_SECONDS + SLACK_SECONDS
            assert isinstance(failure, DependencyUnavailable)
            assert failure.retryable
        for call in CALLS.values():
            seconds, failure = await ended(memory, call, 9)
            assert seconds < REQUEST_SECONDS + SLACK_SECONDS
            assert isinstance(failure, Unreachable)
        assert figure(runtime, 'agentcore_circuit_open{dependency="postgresql"}') == 1.0
        state = (await runtime.readiness())["postgresql"]
        assert (state["ok"], state["circuit"]) == (False, "open")
        assert len(lines(caplog, "postgresql: circuit open")) == 1

    async def served() -> bool:
        return all([(await ended(memory, call, 300))[1] is None for call in CALLS.values()])

    await until(served)
    assert len(lines(caplog, "postgresql: circuit closed")) == 1
    await until(lambda: connections_are_counted(runtime))


async def connections_are_counted(runtime: Runtime) -> bool:
    """Checks that the server has exactly the connections that the pools count."""
    async with runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT count(*) AS open FROM pg_stat_activity WHERE datname = current_database() AND usename IS NOT NULL"
        )  # only names are visible of other roles' connections
        row = await cursor.fetchone()
    pools = runtime.database.statistics().values()
    assert all(pool["pool_size"] <= pool["pool_max"] for pool in pools)
    assert row is not None
    return int(row["open"]) == sum(pool["pool_size"] for pool in pools)


@pytest.mark.shows("A11")
async def test_a_call_that_is_cancelled_while_postgresql_hangs_ends_soon(runtime: Runtime, home: Home) -> None:
    agent = Agent(runtime)
    await agent.stored_id("The kettle is blue.")
    with frozen(home, "postgres"):
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await agent.found("kettle")
        # The driver would wait 5 s for the cancel request and 5 s for the statement.
        assert time.monotonic() - begun < 4.0


@pytest.mark.shows("A11")
async def test_a_service_stops_while_postgresql_hangs(home: Home) -> None:
    async with AsyncExitStack() as stack:
        settings = Settings(
            _env_file=None, agentcore_home=home.path, embedding_model="hashing", embedding_dimensions=64
        )
        outer = await stack.enter_async_context(open_runtime(settings))
        database = Database(outer.database.url, timeout_seconds=DATABASE_SECONDS)
        await database.open()
        with frozen(home, "postgres"):
            begun = time.monotonic()
            with pytest.raises(Unreachable):
                await database.fetch("anyone", NUMBER)
            await database.close()
            assert time.monotonic() - begun < PATIENCE_SECONDS / 2


# --- PostgreSQL that is busy, refuses or is full -----------------------------------------------------------


@pytest.mark.shows("issue13-error-causes")
async def test_a_pool_that_is_in_use_is_not_an_unreachable_server(services: Services) -> None:
    database = Database(services.database_url, pool_size=1, timeout_seconds=0.3)
    await database.open()
    try:
        async with database.transaction("anyone"):
            with pytest.raises(PoolExhausted) as caught:
                await database.fetch("anyone", NUMBER)
        assert caught.value.data == {"cause": "pool_exhausted"}
        assert not database.circuits[0].is_open
        assert (await database.fetch("anyone", NUMBER))[0][0]["seven"] == 7
    finally:
        await database.close()


@pytest.mark.shows("issue13-error-causes")
async def test_a_slow_statement_ends_at_its_limit_and_opens_no_circuit(services: Services) -> None:
    database = Database(services.database_url, pool_size=1, timeout_seconds=0.5)
    await database.open()
    try:
        with pytest.raises(StatementTimeout):
            await database.fetch("anyone", SLEEP)
        assert database.circuits[0].openings == 0
        assert (await database.fetch("anyone", NUMBER))[0][0]["seven"] == 7
    finally:
        await database.close()


@pytest.mark.shows("issue13-error-causes")
async def test_the_limit_of_a_reply_grows_with_the_statements_of_a_pipeline(services: Services) -> None:
    """statement_timeout is 1.5 s for each statement."""
    database = Database(services.database_url, pool_size=1, timeout_seconds=1.5)
    await database.open()
    try:
        naps: list[Statement] = [(sql.SQL("SELECT 7 AS seven FROM pg_sleep_for('900 ms')"), {})] * 4
        assert [rows[0]["seven"] for rows in await database.fetch("anyone", naps)] == [7] * 4
        assert database.circuits[0].openings == 0
    finally:
        await database.close()


@pytest.mark.shows("issue13-error-causes")
async def test_a_late_reply_of_a_server_that_accepts_a_cancel_request_opens_no_circuit(services: Services) -> None:
    circuit = CircuitBreaker("postgresql", "none")
    gate = ConnectionGate(circuit, lambda: None, reply_seconds=0.2)
    async with await TimeoutConnection.connect(services.database_url, gate=gate) as connection:
        with pytest.raises(OperationalError):
            await connection.execute("SELECT pg_sleep_for('20 s')")
        assert connection.closed
    assert circuit.openings == 0


@pytest.mark.shows("A14-readyz-writes")
async def test_a_full_disk_of_postgresql_makes_the_service_not_ready(services: Services) -> None:
    """Uses a limit of temporary files in place of a full disk: the check writes a file."""
    with migrated_database(services) as own:
        async with open_runtime(settings_for(services, database_url=own.url)) as running:
            assert (await running.readiness())["postgresql"]["ok"]
        own.as_administrator(f"ALTER DATABASE {own.name} SET temp_file_limit = 0")
        database = Database(own.url, pool_size=1)
        await database.open()
        with pytest.raises(DependencyUnavailable, match="temp_file_limit") as caught:
            await database.ping()
        await database.close()
        assert (caught.value.data["cause"], caught.value.retryable) == ("server_limit", False)


@pytest.mark.shows("A14-readyz-writes")
async def test_a_primary_that_accepts_no_changes_is_not_ready(services: Services) -> None:
    with migrated_database(services) as own:
        own.as_administrator(f"ALTER DATABASE {own.name} SET default_transaction_read_only = on")
        database = Database(own.url, pool_size=1)
        await database.open()
        with pytest.raises(DependencyUnavailable, match="standby"):
            await database.ping()
        await database.close()


@pytest.mark.shows("issue13-circuit-breaker")
async def test_reads_go_to_the_primary_while_the_replica_is_away(
    services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    with own_database(services) as replica:
        async with open_runtime(settings_for(services, database_read_url=replica.url)) as running:
            agent = Agent(running)
            assert (await running.readiness())["postgresql_read"]["ok"]
            closed_to_all(replica)
            await agent.stored_id("The ferry to Skye leaves at 7:15.")
            assert await agent.found("ferry to Skye") == ["The ferry to Skye leaves at 7:15."]
            assert await agent.found("ferry to Skye") == ["The ferry to Skye leaves at 7:15."]
            parts = await running.readiness()
            assert parts["postgresql"]["ok"]
            assert parts["postgresql_read"] == {
                "ok": False,
                "required": False,
                "problem": "PostgreSQL does not answer.",
                "circuit": "open",
            }
            [line] = lines(caplog, "postgresql_read: circuit open")
            assert line.endswith("fallback: reads go to the primary")
            assert figure(running, 'agentcore_circuit_open{dependency="postgresql"}') == 0.0


def closed_to_all(own: OwnDatabase) -> None:
    """Closes all connections and allows only superusers to connect."""
    own.as_administrator(f"ALTER DATABASE {own.name} CONNECTION LIMIT 0")
    own.as_administrator(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


# --- the embedding provider ---------------------------------------------------------------------------------


@pytest.mark.shows("issue13-circuit-breaker")
async def test_an_embedding_provider_that_cannot_be_reached_is_left_alone(
    services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    with migrated_database(services) as own:
        async with scripted_http(openai_answer) as api:
            settings = settings_for(
                services,
                database_url=own.url,
                embedding_model="openai",
                openai_api_key="sk-test",
                openai_base_url=api.url,
                embedding_timeout_seconds=0.1,
            )
            async with open_runtime(settings) as running:
                agent = Agent(running)
                api.otherwise = lambda request: Reply(hangs=True)
                await agent.stored_id("The kettle is descaled in May.")
                asked = len(api.received)
                assert await agent.found("kettle") == ["The kettle is descaled in May."]
                assert len(api.received) == asked
                state = (await running.readiness())["embedder"]
                assert (state["ok"], state["required"], state["circuit"]) == (False, False, "open")
                assert len(lines(caplog, "embedder: circuit open")) == 1
                assert running.base_embedder is not None
                running.base_embedder.circuit._next_probe_at = 0.0
                api.otherwise = lambda request: Reply(status=401)
                await agent.found("a cup")
                assert not running.base_embedder.circuit.is_open  # an error status is a response


# --- background work ---------------------------------------------------------------------------------------


@pytest.mark.shows("issue13-background-outage")
async def test_background_work_logs_an_outage_once_and_goes_on_after(
    services: Services, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_queue, "RESTART_SECONDS", 0.05)
    caplog.set_level(logging.INFO, logger="agentcore")
    with migrated_database(services) as own:
        settings = settings_for(services, database_url=own.url, database_timeout_seconds=0.2)
        async with open_runtime(settings) as running:
            working = asyncio.create_task(running.jobs.run())
            await running.maintenance.round()
            closed_to_all(own)
            for _ in range(4):
                assert await running.maintenance.round() == {}

            async def failed_often() -> bool:
                return running.database.statistics()["owner"].get("requests_errors", 0) >= 8

            await until(failed_often)
            said = lines(caplog, "maintenance: ", "agentcore.maintenance.rounds")
            assert "maintenance: fold waits: PostgreSQL does not answer." in said
            assert len(said) == len(set(said))
            assert len(lines(caplog, "jobs wait", "agentcore.maintenance.job_queue")) == 1
            own.as_administrator(f"ALTER DATABASE {own.name} CONNECTION LIMIT -1")

            async def folds() -> bool:
                return "fold" in await running.maintenance.round()

            await until(folds)
            assert lines(caplog, "maintenance: fold goes on", "agentcore.maintenance.rounds") != []
            running.jobs.stop()
            await working
