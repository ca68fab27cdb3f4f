"""Starting: what stops it, with its mend, and what is checked."""

from __future__ import annotations

import pytest

from agentcore.errors import ConfigurationError, StartupError
from agentcore.runtime import open_runtime
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services


async def test_vectors_of_another_length_than_configured_stop_the_start(
    services: Services, agent: Agent
) -> None:
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


async def test_every_part_says_that_it_is_ready(agent: Agent) -> None:
    parts = await agent.runtime.readiness()
    assert set(parts) == {"postgresql", "redis", "archive", "embedder"}
    assert all(part["ok"] for part in parts.values())
    assert parts["postgresql"]["pgvector"].startswith("0.")


async def test_words_alone_need_no_embedder(services: Services) -> None:
    async with open_runtime(settings_for(services, embedding_model="none")) as running:
        words = Agent(running)
        await words.stored_id("The ferry to Skye leaves at 7:15.")
        assert await words.found("ferry Skye") == ["The ferry to Skye leaves at 7:15."]
