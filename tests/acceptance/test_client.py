"""The client against a real service process and against the in-process application."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable
from secrets import token_hex
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentcore.auth import mint_token
from agentcore.client import MemoryClient
from agentcore.errors import (
    AuthenticationFailed,
    Conflict,
    DependencyUnavailable,
    InvalidParams,
    NotAuthorised,
    NotFound,
)
from agentcore.memory.api import MemoryApi
from agentcore.memory.models import Interaction, MemoryType
from agentcore.memory.params.changes import UpdateParams, Updates
from agentcore.memory.params.memories import (
    CapabilitiesParams,
    CompleteTaskParams,
    CountParams,
    DeleteParams,
    GetContextParams,
    GetParams,
    ListParams,
    PruneParams,
    RetrieveParams,
    StatsParams,
    StoreBatchParams,
    StoreParams,
)
from agentcore.runtime import Runtime
from tests.fixtures.memory_faces import FACES
from tests.fixtures.serving import Serving

WITHOUT_LOGGING = """
import asyncio
from agentcore.client import MemoryClient
from agentcore.errors import DependencyUnavailable

async def ask():
    async with MemoryClient("http://127.0.0.1:9", "t.o.k") as memory:
        try:
            await memory.retrieve_memories("anything")
        except DependencyUnavailable as error:
            print(error)

asyncio.run(ask())
"""
TEA = "Ada prefers green tea over coffee in the morning."
BIKE = "The blue bicycle needs a new chain before Friday."


async def live_a_little(memory: MemoryApi) -> None:
    """Calls every method once, in the order of a memory's lifecycle."""
    tea = await memory.store(StoreParams(content=TEA, speaker="Ada", tags=["drinks"], task_id="breakfast"))
    assert tea.memory_id is not None
    batch = await memory.store_batch(
        StoreBatchParams(
            items=[
                StoreParams(content=BIKE),
                StoreParams(content="hello there"),
                StoreParams(interaction=Interaction(query="Where is the key?", response="Under the mat.")),
            ]
        )
    )
    assert [result.status for result in batch.results] == ["stored", "rejected", "stored"]
    found = await memory.retrieve(RetrieveParams(query="what does Ada drink, tea or coffee?", explain=True))
    assert found.memories[0].content == TEA
    assert found.memories[0].terms
    built = await memory.get_context(GetContextParams(query="breakfast", task_id="breakfast", max_tokens=200))
    assert TEA in built.context
    assert 0 < built.token_count <= 200
    assert (await memory.count(CountParams())).count == 3
    assert (await memory.count(CountParams(tags=["drinks"]))).count == 1
    changed = await memory.update(UpdateParams(memory_id=tea.memory_id, updates=Updates(importance=0.9)))
    assert changed.version == 2
    record = (await memory.get(GetParams(memory_id=tea.memory_id))).memory
    assert (record.relevance_score, record.speaker, record.tags) == (0.9, "Ada", ["drinks"])
    page = await memory.list(ListParams(limit=2))
    rest = await memory.list(ListParams(limit=2, cursor=page.next_cursor))
    assert len({record.memory_id for record in [*page.memories, *rest.memories]}) == 3
    assert (await memory.stats(StatsParams())).total == 3
    assert MemoryType.SEMANTIC in (await memory.capabilities(CapabilitiesParams())).memory_types
    assert (await memory.complete_task(CompleteTaskParams(task_id="breakfast"))).cleared_count == 1
    pruned = await memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=1))
    assert pruned.pruned_count == 1
    assert (await memory.delete(DeleteParams(all=True, confirm=True))).deleted_count == 2


@pytest.mark.shows("FR-6.5", "issue2-6-methods")
async def test_a_memory_lives_its_whole_life_over_http(memory: MemoryClient) -> None:
    await live_a_little(memory)
    assert (await memory.count(CountParams())).count == 0


async def test_the_same_life_over_the_application_in_this_process(runtime: Runtime, agent_id: str) -> None:
    async with FACES["in-process client"](runtime, agent_id) as memory:
        await live_a_little(memory)
        assert (await memory.count(CountParams())).count == 0


async def test_the_named_methods_of_the_specification_work_on_the_client(memory: MemoryClient) -> None:
    stored = await memory.add_interaction(Interaction(query=TEA, response="Noted."), session_id="monday")
    assert stored.status == "stored"
    [summary] = await memory.retrieve_memories("green tea", k=3, session_id="monday")
    assert summary.memory_id == stored.memory_id
    assert TEA in await memory.get_relevant_context("green tea", max_tokens=300)


async def test_the_same_key_stores_once_and_another_body_is_a_conflict(memory: MemoryClient) -> None:
    first = await memory.store(StoreParams(content=TEA, idempotency_key="one"))
    again = await memory.store(StoreParams(content=TEA, idempotency_key="one"))
    assert (again.memory_id, again.status) == (first.memory_id, "existing")
    with pytest.raises(Conflict):
        await memory.store(StoreParams(content=BIKE, idempotency_key="one"))
    assert (await memory.count(CountParams())).count == 1


