"""Retention of layers: service rules, agent rules, and renewal by use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from agentcore.errors import NotFound
from agentcore.maintenance.rounds import sweep_expired
from agentcore.memory.models import MemoryType
from agentcore.memory.params.agent_settings import ConfigureParams, LayerRules, SettingsParams, changed_rules
from agentcore.memory.params.changes import HistoryParams, RevertParams, UpdateParams
from agentcore.memory.params.memories import PruneParams, StatsParams
from agentcore.memory.storage import job_lock
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.memory import Agent, fill, settings_for
from tests.fixtures.services import Services

DAY = 86_400
EPISODIC = MemoryType.EPISODIC


@pytest.fixture
async def ruled(services: Services) -> AsyncIterator[Runtime]:
    """A service whose episodic memories live for 15 days and are renewed after 3 uses."""
    rules = {"episodic": {"ttl_seconds": 15 * DAY, "extend_after_uses": 3}}
    async with open_runtime(settings_for(services, memory_layers=rules)) as running:
        yield running


async def lives(agent: Agent, memory_id: UUID) -> float | None:
    """Returns the days until the memory expires."""
    expires_at = (await agent.get(memory_id)).expires_at
    return None if expires_at is None else (expires_at - datetime.now(UTC)) / timedelta(days=1)


async def renew(agent: Agent, memory_id: UUID) -> int:
    """Restarts the memory's lifetime and returns its version."""
    params = UpdateParams.model_validate({"memory_id": memory_id, "updates": {"renew": True}})
    return (await agent.memory.update(params)).version


async def configure(agent: Agent, **layers: dict[str, Any]) -> None:
    await agent.memory.configure(ConfigureParams.model_validate({"layers": layers}))


async def use(agent: Agent, memory_id: UUID, times: int) -> None:
    """Retrieves a memory `times` times and counts the accesses."""
    parts = agent.runtime.parts
    for _ in range(times):
        parts.accesses.note(agent.agent_id, [memory_id], parts.clock())
    await parts.accesses.flush(parts.storage, parts.extend_after_uses)


async def age(agent: Agent, memory_id: UUID, days: float) -> None:
    """Shifts the memory into the past by this many days."""
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "UPDATE memories SET expires_at = expires_at - make_interval(secs => %s) WHERE memory_id = %s",
            (days * DAY, memory_id),
        )


@pytest.mark.shows("issue4-4.1")
async def test_a_memory_lives_as_its_layer_says_unless_its_store_says_otherwise(ruled: Runtime) -> None:
    agent = Agent(ruled)
    assert await lives(agent, await agent.stored_id("By the layer.")) == pytest.approx(15, abs=0.01)
    own = await agent.stored_id("By its own.", ttl_seconds=DAY)
    assert await lives(agent, own) == pytest.approx(1, abs=0.01)
    assert await lives(agent, await agent.stored_id("For ever.", ttl_seconds=None)) is None
    assert await lives(agent, await agent.stored_id("Pinned.", pinned=True)) is None
    assert await lives(agent, await agent.stored_id("Knowledge.", memory_type="semantic")) is None


@pytest.mark.shows("issue4-4.1")
async def test_an_agents_own_rules_go_before_the_services_and_are_its_own(ruled: Runtime) -> None:
    agent, other = Agent(ruled), Agent(ruled)
    await configure(agent, episodic={"ttl_seconds": 2 * DAY}, semantic={"ttl_seconds": DAY, "capacity": 7})
    assert await lives(agent, await agent.stored_id("Two days.")) == pytest.approx(2, abs=0.01)
    assert await lives(other, await other.stored_id("Two weeks.")) == pytest.approx(15, abs=0.01)
    told = await agent.memory.settings(SettingsParams())
    assert told.layers[EPISODIC] == LayerRules(ttl_seconds=2 * DAY, capacity=0, extend_after_uses=3)
    assert told.own == {
        EPISODIC: LayerRules(ttl_seconds=2 * DAY),
        MemoryType.SEMANTIC: LayerRules(ttl_seconds=DAY, capacity=7),
    }
    assert (await agent.memory.stats(StatsParams())).layers[MemoryType.SEMANTIC].capacity == 7
    assert (await other.memory.settings(SettingsParams())).own == {}


async def test_zero_is_for_ever_and_null_goes_back_to_the_service(ruled: Runtime) -> None:
    agent = Agent(ruled)
    await configure(agent, episodic={"ttl_seconds": 0})
    assert await lives(agent, await agent.stored_id("For ever, by the agent.")) is None
    await configure(agent, episodic={"ttl_seconds": None})
    assert await lives(agent, await agent.stored_id("As the service has it.")) == pytest.approx(15, abs=0.01)
    assert (await agent.memory.settings(SettingsParams())).own == {}


async def test_what_is_shown_of_working_memory_is_what_it_gets(agent: Agent) -> None:
    working = MemoryType.WORKING
    told = (await agent.memory.settings(SettingsParams())).layers[working]
    kept = await agent.stored_id("The task at hand.", memory_type=working)
    assert told.ttl_seconds == 3_600
    assert await lives(agent, kept) == pytest.approx(told.ttl_seconds / DAY, abs=0.01)
    await configure(agent, working={"ttl_seconds": 0})
    assert (await agent.memory.settings(SettingsParams())).layers[working].ttl_seconds == 0
    assert await lives(agent, await agent.stored_id("Another, for ever.", memory_type=working)) is None


async def test_rules_set_at_the_same_time_are_all_kept(agent: Agent) -> None:
    await asyncio.gather(*(configure(agent, **{layer.value: {"capacity": 5}}) for layer in MemoryType))
    own = (await agent.memory.settings(SettingsParams())).own
    assert own == {layer: LayerRules(capacity=5) for layer in MemoryType}


