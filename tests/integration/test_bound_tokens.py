"""Tokens bound to users: no method reads or writes data of other users of the same agent."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from agentcore.errors import InvalidParams, NotAuthorised, NotFound
from agentcore.memory.api import METHODS, SCOPES, AnyMethod
from agentcore.memory.models import Link, MemorySummary, MemoryType
from agentcore.params import (
    AddSessionParams,
    ArchivedParams,
    CountParams,
    DeleteParams,
    EndSessionParams,
    FeedbackParams,
    GetContextParams,
    GetParams,
    HistoryParams,
    ListParams,
    Message,
    PruneParams,
    RetrieveParams,
    StatsParams,
    StoreBatchParams,
    StoreParams,
    SummarizeParams,
    UpdateParams,
)
from agentcore.runtime import Runtime
from agentcore.server import MCP_ENDPOINT, create_app
from tests.fixtures.edge import request
from tests.fixtures.estates import Estate, Strange, clear, settle
from tests.fixtures.memory import Agent
from tests.fixtures.places import holdings
from tests.integration.test_isolation_matrix import _nearly, _outcomes

Bound = Callable[..., MemoryClient]


@pytest.fixture
async def bound(runtime: Runtime) -> AsyncIterator[Bound]:
    """Returns a factory of clients whose token is bound to the given users."""
    transport = httpx.ASGITransport(create_app(runtime))
    secret = runtime.settings.jwt_secret_key
    assert secret is not None

    def client(agent: Agent, *users: str | None) -> MemoryClient:
        token = mint_token(secret.get_secret_value(), agent.agent_id, [*SCOPES], 600, users=users)
        return MemoryClient("http://service", token, transport=transport, max_attempts=1)

    yield client
    await transport.aclose()


async def contents(memory: MemoryClient, **filters: Any) -> set[str]:
    found = await memory.list(ListParams.model_validate(filters))
    return {each.content for each in found.memories}


# --- filters -----------------------------------------------------------------------------------------------


@pytest.mark.shows("B9")
async def test_a_filter_asks_for_a_users_memories_and_the_shared_ones_together(agent: Agent) -> None:
    hostile = '["anna", null]'
    for user in ("anna", "bob", None, hostile):
        await agent.stored_id(f"The kiln of {user or 'all'} is hot.", user_id=user, memory_type="semantic")
    memory, both = agent.memory, {"The kiln of anna is hot.", "The kiln of all is hot."}
    wanted: dict[str, Any] = {"user_id": ["anna", None]}
    listed = await memory.list(ListParams.model_validate(wanted))
    assert {each.content for each in listed.memories} == both
    assert (await memory.count(CountParams.model_validate({"user_id": [None]}))).count == 1
    asked = {"query": "Whose kiln is hot?", "min_fit": 0.0, "distinct": False, **wanted}
    found = await memory.retrieve(RetrieveParams.model_validate({"k": 9, **asked}))
    assert {each.content for each in found.memories} == both
    context = (await memory.get_context(GetContextParams.model_validate(asked))).context
    assert all(each in context for each in both) and "bob" not in context
    summary = await memory.summarize(SummarizeParams.model_validate(wanted))
    assert summary.memory_count == 2
    await memory.prune(PruneParams(memory_layer=MemoryType.SEMANTIC, target=1.0))
    archived = await memory.archived(ArchivedParams.model_validate(wanted))
    assert {each.user_id for each in archived.memories} == {"anna", None}


@pytest.mark.shows("B9")
async def test_deleting_by_several_users_leaves_the_others(agent: Agent) -> None:
    for user in ("anna", "bob", None):
        await agent.stored_id(f"The kiln of {user} is hot.", user_id=user)
    given = {"user_id": ["anna", None], "confirm": True}
    assert (await agent.memory.delete(DeleteParams.model_validate(given))).deleted_count == 2


# --- the matrix --------------------------------------------------------------------------------------------


FOR_USERS = [method for method in METHODS if method.for_users]


@pytest.mark.shows("issue13-users")
async def test_methods_that_act_on_all_users_are_refused_and_change_nothing(
    runtime: Runtime, new_agent: Callable[..., Agent], bound: Bound
) -> None:
    [owner] = await settle(runtime, {new_agent(): "zebra"})
    before = await holdings(runtime, owner.agent.agent_id)
    for method in METHODS:
        if not method.for_users:
            seen = await _outcomes(bound(owner.agent, "u-1", None), method, Strange.of(owner), owner)
            assert {each["code"] for each in seen} == {-32104}, method.name
    before.assert_untouched(await holdings(runtime, owner.agent.agent_id))


@pytest.mark.parametrize("method", FOR_USERS, ids=lambda method: str(method.name))
@pytest.mark.shows("issue13-users")
async def test_what_is_of_other_users_is_as_if_it_did_not_exist_and_stays_as_it_is(
    runtime: Runtime, new_agent: Callable[..., Agent], bound: Bound, method: AnyMethod
) -> None:
    theirs = f"zebra{secrets.token_hex(8)}"
    await clear(runtime)
    # The control caller has no data, in an empty agent.
    twin, nobodys = new_agent(), Strange.nobodys(theirs)
    nothing = Estate(twin, theirs, nobodys.ids, nobodys.cursor, nobodys.job_id)
    expected = await _outcomes(bound(twin, "anna"), method, nobodys, nothing)

    [owner] = await settle(runtime, {new_agent(): theirs})
    before = await holdings(runtime, owner.agent.agent_id)
    assert before.empty_places() == set()
    seen = await _outcomes(bound(owner.agent, "anna"), method, Strange.of(owner), owner)
    await runtime.parts.accesses.flush(runtime.parts.storage)

    assert _without_capacities(seen) == _nearly(_without_capacities(expected))
    after = await holdings(runtime, owner.agent.agent_id)
    for name, share in before.shares.items():
        assert share.items() <= after.shares[name].items(), f"{name} was touched"


def _without_capacities(seen: Any) -> Any:
    """Removes capacities: they are agent settings, which memory.stats shows to every caller."""
    if isinstance(seen, dict):
        return {name: _without_capacities(each) for name, each in seen.items() if name != "capacity"}
    return [_without_capacities(each) for each in seen] if isinstance(seen, list) else seen


def _words_of(memory: MemorySummary) -> float:
    assert memory.terms is not None
    return memory.terms["words"].value


# --- own data -----------------------------------------------------------------------------------------------


@pytest.mark.shows("issue13-users")
async def test_reading_is_restricted_to_the_tokens_users(agent: Agent, bound: Bound) -> None:
    for user in ("anna", "bob", None):
        await agent.stored_id(f"The kiln of {user} is hot.", user_id=user)
    anna, both, shared = bound(agent, "anna"), bound(agent, "anna", None), bound(agent, None)
    assert await contents(anna) == {"The kiln of anna is hot."}
    assert await contents(both) == {"The kiln of anna is hot.", "The kiln of None is hot."}
    assert await contents(shared) == {"The kiln of None is hot."}
    assert await contents(anna, user_id="bob") == set()
    assert await contents(both, user_id=["bob", None]) == {"The kiln of None is hot."}
    assert (await both.count(CountParams())).count == 2
    assert (await anna.stats(StatsParams())).total == 1
    found = await both.retrieve(RetrieveParams(query="Whose kiln is hot?", distinct=False, min_fit=0.0))
    assert {each.content for each in found.memories} == await contents(both)
    context = await anna.get_context(GetContextParams(query="Whose kiln is hot?", min_fit=0.0))
    assert "anna" in context.context and "bob" not in context.context


@pytest.mark.shows("issue13-users")
async def test_a_store_carries_a_user_of_the_token(agent: Agent, bound: Bound) -> None:
    anna, both = bound(agent, "anna"), bound(agent, "anna", "bob")
    stored = await anna.store(StoreParams(content="The kiln is hot."))
    assert stored.memory_id is not None
    assert (await agent.get(stored.memory_id)).user_id == "anna"
    await anna.add_session(AddSessionParams(session_id="s-1", messages=[Message(content="The sea is cold.")]))
    assert {each.user_id for each in (await agent.memory.list()).memories} == {"anna"}
    with pytest.raises(NotAuthorised):
        await anna.store(StoreParams(content="The kiln is cold.", user_id="bob"))
    with pytest.raises(NotAuthorised):
        await anna.store_batch(StoreBatchParams(items=[StoreParams(content="It rains.", user_id="bob")]))
    with pytest.raises(InvalidParams, match="user_id"):
        await both.store(StoreParams(content="The kiln is cold."))
    await both.store(StoreParams(content="The kiln is cold.", user_id="bob"))


@pytest.mark.shows("issue13-users")
async def test_a_memory_of_another_user_is_not_found_by_its_id(agent: Agent, bound: Bound) -> None:
    theirs = await agent.stored_id("The kiln of bob is hot.", user_id="bob")
    anna = bound(agent, "anna")
    own = await anna.store(StoreParams(content="The kiln of anna is hot."))
    with pytest.raises(NotFound):
        await anna.get(GetParams(memory_id=theirs))
    with pytest.raises(NotFound):
        await anna.update(UpdateParams.model_validate({"memory_id": theirs, "updates": {"importance": 0.1}}))
    with pytest.raises(NotFound):
        await anna.history(HistoryParams(memory_id=theirs))
    with pytest.raises(NotFound):
        await anna.feedback(FeedbackParams(memory_id=theirs, verdict="wrong"))
    with pytest.raises(NotFound):
        await anna.store(StoreParams(content="A neighbour.", links=[Link(target_id=theirs)]))
    assert (await anna.delete(DeleteParams(memory_ids=[theirs]))).deleted_count == 0
    assert own.memory_id is not None
    change = {"memory_id": own.memory_id, "updates": {"importance": 0.9}}
    await anna.update(UpdateParams.model_validate(change))
    assert len((await anna.history(HistoryParams(memory_id=own.memory_id))).changes) == 1


async def test_a_deletion_by_a_bound_token_takes_summaries_of_several_users_with_it(agent: Agent, bound: Bound) -> None:
    said = {"anna": "Anna sold the blue kiln to Pieter in Ghent.", "bob": "Bob keeps the red kiln in Porto."}
    for number, (user, text) in enumerate(said.items()):
        for suffix in ("", " It was a long talk about clay.", " The glaze was still wet then."):
            message = Message(role="user", content=f"{text}{suffix} {number}")
            await agent.memory.add_session(AddSessionParams(session_id="s", user_id=user, messages=[message]))
    await agent.memory.end_session(EndSessionParams(session_id="s"))

    summaries = [each for each in (await agent.memory.list()).memories if each.user_id is None]
    assert any("blue kiln" in each.content for each in summaries)
    await bound(agent, "anna").delete(DeleteParams(all=True, confirm=True))
    left = " ".join(each.content for each in (await agent.memory.list()).memories)
    assert "blue kiln" not in left and said["bob"] in left


@pytest.mark.shows("issue13-users")
async def test_deleting_all_deletes_what_the_token_may_read_with_its_history(agent: Agent, bound: Bound) -> None:
    await agent.stored_id("The kiln of bob is hot.", user_id="bob")
    own = await agent.stored_id("The kiln of anna is hot.", user_id="anna")
    anna = bound(agent, "anna")
    await anna.update(UpdateParams.model_validate({"memory_id": own, "updates": {"content": "It is cold."}}))
    assert (await anna.delete(DeleteParams(all=True, confirm=True))).deleted_count == 1
    assert {each.user_id for each in (await agent.memory.list()).memories} == {"bob"}
    shares = (await holdings(agent.runtime, agent.agent_id)).shares
    assert not shares["memory_history"]


@pytest.mark.shows("issue13-users")
async def test_an_idempotency_key_does_not_meet_that_of_another_user(agent: Agent, bound: Bound) -> None:
    theirs = await agent.stored_id("The kiln of bob is hot.", user_id="bob", idempotency_key="k")
    anna, again = bound(agent, "anna"), StoreParams(content="The kiln is hot.", idempotency_key="k")
    first, second = await anna.store(again), await anna.store(again)
    assert (first.status, second.status) == ("stored", "existing")
    assert first.memory_id == second.memory_id != theirs


@pytest.mark.shows("issue13-users")
async def test_the_words_of_others_neither_correct_nor_weigh_a_query(agent: Agent, bound: Bound) -> None:
    for number in range(5):
        await agent.stored_id(f"The thermostat number {number} is set to high.", user_id="bob")
    anna = bound(agent, "anna")
    await anna.store(StoreParams(content="The garden gate is green."))
    asked = RetrieveParams(query="themrostat", explain=True, min_fit=0.0)
    assert "corrected" in (await agent.memory.retrieve(asked)).receipt.searched
    assert "corrected" not in (await anna.retrieve(asked)).receipt.searched
    await agent.memory.delete(DeleteParams(user_id="bob", confirm=True))
    gate = RetrieveParams(query="Which colour has the garden gate?", explain=True, min_fit=0.0)
    alone = (await anna.retrieve(gate)).memories
    await agent.stored_id("The gate of the garden has every colour.", user_id="bob")
    again = (await anna.retrieve(gate)).memories
    assert [_words_of(each) for each in again] == [_words_of(each) for each in alone] != [0.0]


@pytest.mark.shows("issue13-users")
async def test_a_task_shows_each_user_its_own_part(agent: Agent, bound: Bound) -> None:
    for user in ("anna", "bob"):
        await agent.stored_id(f"The parcel of {user} has arrived.", user_id=user, task_id="post", memory_type="working")
    asked = GetContextParams(query="Which parcel has arrived?", task_id="post")
    everybody = (await agent.memory.get_context(asked)).context
    assert "anna" in everybody and "bob" in everybody
    anna = await bound(agent, "anna").get_context(asked)
    assert "anna" in anna.context and "bob" not in anna.context
    assert anna.receipt.degraded == []
    assert (await agent.memory.get_context(asked)).context == everybody


@pytest.mark.shows("issue13-users")
async def test_a_summary_of_several_users_shows_to_none_of_them_alone(agent: Agent, bound: Bound) -> None:
    summary_id = await _summarized(agent)
    for users in (("anna",), ("anna", None), (None,)):
        assert summary_id not in {each.memory_id for each in (await bound(agent, *users).list(ListParams())).memories}
    seen = await bound(agent, "anna", "bob", None).get(GetParams(memory_id=summary_id))
    assert seen.memory.user_id is None


async def _summarized(agent: Agent) -> UUID:
    """Stores a session of anna and bob and returns the id of its summary."""
    for user in ("anna", "bob"):
        messages = [
            Message(content=f"The parcel of {user} with the blue ribbon number {each} has arrived in Hamburg.")
            for each in range(4)
        ]
        await agent.memory.add_session(AddSessionParams(session_id="s-1", messages=messages, user_id=user))
    summary = await agent.memory.end_session(EndSessionParams(session_id="s-1"))
    assert summary.summary_id is not None
    return summary.summary_id


@pytest.mark.parametrize(
    ("users", "visible"),
    [
        (("anna", "bob", None), {"summary", "own", "shared"}),
        (("anna", "bob"), {"own"}),
        (("anna", None), {"own", "shared"}),
        ((None,), {"shared"}),
        (("anna",), {"own"}),
    ],
)
@pytest.mark.shows("issue13-users")
async def test_an_archived_summary_of_several_users_is_visible_to_tokens_bound_to_all_of_them(
    agent: Agent, bound: Bound, users: tuple[str | None, ...], visible: set[str]
) -> None:
    own = await agent.stored_id("The kiln of anna is hot.", user_id="anna", memory_type="semantic")
    shared = await agent.stored_id("The kiln is hot.", memory_type="semantic")
    named = {await _summarized(agent): "summary", own: "own", shared: "shared"}
    pruned = await agent.memory.prune(PruneParams(memory_layer=MemoryType.SEMANTIC, target=1.0))
    assert set(pruned.memory_ids) == set(named)
    memory = bound(agent, *users)
    listed = (await memory.archived(ArchivedParams())).memories
    assert {named[each.memory_id] for each in listed} == visible
    assert (await memory.stats(StatsParams())).archived == len(visible)
    assert (await agent.memory.stats(StatsParams())).archived == 3


async def test_a_tombstone_without_recorded_users_is_hidden_from_bound_tokens(agent: Agent, bound: Bound) -> None:
    own = await agent.stored_id("The kiln of anna is hot.", user_id="anna", memory_type="semantic")
    await agent.stored_id("The kiln is hot.", memory_type="semantic")
    await agent.memory.prune(PruneParams(memory_layer=MemoryType.SEMANTIC, target=1.0))
    async with agent.runtime.database.owner_transaction() as connection:  # as an older version wrote it
        await connection.execute("UPDATE archived_memories SET users = NULL WHERE agent_id = %s", (agent.agent_id,))
    listed = (await bound(agent, "anna", "bob", None).archived(ArchivedParams())).memories
    assert [each.memory_id for each in listed] == [own]


@pytest.mark.parametrize("users", [("anna",), ("anna", "bob", None)])
@pytest.mark.shows("issue13-users")
async def test_an_update_by_a_bound_token_marks_a_summary_of_several_users_stale(
    agent: Agent, bound: Bound, users: tuple[str | None, ...]
) -> None:
    summary_id = await _summarized(agent)
    own = (await agent.memory.list(ListParams(user_id="anna"))).memories[0].memory_id
    update = {"memory_id": own, "updates": {"content": "The parcel was lost in Ghent."}}
    await bound(agent, *users).update(UpdateParams.model_validate(update))
    await agent.runtime.jobs.run_pending()
    assert "Ghent" in (await agent.get(summary_id)).content


async def test_a_store_by_a_bound_token_that_supersedes_marks_a_summary_of_several_users_stale(
    agent: Agent, bound: Bound
) -> None:
    old = await agent.stored_id("My phone number is 0151 223344.", session_id="s-1", user_id="anna")
    summary_id = await _summarized(agent)
    assert "223344" in (await agent.get(summary_id)).content
    new = await bound(agent, "anna").store(StoreParams(content="My phone number is 0170 998877.", session_id="s-2"))
    assert new.superseded == [old]
    await agent.runtime.jobs.run_pending()
    assert "223344" not in (await agent.get(summary_id)).content


async def test_a_user_with_the_name_of_the_setting_for_all_users_sees_its_own_memories(
    agent: Agent, bound: Bound
) -> None:
    await agent.stored_id("The kiln of bob is hot.", user_id="bob")
    own = await agent.stored_id("The kiln of this user is cold.", user_id="*")
    assert [each.memory_id for each in (await bound(agent, "*").list(ListParams())).memories] == [own]


async def test_after_a_statement_for_all_users_a_transaction_sees_its_own_users_again(agent: Agent) -> None:
    ids = {user: await agent.stored_id(f"The kiln of {user} is hot.", user_id=user) for user in ("anna", "bob")}
    storage = agent.runtime.parts.storage.bound_to(["anna"])
    async with storage.transaction(agent.agent_id) as transaction:
        locked = await transaction.summaries.lock(to_change=ids.values())
        assert locked.keys() == {*ids.values()}
        assert await transaction.existing(ids.values()) == {ids["anna"]}


@pytest.mark.shows("issue13-users")
async def test_an_mcp_client_with_a_bound_token_is_bound_too(runtime: Runtime, agent: Agent) -> None:
    theirs = await agent.stored_id("The kiln of bob is hot.", user_id="bob")
    secret = runtime.settings.jwt_secret_key
    assert secret is not None
    token = mint_token(secret.get_secret_value(), agent.agent_id, [*SCOPES], 600, users=["anna"])
    headers = {"authorization": f"Bearer {token}", "accept": "application/json, text/event-stream"}
    transport = httpx.ASGITransport(create_app(runtime))
    async with httpx.AsyncClient(transport=transport, base_url="http://edge", headers=headers) as http:

        async def called(name: str, **arguments: Any) -> str:
            call = request("tools/call", {"name": name, "arguments": arguments})
            return (await http.post(MCP_ENDPOINT, json=call)).text

        saved = await called("save_memory", content="The kiln of anna is cold.")
        recalled = await called("recall_memory", query="Whose kiln is hot?")
        updated = await called("update_memory", memory_id=str(theirs), content="It is cold.")
    assert 'isError":false' in saved.replace(" ", "") and 'isError":true' in updated.replace(" ", "")
    assert "anna" in recalled and "bob" not in recalled
    assert (await agent.get(theirs)).version == 1