async def test_a_memory_of_nobody_and_a_memory_of_another_are_the_same_error(
    serving: Serving, memory: MemoryClient
) -> None:
    stored = await memory.store(StoreParams(content=TEA))
    assert stored.memory_id is not None
    async with serving.client(f"agent-{uuid4()}") as stranger:
        with pytest.raises(NotFound) as of_another:
            await stranger.get(GetParams(memory_id=stored.memory_id))
        with pytest.raises(NotFound) as of_nobody:
            await stranger.get(GetParams(memory_id=UUID(int=7)))
    assert of_another.value.message == of_nobody.value.message
    assert (await memory.get(GetParams(memory_id=stored.memory_id))).memory.content == TEA


async def test_bad_params_name_the_field(memory: MemoryClient) -> None:
    with pytest.raises(InvalidParams) as raised:
        await memory.retrieve(RetrieveParams.model_construct({"query", "k"}, query="tea", k=-1))
    assert "k" in f"{raised.value.message} {raised.value.data}"


async def test_a_token_without_the_scope_is_not_authorised(serving: Serving, agent_id: str) -> None:
    async with MemoryClient(serving.url, serving.token(agent_id, scopes=("memory:read",))) as reader:
        assert (await reader.count(CountParams())).count == 0
        with pytest.raises(NotAuthorised):
            await reader.store(StoreParams(content=TEA))


async def test_a_token_of_another_secret_is_refused(serving: Serving, agent_id: str) -> None:
    forged = mint_token(token_hex(32), agent_id, ["memory:read"], 60)
    async with MemoryClient(serving.url, forged) as forger:
        with pytest.raises(AuthenticationFailed):
            await forger.count(CountParams())


async def test_an_expired_token_is_replaced_without_the_caller_noticing(serving: Serving, agent_id: str) -> None:
    tokens = iter([serving.token(agent_id, ttl_seconds=-60), serving.token(agent_id)])
    async with MemoryClient(serving.url, lambda: next(tokens)) as memory:
        assert (await memory.count(CountParams())).count == 0


@pytest.mark.shows("AC-7")
async def test_a_conversation_and_a_trace_reach_the_memorys_provenance(memory: MemoryClient) -> None:
    trace_id = uuid4().hex
    traced = memory.traced(
        traceparent=f"00-{trace_id}-00f067aa0ba902b7-01",
        a2a_context={"source_agent": "planner", "conversation_id": "c-1"},
    )
    stored = await traced.store(StoreParams(content=TEA))
    assert stored.memory_id is not None
    provenance = (await memory.get(GetParams(memory_id=stored.memory_id))).memory.provenance
    assert provenance["trace_id"] == trace_id
    assert provenance["a2a_context"]["source_agent"] == "planner"


@pytest.mark.shows("NFR-1.4")
async def test_concurrent_callers_get_their_own_answers(serving: Serving) -> None:
    async def remember(number: int) -> str:
        async with serving.client(f"agent-{uuid4()}") as memory:
            await memory.store(StoreParams(content=f"The locker number is {number}."))
            return (await memory.retrieve(RetrieveParams(query="locker number"))).memories[0].content

    told = await asyncio.gather(*(remember(number) for number in range(30)))
    assert told == [f"The locker number is {number}." for number in range(30)]


async def test_no_service_is_said_so_with_its_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with MemoryClient(f"http://127.0.0.1:{port}", "a.b.c", max_attempts=2) as nobody:
        with pytest.raises(DependencyUnavailable, match=rf"127\.0\.0\.1:{port}"):
            await nobody.count(CountParams())


async def test_a_service_that_stays_silent_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        async with MemoryClient(url, "a.b.c", timeout_seconds=0.2, max_attempts=1) as waiting:
            with pytest.raises(DependencyUnavailable, match=r"did not answer within 0\.2 s"):
                await waiting.count(CountParams())


async def test_a_proxy_of_the_environment_is_not_asked_for_this_machine(
    serving: Serving, agent_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with serving.client(agent_id) as memory:
        assert (await memory.count(CountParams())).count == 0


async def test_the_real_local_model_finds_what_shares_no_word(
    new_serving: Callable[..., Serving], agent_id: str
) -> None:
    local = new_serving(EMBEDDING_MODEL="local")
    local.start()
    local.await_listening()
    async with local.client(agent_id) as memory:
        contents = [TEA, BIKE, "The tax office wants the papers by June.", "Bruno plays cello on Sundays."]
        await memory.store_batch(StoreBatchParams(items=[StoreParams(content=each) for each in contents]))
        best: dict[str, Any] = {}
        for query in ("favourite hot beverage", "cycle repair", "musical instrument"):
            params = RetrieveParams(query=query, k=1, min_fit=0)
            best[query] = (await memory.retrieve(params)).memories[0].content
    assert list(best.values()) == [TEA, BIKE, contents[3]]
    assert local.stop() == 0
    assert local.left_over() == []


def test_a_script_that_sets_up_no_logging_sees_its_error_and_no_lines_of_a_library() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_LOGGING], text=True, capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No service answers at http://127.0.0.1:9")
