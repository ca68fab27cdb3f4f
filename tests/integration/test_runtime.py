"""Startup: errors that prevent it, each with a fix, and its checks."""

from __future__ import annotations

import asyncio
import re

import pytest

from agentcore.database import pgvector_is_too_old
from agentcore.errors import ConfigurationError, StartupError
from agentcore.runtime import Runtime, open_runtime, running_database, start_task
from tests.fixtures.databases import migrated_database, own_database
from tests.fixtures.embedding_providers import openai_answer
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.scripted_http import Reply, scripted_http
from tests.fixtures.services import Services


async def test_vectors_of_another_length_than_configured_stop_the_start(services: Services, agent: Agent) -> None:
    await agent.stored_id("A memory with a vector of 64 dimensions.")
    with pytest.raises(ConfigurationError, match="64 dimensions each, and EMBEDDING_DIMENSIONS is 32"):
        async with open_runtime(settings_for(services, embedding_dimensions=32)):
            pass


async def test_a_database_that_was_not_migrated_stops_the_start(services: Services) -> None:
    settings = settings_for(services, database_url=services.superuser_url())
    with pytest.raises(StartupError, match="agentcore migrate"):
        async with open_runtime(settings):
            pass


async def test_an_external_database_needs_a_secret_of_its_own(services: Services) -> None:
    with pytest.raises(ConfigurationError, match="JWT_SECRET_KEY is not set"):
        async with open_runtime(settings_for(services, jwt_secret_key=None)):
            pass


@pytest.mark.parametrize("name", ["embedding_model", "vector_store"])
async def test_an_unknown_part_is_named_with_the_known_ones(services: Services, name: str) -> None:
    with pytest.raises(ConfigurationError, match="nobodys"):
        async with open_runtime(settings_for(services, **{name: "nobodys"})):
            pass


async def test_every_part_says_that_it_is_ready(services: Services) -> None:
    with migrated_database(services) as own:
        async with open_runtime(settings_for(services, database_url=own.url)) as running:
            parts = await running.readiness()
    assert set(parts) == {"postgresql", "redis", "archive", "embedder"}
    assert all(part["ok"] for part in parts.values())
    assert parts["postgresql"]["pgvector"].startswith("0.")


async def test_a_command_that_needs_postgresql_alone_needs_no_redis(services: Services) -> None:
    settings = settings_for(services, redis_url=None)
    async with running_database(settings) as database, database.owner_transaction() as connection:
        row = await (await connection.execute("SELECT 1 AS one")).fetchone()
    assert row == {"one": 1}


async def test_an_unexpected_failure_of_a_background_task_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def failing_duty() -> None:
        raise LookupError("no such duty")

    task = start_task(failing_duty())
    await asyncio.wait([task])
    [record] = caplog.records
    assert record.message == "a background task failed: restart the service"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], LookupError)


async def test_words_alone_need_no_embedder(services: Services) -> None:
    async with open_runtime(settings_for(services, embedding_model="none")) as running:
        words = Agent(running)
        await words.stored_id("The ferry to Skye leaves at 7:15.")
        assert await words.found("ferry Skye") == ["The ferry to Skye leaves at 7:15."]


async def test_a_pgvector_without_half_vectors_stops_the_start(services: Services) -> None:
    with migrated_database(services) as own:
        own.as_administrator("UPDATE pg_extension SET extversion = '0.6.2' WHERE extname = 'vector'")
        with pytest.raises(StartupError, match=r"pgvector 0\.8 or newer is needed, .* has 0\.6\.2"):
            async with open_runtime(settings_for(services, database_url=own.url)):
                pass


@pytest.mark.parametrize(
    ("version", "too_old"),
    [
        (None, True),
        ("0.5", True),
        ("0.6.2", True),
        ("0.7.4", True),
        ("0.8", False),
        ("0.8.5", False),
        ("0.10.0", False),
        ("1.0", False),
    ],
)
def test_a_version_of_pgvector_is_compared_by_its_numbers(version: str | None, too_old: bool) -> None:
    assert pgvector_is_too_old(version) is too_old


async def test_an_embedder_that_fails_is_told_until_it_answers_again(services: Services) -> None:
    with own_database(services) as own:
        async with scripted_http(openai_answer) as api:
            settings = settings_for(
                services,
                database_url=own.url,
                embedding_model="openai",
                openai_api_key="sk-test",
                openai_base_url=api.url,
            )
            async with open_runtime(settings, migrate=True) as running:
                agent = Agent(running)
                api.otherwise = lambda request: Reply(status=503)
                await agent.stored_id("The kettle is descaled in May.")
                told = (await running.readiness())["embedder"]
                assert (told["ok"], told["required"]) == (False, False)
                assert "503" in told["problem"]
                await running.maintenance.round()
                assert queues(running)["embeddings"] == 1
                api.otherwise = openai_answer
                await running.maintenance.round()
                assert (await running.readiness())["embedder"]["ok"]
                assert queues(running) == {"calls": 0, "accesses": 0, "embeddings": 0, "lexical_deltas": 0}


async def test_sizes_of_tables_are_metrics_of_the_leader(runtime: Runtime) -> None:
    await runtime.maintenance.read_sizes()
    shown = runtime.metrics.exposition()
    found = re.search(rb'^agentcore_table_bytes{table="memories"} (.+)$', shown, re.M)
    assert found is not None
    assert float(found[1]) > 32 * 8_192


def queues(runtime: Runtime) -> dict[str, float]:
    told = re.finditer(rb'^agentcore_queue_length{queue="(\w+)"} (.+)$', runtime.metrics.exposition(), re.M)
    return {line[1].decode(): float(line[2]) for line in told}
