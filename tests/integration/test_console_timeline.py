"""The timeline of the console: certain and probable changes, chains, and its limits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID

import httpx
import pytest

from agentcore.auth import mint_token
from agentcore.console import timeline
from agentcore.console.sessions import ConsoleSessions
from agentcore.runtime import Runtime
from tests.fixtures.console_app import console_app
from tests.fixtures.memory import Agent

ORIGIN = "http://localhost"


@pytest.fixture
async def http(runtime: Runtime, agent: Agent) -> AsyncIterator[httpx.AsyncClient]:
    """A signed-in browser of the agent."""
    app = console_app(runtime, ConsoleSessions(runtime.database))
    secret = runtime.settings.jwt_secret_key
    assert secret is not None
    token = mint_token(secret.get_secret_value(), agent.agent_id, ["memory:read"], 600)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
        await client.post("/console/sign-in", data={"token": token}, headers={"Origin": ORIGIN})
        yield client


async def shown(http: httpx.AsyncClient, **params: str) -> str:
    response = await http.get("/console/timeline", params=params, headers={"HX-Request": "true"})
    assert response.status_code == 200
    return response.text


async def link(agent: Agent, new: UUID, old: UUID, weight: float) -> None:
    """Stores the link that the relation classifier would store."""
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "INSERT INTO memory_links (agent_id, source_id, target_id, relation, weight) "
            "VALUES (%s, %s, %s, 'probably_changes', %s)",
            (agent.agent_id, new, old, weight),
        )


async def test_a_probable_change_is_not_shown_as_a_supersession(agent: Agent, http: httpx.AsyncClient) -> None:
    old = await agent.stored_id("Ada said that the kiln is too small.", timestamp="2026-01-10", supersede=False)
    new = await agent.stored_id("Ada said that the kiln is just right.", timestamp="2026-03-10", supersede=False)
    await link(agent, new, old, 0.9)
    page = await shown(http, query="What did Ada say about the kiln now?")
    assert "probably changed by" in page
    assert "superseded by" not in page
    assert "current, but probably outdated" in page
    assert ('<line class="probable"' in page, '<line class="superseded"' in page) == (True, False)
    before = await shown(http, query="What did Ada say about the kiln now?", as_of="2026-02-01")
    assert "current, but probably outdated" not in before
    assert "not yet" in before


async def test_a_chain_is_followed_to_its_beginning(
    agent: Agent, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    cities = ("Porto", "Lisbon", "Oslo", "Turin")
    for month, city in enumerate(cities, 1):
        await agent.stored_id(f"I live in {city} now.", timestamp=f"2026-0{month}-01", speaker="Ada")
    page = await shown(http, query="Where does Ada live now?")
    places = [page.index(f"I live in {city} now.") for city in cities]
    assert places == sorted(places)
    assert page.count('<line class="superseded"') == 3
    assert page.count("not any more") == 3
    monkeypatch.setattr(timeline, "MAX_ROWS", 2)
    assert "1 or more connected memories are not shown." in await shown(http, query="Where does Ada live now?")


async def test_a_memory_alone_and_none_are_shown(agent: Agent, http: httpx.AsyncClient) -> None:
    assert "Nothing matches." in await shown(http, query="kiln")
    assert "<svg" not in await shown(http)
    await agent.stored_id("The kiln is hot.", timestamp=datetime.now(UTC))
    page = await shown(http, query="kiln")
    assert "Time axis of 1 memory;" in page
    for wrong in ("never", "9" * 20):
        response = await http.get("/console/timeline", params={"query": "kiln", "as_of": wrong})
        assert (response.status_code, "as_of is not a time" in response.text) == (422, True)
