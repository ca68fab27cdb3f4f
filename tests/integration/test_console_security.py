"""The console's checks of host, origin, session and form, over the running application."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from starlette.requests import Request

from agentcore.auth import mint_token
from agentcore.console.app import COOKIE, HEADERS, client_network, console_is_on
from agentcore.console.sessions import ConsoleSessions, csrf_token
from agentcore.memory.api import METHODS, SCOPES
from agentcore.memory.forgetting import erasing, removing
from agentcore.memory.models import MemoryType
from agentcore.runtime import Runtime
from tests.fixtures.console_app import console_app
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services

Mint = Callable[..., str]
ORIGIN = "http://localhost"


@pytest.fixture
def mint(runtime: Runtime) -> Mint:
    secret = runtime.settings.jwt_secret_key
    assert secret is not None
    signing = secret.get_secret_value()
    return lambda agent_id, scopes=SCOPES, seconds=600: mint_token(signing, agent_id, scopes, seconds)


@pytest.fixture
def sessions(runtime: Runtime) -> ConsoleSessions:
    return ConsoleSessions(runtime.database)


@pytest.fixture
async def http(runtime: Runtime, sessions: ConsoleSessions) -> AsyncIterator[httpx.AsyncClient]:
    app = console_app(runtime, sessions)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
        yield client


async def signed_in(http: httpx.AsyncClient, token: str) -> dict[str, str]:
    """Signs in; returns the field that forms of the session carry."""
    response = await http.post("/console/sign-in", data={"token": token}, headers={"Origin": ORIGIN})
    assert response.status_code == 303
    return {"csrf": csrf_token(http.cookies[COOKIE])}


async def test_only_its_own_host_names_are_served(http: httpx.AsyncClient, runtime: Runtime) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "[::1", ""):
        response = await http.get("/console/sign-in", headers={"Host": host})
        assert (host, response.status_code) == (host, 403)
    for host in ("localhost", "127.0.0.1:8080", "[::1]:8080"):
        response = await http.get("/console/sign-in", headers={"Host": host})
        assert (host, response.status_code) == (host, 200)


async def test_a_setting_names_more_hosts(services: Services, runtime: Runtime, sessions: ConsoleSessions) -> None:
    settings = settings_for(services, console_hosts="memory.example, Other.example")
    app = console_app(runtime, sessions, settings)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://other.example") as http:
        assert (await http.get("/console/sign-in")).status_code == 200
        assert (await http.get("/console/sign-in", headers={"Host": "third.example"})).status_code == 403


async def test_a_session_outside_loopback_needs_https(
    services: Services, runtime: Runtime, sessions: ConsoleSessions, agent: Agent, mint: Mint
) -> None:
    settings = settings_for(services, console_hosts="memory.example")
    app = console_app(runtime, sessions, settings)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="https://memory.example") as http:
        response = await http.post("/console/sign-in", data={"token": mint(agent.agent_id)})
        assert "Secure" in response.headers["set-cookie"]


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_other_origins_change_nothing(
    http: httpx.AsyncClient, agent: Agent, mint: Mint, headers: dict[str, str]
) -> None:
    form = await signed_in(http, mint(agent.agent_id))
    memory_id = await agent.stored_id("Ada likes tea")
    form["memory_id"] = str(memory_id)
    response = await http.post("/console/memories/delete", data=form, headers=headers)
    assert response.status_code == 403
    assert (await http.post("/console/sign-in", data={"token": mint("mallory")}, headers=headers)).status_code == 403
    assert (await agent.get(memory_id)).content == "Ada likes tea"


async def test_a_form_needs_its_sessions_token(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    await signed_in(http, mint(agent.agent_id))
    memory_id = await agent.stored_id("Ada likes tea")
    for csrf in ({}, {"csrf": ""}, {"csrf": "0" * 64}, {"csrf": csrf_token("another session")}):
        form = {**csrf, "memory_id": str(memory_id)}
        assert (await http.post("/console/memories/delete", data=form)).status_code == 403
    assert (await agent.get(memory_id)).content == "Ada likes tea"


async def test_scopes_apply(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    form = await signed_in(http, mint(agent.agent_id, ["memory:read"]))
    memory_id = await agent.stored_id("Ada likes tea")
    response = await http.post("/console/memories/delete", data={**form, "memory_id": str(memory_id)})
    assert response.status_code == 403
    assert "lacks the scope" in response.text
    assert (await agent.get(memory_id)).content == "Ada likes tea"


async def test_another_agents_memory_does_not_exist(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    memory_id = await agent.stored_id("Ada likes tea")
    form = await signed_in(http, mint("somebody else"))
    assert (await http.get(f"/console/memories/{memory_id}")).status_code == 404
    response = await http.post(f"/console/memories/{memory_id}/pin", data={**form, "pinned": "true"})
    assert response.status_code == 404
    assert (await http.get("/console/memories/not-an-id")).status_code == 404


async def test_a_link_is_redeemed_by_one_of_several(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    token = mint(agent.agent_id)
    assert (await http.post("/console/links")).status_code == 401
    answer = (await http.post("/console/links", headers={"Authorization": f"Bearer {token}"})).json()
    for method in ("GET", "HEAD"):
        assert (await http.request(method, answer["path"])).status_code == 200
    assert COOKIE not in http.cookies
    form = {"link": answer["path"].partition("link=")[2]}
    used = await asyncio.gather(*(http.post("/console/sign-in", data=form) for _ in range(8)))
    assert sorted(each.status_code for each in used) == [303, *[401] * 7]
    assert (await http.post("/console/sign-in", data={"link": "invented"})).status_code == 401


async def test_a_malformed_origin_is_refused(http: httpx.AsyncClient) -> None:
    for origin in ("http://[", "", "http://localhost@evil.example", "http://localhost/"):
        response = await http.post("/console/sign-in", data={"token": "a"}, headers={"Origin": origin})
        assert (origin, response.status_code) == (origin, 403)


HOSTILE_VALUES = (
    "nan",
    "inf",
    "-1",
    "1e999",
    "9" * 5_000,
    "\x00",
    "\u202e",
    "%ff",
    "'",
    "[]",
    "x" * 40_000,
    "\ud800",
    "9999-12-31T23:59-14:00",
)
FIELDS = (
    "memories?after", "memories?cursor", "memories?order_by", "memories?direction", "memories?min_importance",
    "memories?query", "memories?tags", "memories?user_id", "memories?memory_types", "search?query=tea&a_k",
    "search?query=tea&a_min_fit", "search?query=tea&a_as_of", "search?query=tea&trace", "search?query",
    "context?query=tea&max_tokens", "context?query=tea&as_of", "context?query", "archive?cursor", "sign-in?link",
    "memories/facets?user_id", "memories/facets?after", "users/export?user_id", "users/erase?user_id",
    "settings?done", "api/memory.list?params", "timeline?query=tea&as_of", "timeline?query", "map?after", "jobs?state",
    "archive?restored", "search?query=tea&a_weight_words",
)  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
async def test_no_value_of_a_field_breaks_a_page(http: httpx.AsyncClient, agent: Agent, mint: Mint, field: str) -> None:
    await signed_in(http, mint(agent.agent_id))
    for value in HOSTILE_VALUES:
        sent = quote(value, safe="%", errors="surrogatepass")
        response = await http.get(f"/console/{field}={sent}")
        assert (field, value[:20], response.status_code) != (field, value[:20], 500), response.text[:500]


async def test_a_link_is_no_session_and_a_session_no_link(
    http: httpx.AsyncClient, sessions: ConsoleSessions, agent: Agent, mint: Mint
) -> None:
    link = await sessions.create(mint(agent.agent_id), 60, is_link=True)
    session = await sessions.create(mint(agent.agent_id), 60)
    assert await sessions.token(link) is None
    assert await sessions.redeem(session) is None
    assert await sessions.token(session) is not None
    http.cookies.set(COOKIE, link)
    assert (await http.get("/console/memories")).headers["location"] == "/console/sign-in"


async def test_the_database_reveals_no_token(
    runtime: Runtime, sessions: ConsoleSessions, agent: Agent, mint: Mint
) -> None:
    token = mint(agent.agent_id)
    session_id = await sessions.create(token, 60)
    async with runtime.database.owner_transaction() as connection:
        rows: list[dict[str, Any]] = await (
            await connection.execute("SELECT digest, sealed FROM console_sessions")
        ).fetchall()
    stored = b"".join(each["digest"] + each["sealed"] for each in rows)
    assert token.encode() not in stored
    assert session_id.encode() not in stored


async def test_expired_sessions_end_and_are_removed(
    http: httpx.AsyncClient, runtime: Runtime, sessions: ConsoleSessions, agent: Agent, mint: Mint
) -> None:
    await signed_in(http, mint(agent.agent_id))
    assert (await http.get("/console/memories")).status_code == 200
    async with runtime.database.owner_transaction() as connection:
        await connection.execute("UPDATE console_sessions SET expires_at = now()")
    assert (await http.get("/console/memories")).headers["location"] == "/console/sign-in"
    await sessions.create(mint(agent.agent_id), 60)
    async with runtime.database.owner_transaction() as connection:
        left = await (await connection.execute("SELECT count(*) AS count FROM console_sessions")).fetchone()
    assert left == {"count": 1}


async def test_every_answer_carries_the_policy(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    await signed_in(http, mint(agent.agent_id))
    paths = ("/sign-in", "/", "/memories", "/static/console.css", "/nothing", "/memories/not-an-id")
    for path in paths:
        response = await http.get(f"/console{path}")
        assert {name: response.headers.get(name) for name in HEADERS} == HEADERS, path
    assert (await http.get("/console/")).headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in (await http.get("/console/")).headers


async def test_a_form_has_limits(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    form = await signed_in(http, mint(agent.agent_id))
    assert (await http.post("/console/memories/delete", data={**form, "x": "y" * 2_000_001})).status_code == 413
    assert (await http.post("/console/memories/delete", content=b"&".join([b"a=b"] * 3_000))).status_code == 422
    assert (await http.post("/console/memories/delete", content=b"a=%ff")).status_code == 422


async def test_problems_name_the_field(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    await signed_in(http, mint(agent.agent_id))
    for query, said in (
        ("memories?after=yesterday", "after is not a time"),
        ("memories?min_importance=much", "min_importance is not a number"),
        ("memories?memory_types=eternal", "memory_types"),
        ("search?query=tea&a_k=-1", "k "),
    ):
        response = await http.get(f"/console/{query}")
        assert response.status_code == 422
        assert said in response.text


@pytest.mark.parametrize(
    ("setting", "address", "expected"),
    [
        (None, "127.0.0.1", True),
        (None, "::1", True),
        (None, "0.0.0.0", False),  # noqa: S104
        (None, "10.0.0.5", False),
        (True, "0.0.0.0", True),  # noqa: S104
        (False, "127.0.0.1", False),
    ],
)
def test_it_is_on_for_loopback_only_by_default(
    services: Services, setting: bool | None, address: str, expected: bool
) -> None:
    assert console_is_on(settings_for(services, console=setting), address) is expected


# --- the API, settings and erasing -------------------------------------------------------------------------

CHANGING = (
    ("api/memory.store", {"params": '{"content": "Ada likes tea"}', "confirmed": "yes"}),
    ("settings", {"part": "rules", "consolidate": "on"}),
    ("users/erase", {"user_id": "ada", "typed": "ada"}),
    ("memories/export", {"memory_id": "0193a1c2-7f4e-7c3d-9b5a-2e8f6d4c1b0a"}),
    ("map/chosen", {"memory_ids": "0193a1c2-7f4e-7c3d-9b5a-2e8f6d4c1b0a"}),
    ("jobs", {"job_id": "1", "action": "cancel"}),
)


@pytest.mark.parametrize(("path", "given"), CHANGING)
async def test_new_forms_need_their_sessions_token(
    http: httpx.AsyncClient, agent: Agent, mint: Mint, path: str, given: dict[str, str]
) -> None:
    await agent.store("Ada drinks tea", user_id="ada")
    await signed_in(http, mint(agent.agent_id))
    for csrf in ({}, {"csrf": "0" * 64}):
        assert (await http.post(f"/console/{path}", data={**given, **csrf})).status_code == 403
    assert (await agent.memory.count()).count == 1
    assert not (await agent.memory.settings()).consolidate


async def test_a_call_has_the_scopes_of_its_session(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    form = await signed_in(http, mint(agent.agent_id, ["memory:read"]))
    data = {**form, "params": '{"content": "Ada likes tea"}', "confirmed": "yes"}
    response = await http.post("/console/api/memory.store", data=data)
    assert response.status_code == 200
    assert "Error -32104" in response.text
    assert (await agent.memory.count()).count == 0
    form |= {"part": "rules", "consolidate": "on"}
    assert (await http.post("/console/settings", data=form)).status_code == 403
    assert not (await agent.memory.settings()).consolidate


async def test_a_call_that_changes_something_is_confirmed(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    form = await signed_in(http, mint(agent.agent_id))
    data = {**form, "params": '{"content": "Ada likes tea"}'}
    response = await http.post("/console/api/memory.store", data=data)
    assert "confirm the call" in response.text
    assert (await agent.memory.count()).count == 0
    response = await http.post("/console/api/memory.store", data={**data, "confirmed": "yes"})
    assert "&#34;status&#34;: &#34;stored&#34;" in response.text
    assert (await agent.memory.count()).count == 1


async def test_a_call_stays_in_its_agent(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    memory_id = await agent.stored_id("Ada likes tea")
    form = await signed_in(http, mint("somebody else"))
    data = {**form, "params": json.dumps({"memory_id": str(memory_id)})}
    response = await http.post("/console/api/memory.get", data=data)
    assert "Error -32001" in response.text
    assert "Ada likes tea" not in response.text
    assert (await http.get("/console/api/memory.nothing")).status_code == 404


HOSTILE_PARAMS = (
    "", "[]", "null", "{", "[" * 100_000, '{"self": 1, "given": 2}', '{"query": NaN}', '{"query": "\\ud800"}',
    '{"k": 1e999, "query": "tea"}', "9" * 5_000, '{"query": "<script>alert(1)</script>", "x": 1}',
    '{"items": [{}, 1, null, {"content": "tea"}]}', '{"messages": [{}], "session_id": "s"}', '{"params": {}}',
)  # fmt: skip


@pytest.mark.parametrize("method", ["retrieve", "store", "store_batch", "add_session", "update", "erase", "configure"])
async def test_no_params_break_the_page(http: httpx.AsyncClient, agent: Agent, mint: Mint, method: str) -> None:
    form = await signed_in(http, mint(agent.agent_id))
    for params in HOSTILE_PARAMS:
        data = {**form, "params": params, "confirmed": "yes"}
        for headers in ({}, {"HX-Request": "true"}):
            response = await http.post(f"/console/api/memory.{method}", data=data, headers=headers)
            assert (params[:60], response.status_code) == (params[:60], 200)
            assert "<script>alert" not in response.text


async def test_every_method_is_described(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    await signed_in(http, mint(agent.agent_id))
    listed = (await http.get("/console/api")).text
    for method in METHODS:
        assert f"/console/api/{method.name}" in listed
        page = (await http.get(f"/console/api/{method.name}")).text
        assert all(
            f"<code>{name}</code>" in page for name in (*method.params.model_fields, *method.result.model_fields)
        )


async def test_settings_state_their_source(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    form = await signed_in(http, mint(agent.agent_id))
    assert "this agent</span>" not in (await http.get("/console/settings")).text
    changes = {"part": "layers", "episodic.capacity": "500"}
    assert (await http.post("/console/settings", data={**form, **changes})).status_code == 303
    assert (
        await http.post("/console/settings", data={**form, "part": "rules", "consolidate": "on"})
    ).status_code == 303
    summaries = {"part": "summaries", "provider": "extractive", "trigger": "message_count", "message_count": "30"}
    assert (await http.post("/console/settings", data={**form, **summaries})).status_code == 303
    found = await agent.memory.settings()
    assert (found.layers[MemoryType.EPISODIC].capacity, found.own_settings) == (500, ["consolidate", "summaries"])
    assert (await http.get("/console/settings")).text.count("this agent</span>") == 3
    await http.post("/console/settings", data={**form, "part": "layers"})
    await http.post("/console/settings", data={**form, "part": "summaries", "provider": "default"})
    found = await agent.memory.settings()
    assert (found.own, found.own_settings) == ({}, ["consolidate"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"part": "layers", "episodic.capacity": "-1"}, "layers.episodic.capacity"),
        ({"part": "layers", "episodic.capacity": "many"}, "episodic.capacity is not a number"),
        ({"part": "layers"}, "Nothing was changed"),
        ({"part": "rules", "archive_sources_after_days": "1.5"}, "archive_sources_after_days"),
        ({"part": "summaries", "provider": "invented"}, "summaries.provider"),
        ({"part": "summaries", "provider": "llm", "user_turns": "9" * 5_000}, "user_turns"),
        ({"part": "invented"}, "unknown"),
    ],
)
async def test_a_wrong_setting_is_explained(
    http: httpx.AsyncClient, agent: Agent, mint: Mint, changes: dict[str, str], said: str
) -> None:
    form = await signed_in(http, mint(agent.agent_id))
    response = await http.post("/console/settings", data={**form, **changes})
    assert response.status_code == 422
    assert said in response.text
    assert (await agent.memory.settings()).own == {}


async def test_erasing_needs_the_scope_and_the_typed_id(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    await agent.memory.store("Ada likes tea", user_id="ada")
    await agent.memory.store("Ben likes tea", user_id="ben")
    form = {**await signed_in(http, mint(agent.agent_id, ["memory:read", "memory:write"])), "user_id": "ada"}
    assert (await http.get("/console/users/erase?user_id=ada")).status_code == 403
    assert (await http.post("/console/users/erase", data={**form, "typed": "ada"})).status_code == 403
    form = {**await signed_in(http, mint(agent.agent_id)), "user_id": "ada"}
    assert "1 memory" in (await http.get("/console/users/erase?user_id=ada")).text
    for typed in ("", "ben", "ADA"):
        assert (await http.post("/console/users/erase", data={**form, "typed": typed})).status_code == 422
    assert (await http.post("/console/users/erase", data={**form, "user_id": "", "typed": ""})).status_code == 422
    assert (await agent.memory.count()).count == 2
    response = await http.post("/console/users/erase", data={**form, "typed": "ada"})
    assert response.status_code == 200
    assert "receipt.jws" in response.text
    assert [each.user_id for each in (await agent.memory.list()).memories] == ["ben"]


async def test_an_erasure_that_takes_long_goes_on(
    http: httpx.AsyncClient, agent: Agent, mint: Mint, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(6):
        await agent.memory.store(f"Ada has seen city {number}", user_id="ada", force=True)
    monkeypatch.setattr(erasing, "ERASE_CHUNK", 1)
    monkeypatch.setattr(removing, "WRITE_DEADLINE_SECONDS", 0.0)
    form = {**await signed_in(http, mint(agent.agent_id)), "user_id": "ada", "typed": "ada"}
    page = (await http.post("/console/users/erase", data=form)).text
    assert "Not everything is erased yet" in page
    assert (await agent.memory.count()).count == 2
    receipt = re.search('name="continues" value="([^"]+)"', page)
    assert receipt is not None
    page = (await http.post("/console/users/erase", data={**form, "continues": receipt[1]})).text
    assert "is left in the database and the archive" in page
    assert '<th scope="row">memories</th><td>6</td>' in page
    assert (await agent.memory.count()).count == 0


async def test_an_export_is_one_users_and_has_a_safe_name(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    user_id = 'a"; filename="evil.exe'
    for number in range(260):
        await agent.memory.store(f"Ada has seen city {number}", user_id=user_id, force=True)
    await agent.memory.store("Ben likes tea", user_id="ben")
    await signed_in(http, mint(agent.agent_id))
    response = await http.get(f"/console/users/export?user_id={quote(user_id)}")
    assert response.headers["content-disposition"] == 'attachment; filename="memories-a_filename_evil_exe.jsonl"'
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert {line["text"] for line in lines} == {f"Ada has seen city {number}" for number in range(260)}
    assert (await http.get("/console/users/export")).status_code == 422
    await signed_in(http, mint("somebody else"))
    assert (await http.get(f"/console/users/export?user_id={quote(user_id)}")).text == ""


async def test_failed_sign_ins_are_limited(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    await signed_in(http, mint(agent.agent_id))
    failed = await asyncio.gather(*(http.post("/console/sign-in", data={"token": "no.good"}) for _ in range(12)))
    assert sorted(each.status_code for each in failed) == [*[401] * 10, 429, 429]
    response = await http.post("/console/sign-in", data={"token": mint(agent.agent_id)})
    assert response.status_code == 429
    assert 1 <= int(response.headers["retry-after"]) <= 6
    assert "Too many failed sign-ins" in response.text
    assert (await http.get("/console/memories")).status_code == 200


async def test_sign_ins_that_succeed_are_not_limited(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    for _ in range(15):
        await signed_in(http, mint(agent.agent_id))
    assert (await http.get("/console/memories")).status_code == 200


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.2", False),
        ("::ffff:192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "192.0.2.2", False),
    ],
)
def test_an_ipv6_network_is_one_client(one: str, other: str, same: bool) -> None:
    networks = [client_network(Request({"type": "http", "client": (each, 1)})) for each in (one, other)]
    assert (networks[0] == networks[1]) is same


async def test_a_token_bound_to_users_sees_their_memories_and_is_told_what_it_may_not_see(
    http: httpx.AsyncClient, agent: Agent, runtime: Runtime
) -> None:
    await agent.store("Ada drinks tea", user_id="ada")
    await agent.store("Ben drinks cocoa", user_id="ben")
    secret = runtime.settings.jwt_secret_key
    assert secret is not None
    token = mint_token(secret.get_secret_value(), agent.agent_id, SCOPES, 600, users=["ada"])
    await signed_in(http, token)
    fragment = {"HX-Request": "true"}
    for path in ("", "memories", "search?query=drinks", "context?query=drinks", "timeline?query=drinks", "users"):
        response = await http.get(f"/console/{path}")
        assert (path, response.status_code, "cocoa" in response.text) == (path, 200, False)
    for path in ("map", "memories/facets", "days.json", "memories?query=drinks"):
        response = await http.get(f"/console/{path}", headers=fragment)
        assert (path, response.status_code, "ben" in response.text) == (path, 200, False)
    for path in ("settings", "jobs"):
        response = await http.get(f"/console/{path}")
        assert (path, response.status_code) == (path, 403)
        assert "bound to users" in response.text


async def test_a_job_is_shown_cancelled_and_no_other_agents(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        await transaction.jobs.enqueue("prune_layer", layer="episodic", not_before=datetime(2100, 1, 1, tzinfo=UTC))
    [job] = (await agent.memory.jobs()).jobs
    form = await signed_in(http, mint(agent.agent_id)) | {"job_id": str(job.job_id), "action": "cancel"}
    page = (await http.get("/console/jobs?state=scheduled")).text
    assert "prune layer" in page
    assert f"Cancel job {job.job_id}" in page
    assert f"job {job.job_id}<" not in (await http.get("/console/jobs?state=failed")).text
    other = await signed_in(http, mint("somebody else"))
    assert (await http.post("/console/jobs", data={**form, **other})).status_code == 404
    form |= await signed_in(http, mint(agent.agent_id))
    assert (await http.post("/console/jobs", data=form)).headers["location"] == "/console/jobs?done=cancel"
    assert [each.state for each in (await agent.memory.jobs()).jobs] == ["cancelled"]
    assert (await http.post("/console/jobs", data=form)).status_code == 409


async def test_a_user_id_of_spaces_is_a_user(http: httpx.AsyncClient, agent: Agent, mint: Mint) -> None:
    await agent.store("Ada drinks tea", user_id="ada")
    await agent.store("Nobody drinks cocoa", user_id=" ")
    form = await signed_in(http, mint(agent.agent_id))
    page = (await http.get("/console/memories?user_id=%20")).text
    assert ("cocoa" in page, "tea" in page) == (True, False)
    form |= {"user_id": " "}
    assert (await http.post("/console/users/erase", data={**form, "typed": ""})).status_code == 422
    assert (await http.post("/console/users/erase", data={**form, "typed": " "})).status_code == 200
    assert (await agent.memory.count()).count == 1
