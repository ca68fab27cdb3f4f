"""open_memory at a service or in-process: failing open, and beside a running service."""

from __future__ import annotations

import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from psycopg.conninfo import conninfo_to_dict

from agentcore.agents.failing_open import failing_open
from agentcore.agents.open_memory import open_memory
from agentcore.config import Settings
from agentcore.embedded import Home
from agentcore.embedded.home import ServerLock
from agentcore.errors import (
    AgentCoreError,
    ConfigurationError,
    DependencyUnavailable,
    InvalidParams,
    NotFound,
    StartupError,
)
from agentcore.memory.api import MemoryApi, was_not_asked
from agentcore.memory.params.memories import CountParams, GetContextParams, GetParams, RetrieveParams, StoreParams
from agentcore.memory.params.sessions import SummarizeParams
from agentcore.runtime import open_runtime
from tests.fixtures.databases import own_database
from tests.fixtures.embedded_parts import new_home
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.scripted_http import Reply, scripted_http
from tests.fixtures.services import Services

HAWAII = "The budget for the Hawaii trip is 10,000 dollars."
QUESTION = "What is the budget for the Hawaii trip?"


@pytest.fixture
def home() -> Iterator[Home]:
    with new_home() as made:
        yield made


def settings_of(home: Home) -> Settings:
    """Returns settings of a memory with its own parts, in this home."""
    return Settings(_env_file=None, agentcore_home=home.path, embedding_model="hashing", embedding_dimensions=64)


async def stored(memory: MemoryApi) -> bool:
    return (await memory.store(StoreParams(content=HAWAII))).success


async def found(memory: MemoryApi) -> list[str]:
    return [each.content for each in (await memory.retrieve(RetrieveParams(query=QUESTION))).memories]


# --- failing open ------------------------------------------------------------------------------------------


@pytest.mark.shows("NFR-4.3")
async def test_what_cannot_be_read_is_empty_and_says_why(
    unreached: MemoryApi, caplog: pytest.LogCaptureFixture
) -> None:
    results = (
        await unreached.retrieve(RetrieveParams(query=QUESTION)),
        await unreached.get_context(GetContextParams(query=QUESTION)),
        await unreached.summarize(SummarizeParams(session_id="s")),
    )
    assert all(was_not_asked(each.receipt) for each in results)
    assert await unreached.get_relevant_context(QUESTION) == ""
    assert await unreached.retrieve_memories(QUESTION) == ()
    told = [record for record in caplog.records if record.name.startswith("agentcore.")]
    assert [record.levelno for record in told] == [logging.WARNING] * 5
    assert all("No service answers" in record.getMessage() for record in told)


async def test_what_cannot_be_stored_or_counted_still_raises(unreached: MemoryApi) -> None:
    with pytest.raises(DependencyUnavailable):
        await stored(unreached)
    with pytest.raises(DependencyUnavailable):
        await unreached.count(CountParams())


async def test_a_memory_that_answers_is_the_same_behind_the_view(agent: Agent) -> None:
    view = failing_open(agent.memory)
    assert await stored(view)
    assert await found(view) == await found(agent.memory) == [HAWAII]
    assert HAWAII in await view.get_relevant_context(QUESTION)
    with pytest.raises(NotFound):
        await view.get(GetParams(memory_id=uuid4()))
    with pytest.raises(InvalidParams):
        await view.retrieve(RetrieveParams(query=QUESTION, query_vector=[1.0, 2.0]))


@pytest.mark.parametrize("of_a_service", [True, False])
async def test_a_memory_that_stays_silent_is_waited_for_no_longer_than_told(of_a_service: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unanswering:
        url = f"http://127.0.0.1:{unanswering.getsockname()[1]}"
        options: dict[str, Any] = {"timeout_seconds": 0.1, "fail_open": True} if of_a_service else {}
        async with open_memory(url=url, token="t.o.k", **options) as memory:
            silent = memory if of_a_service else failing_open(memory, timeout_seconds=0.1)
            asked = await silent.retrieve(RetrieveParams(query=QUESTION))
    assert "did not answer within 0.1 s" in asked.receipt.degraded[0]


@pytest.mark.shows("NFR-4.3")
async def test_a_memory_in_this_process_fails_open_where_its_database_goes_away(services: Services) -> None:
    with own_database(services) as own:
        settings = settings_for(services, database_url=own.url, database_timeout_seconds=1.0)
        async with open_runtime(settings, migrate=True):
            pass
        async with (
            open_memory(agent_id="ada", settings=settings, fail_open=True) as memory,
            open_memory(agent_id="ada", settings=settings) as strict,
        ):
            assert await stored(memory)
            name = conninfo_to_dict(own.url)["dbname"]
            own.as_administrator(f"ALTER DATABASE {name} CONNECTION LIMIT 0")
            own.as_administrator(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            assert await found(memory) == []
            with pytest.raises(DependencyUnavailable):
                await found(strict)


# --- beside a running service ------------------------------------------------------------------------------


@pytest.mark.shows("issue6-2-beside-a-service")
async def test_a_second_memory_of_a_home_uses_the_parts_that_run(home: Home) -> None:
    settings = settings_of(home)
    async with open_memory(agent_id="ada", settings=settings) as first:
        assert await stored(first)
        async with open_memory(agent_id="ada", settings=settings) as second:
            assert await found(second) == [HAWAII]
        async with open_memory(agent_id="bob", settings=settings) as stranger:
            assert await found(stranger) == []
        assert await found(first) == [HAWAII]
    async with open_memory(agent_id="ada", settings=settings) as later:
        assert await found(later) == [HAWAII]


async def test_beside_a_service_that_is_starting_the_error_says_to_try_again(home: Home) -> None:
    home.directory(home.run)
    lock = ServerLock(home)
    lock.acquire()
    try:
        with pytest.raises(StartupError, match="is starting or stopping: try again"):
            async with open_memory(agent_id="ada", settings=settings_of(home)):
                raise AssertionError("it opened")
    finally:
        lock.release()


async def test_opening_a_memory_needs_one_place() -> None:
    bare = Settings(_env_file=None, agentcore_token=None)
    for agent_id, token in ((None, None), ("a", "t.o.k")):
        with pytest.raises(ConfigurationError):
            async with open_memory(settings=bare, agent_id=agent_id, token=token):
                raise AssertionError("it opened")


@pytest.mark.shows("A5")
async def test_a_directorys_env_file_names_neither_the_service_nor_the_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTCORE_URL", raising=False)
    async with scripted_http(lambda request: Reply({"jsonrpc": "2.0", "id": 1, "result": {}})) as elsewhere:
        (tmp_path / ".env").write_text(f"AGENTCORE_URL={elsewhere.url}\nAGENTCORE_TOKEN=t.o.k\n")
        monkeypatch.delenv("AGENTCORE_TOKEN", raising=False)
        with pytest.raises(ConfigurationError, match="AGENTCORE_TOKEN"):
            async with open_memory():
                raise AssertionError("it opened")
        monkeypatch.setenv("AGENTCORE_TOKEN", "t.o.k")
        async with open_memory(max_attempts=1) as memory:
            with pytest.raises(AgentCoreError):
                await stored(memory)
        assert elsewhere.received == []