async def test_a_capacity_that_is_set_later_has_the_layer_pruned(agent: Agent) -> None:
    await fill(agent, 12)
    await configure(agent, episodic={"capacity": 9})
    async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        assert await transaction.jobs.waits(job_lock("prune_layer", layer="episodic"))


@pytest.mark.shows("issue4-5.1")
async def test_a_prune_goes_down_to_the_agents_own_capacity(agent: Agent) -> None:
    await fill(agent, 12)
    await configure(agent, episodic={"capacity": 9})
    assert (await agent.memory.prune(PruneParams(memory_layer=EPISODIC))).pruned_count == 3


@pytest.mark.shows("issue4-4.2")
async def test_a_memory_that_is_used_gets_its_time_again_and_counts_anew(ruled: Runtime) -> None:
    agent = Agent(ruled)
    memory_id = await agent.stored_id("The tide table hangs in the hall.")
    await age(agent, memory_id, 14)
    await use(agent, memory_id, 2)
    assert await lives(agent, memory_id) == pytest.approx(1, abs=0.01)
    await use(agent, memory_id, 1)
    assert await lives(agent, memory_id) == pytest.approx(15, abs=0.01)
    await age(agent, memory_id, 14)
    await use(agent, memory_id, 2)
    assert await lives(agent, memory_id) == pytest.approx(1, abs=0.01)
    record = await agent.get(memory_id)
    assert (record.access_count, record.version) == (5, 1)
    history = await agent.memory.history(HistoryParams(memory_id=memory_id))
    assert [(change.operation, change.version) for change in history.changes] == [("extend", None)]


@pytest.mark.shows("issue4-4.2")
async def test_use_does_not_bring_back_what_is_over(ruled: Runtime) -> None:
    agent = Agent(ruled)
    memory_id = await agent.stored_id("The offer ends on Sunday.")
    await age(agent, memory_id, 15.01)
    await use(agent, memory_id, 9)
    assert await agent.found("offer Sunday") == []
    parts = ruled.parts
    assert await sweep_expired(ruled.database, parts.storage, parts.working) >= 1


async def test_an_extension_does_not_stand_in_the_way_of_a_revert(ruled: Runtime) -> None:
    agent = Agent(ruled)
    memory_id = await agent.stored_id("The gate is locked at nine.")
    await agent.memory.update(
        UpdateParams.model_validate({"memory_id": memory_id, "updates": {"content": "The gate is locked at ten."}})
    )
    await use(agent, memory_id, 3)
    await agent.memory.revert(RevertParams(memory_id=memory_id, version=1))
    assert (await agent.get(memory_id)).content == "The gate is locked at nine."


def test_a_null_takes_a_rule_away_and_what_is_not_named_stays() -> None:
    own = {"episodic": {"ttl_seconds": 5, "capacity": 3}, "semantic": {"capacity": 1}}
    changes = {
        EPISODIC: LayerRules(ttl_seconds=None, extend_after_uses=2),
        MemoryType.SEMANTIC: LayerRules(capacity=None),
    }
    assert changed_rules(own, changes) == {"episodic": {"capacity": 3, "extend_after_uses": 2}}


@pytest.mark.parametrize(
    "rules",
    [
        {"episodic": {"ttl_seconds": -1}},
        {"episodic": {"ttl_seconds": 1.5}},
        {"short": {"capacity": 1}},
        {"episodic": {"size": 1}},
        {},
    ],
)
def test_rules_that_cannot_be_are_refused(rules: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="layers"):
        ConfigureParams.model_validate({"layers": rules})


async def test_flushes_at_the_same_time_count_everything_and_never_deadlock(ruled: Runtime) -> None:
    agent = Agent(ruled)
    ids = await fill(agent, 20)
    parts = ruled.parts
    usages = [dict.fromkeys(ids, 3), dict.fromkeys(reversed(ids), 3)]

    async def flush(counts: dict[UUID, int]) -> None:
        async with parts.storage.transaction(agent.agent_id) as transaction:
            moments = dict.fromkeys(counts, parts.clock())
            await transaction.life.count_accesses(counts, moments, parts.extend_after_uses)

    await asyncio.gather(*(flush(counts) for counts in usages * 3))
    assert {(await agent.get(each)).access_count for each in ids} == {18}


async def test_what_will_be_gone_sooner_takes_no_place(ruled: Runtime) -> None:
    agent = Agent(ruled)
    lasting = await agent.stored_id("The wifi password is heron-1.", memory_type="semantic")
    await agent.stored_id("The wifi password is zebra-2 now.")
    assert (await agent.get(lasting)).superseded_by is None


async def test_a_memory_that_is_renewed_lives_its_time_anew_and_keeps_its_version_and_history(agent: Agent) -> None:
    memory_id = await agent.stored_id("The code of the gate is 4711.", ttl_seconds=10 * DAY, task_id="gate")
    await age(agent, memory_id, 4)
    assert await renew(agent, memory_id) == 1
    assert await lives(agent, memory_id) == pytest.approx(10, abs=0.01)
    assert (await agent.memory.history(HistoryParams(memory_id=memory_id))).changes == []
    await age(agent, memory_id, 0.4)
    await renew(agent, memory_id)
    assert await lives(agent, memory_id) == pytest.approx(9.6, abs=0.01), "too early to be worth a write"


async def test_a_renewal_gives_no_time_to_live_and_brings_nothing_back(agent: Agent) -> None:
    lasting = await agent.stored_id("The kiln is hot.")
    assert await renew(agent, lasting) == 1
    assert await lives(agent, lasting) is None
    over = await agent.stored_id("The code of the gate is 4711.", ttl_seconds=DAY)
    await age(agent, over, 2)
    with pytest.raises(NotFound):
        await renew(agent, over)
