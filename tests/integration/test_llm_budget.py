"""The budget of language models: reserved before each request and never exceeded under concurrency."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from agentcore.errors import DependencyUnavailable
from agentcore.memory.llm import LlmOptions
from agentcore.memory.llm_limits import FORM_TOKENS, LlmMeter
from agentcore.memory.params.agent_settings import LlmUse, SettingsParams
from agentcore.memory.params.memories import RetrieveParams
from agentcore.memory.storage import MemoryStorage
from agentcore.providers.openai_models import OpenAiRewriter
from agentcore.runtime import Runtime, open_runtime
from agentcore.structured_settings import LlmUseOptions
from agentcore.telemetry import Metrics
from tests.fixtures.chat_model import ChatModel, answered, talking
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.scripted_http import Reply, dead_address, scripted_http
from tests.fixtures.services import Services

OLD, NEW = "The owner of Atlas is Priya.", "The owner of Atlas is Tomas now."
# The reservation of a text without tokens: the message format plus the answer.
ONE = FORM_TOKENS + 36


def meter(runtime: Runtime, **options: Any) -> LlmMeter:
    parts = runtime.parts
    return LlmMeter(parts.storage, LlmUseOptions(**options), parts.count_tokens, parts.metrics)


async def use(agent: Agent) -> LlmUse:
    return (await agent.memory.settings(SettingsParams())).llm_use


async def ask(of: LlmMeter, agent: Agent, spent: tuple[int, int] | None = None, *, free: bool = False) -> None:
    async with of.request(agent.agent_id, "judge", "", 36, urgent=True) as bill:
        if spent is not None:
            bill.spent(*spent)
        if free:
            bill.free()


@pytest.mark.shows("issue5-3-budget")
async def test_a_budget_is_held_to_the_token_however_many_ask_at_once(runtime: Runtime, agent: Agent) -> None:
    of = meter(runtime, tokens_a_day=7 * ONE + 5, concurrency=20)
    asked = await asyncio.gather(*(ask(of, agent) for _ in range(20)), return_exceptions=True)
    refused = [each for each in asked if isinstance(each, DependencyUnavailable)]
    assert (len(refused), {each.message for each in refused}) == (
        13,
        {"The budget of this agent for language models is used up for today."},
    )
    used = await use(agent)
    assert (used.requests, used.refused, used.tokens) == (7, 13, 7 * ONE)


@pytest.mark.shows("issue5-3-budget")
async def test_several_processes_share_one_budget_and_it_outlasts_them(
    services: Services, runtime: Runtime, agent: Agent
) -> None:
    async with open_runtime(settings_for(services)) as other:
        meters = [meter(each, tokens_a_day=6 * ONE, concurrency=5) for each in (runtime, other)]
        asked = await asyncio.gather(*(ask(of, agent) for of in meters * 5), return_exceptions=True)
    assert sum(each is None for each in asked) == 6
    async with open_runtime(settings_for(services)) as third:
        with pytest.raises(DependencyUnavailable, match="used up for today"):
            await ask(meter(third, tokens_a_day=6 * ONE), agent)
    with pytest.raises(DependencyUnavailable, match="used up for today"):
        await ask(meter(runtime, tokens_a_day=6 * ONE), agent)


async def test_what_a_request_took_less_is_free_again_and_what_it_took_more_is_charged(
    runtime: Runtime, agent: Agent
) -> None:
    of = meter(runtime, tokens_a_day=2 * ONE)
    await ask(of, agent, (10, 2))
    assert (await use(agent)).tokens == 12
    await ask(of, agent, free=True)
    assert (await use(agent)).tokens == 12
    await ask(of, agent, (ONE, ONE))
    assert (await use(agent)).tokens == 12 + 2 * ONE
    with pytest.raises(DependencyUnavailable):
        await ask(of, agent)


@pytest.mark.parametrize("told", [(-5, -5), (10**30, 10**30)])
async def test_a_count_that_cannot_be_believed_does_no_harm(
    runtime: Runtime, agent: Agent, told: tuple[int, int]
) -> None:
    await ask(meter(runtime), agent, told)
    assert 0 <= (await use(agent)).tokens <= 2 * 10**9


async def test_without_a_word_of_its_cost_a_request_keeps_what_was_reserved(runtime: Runtime, agent: Agent) -> None:
    of = meter(runtime)
    with pytest.raises(ZeroDivisionError):
        async with of.request(agent.agent_id, "judge", "", 36, urgent=True):
            raise ZeroDivisionError
    assert (await use(agent)).tokens == ONE


@pytest.mark.shows("issue5-3-budget")
async def test_a_budget_in_money_is_held_by_the_prices(runtime: Runtime, agent: Agent) -> None:
    prices = {"input_price": "2.5", "output_price": "10"}
    cost = (FORM_TOKENS * 2.5 + 36 * 10) / 1_000_000
    of = meter(runtime, tokens_a_day=0, cost_a_day=f"{2.5 * cost:.7f}", **prices)
    for _ in range(2):
        await ask(of, agent)
    with pytest.raises(DependencyUnavailable, match="used up for today"):
        await ask(of, agent)
    used = await use(agent)
    assert used.cost == pytest.approx(2 * cost)


async def test_each_agent_has_its_own_budget(runtime: Runtime, agent: Agent) -> None:
    of = meter(runtime, tokens_a_day=ONE)
    await ask(of, agent)
    await ask(of, Agent(runtime))
    with pytest.raises(DependencyUnavailable):
        await ask(of, agent)


async def test_a_new_day_begins_a_new_account_and_old_ones_go(runtime: Runtime, agent: Agent) -> None:
    of = meter(runtime, tokens_a_day=ONE)
    await ask(of, agent)
    for days in (1, 100):
        async with runtime.database.owner_transaction() as connection:
            await connection.execute("UPDATE llm_usage SET day = day - %s WHERE agent_id = %s", (days, agent.agent_id))
        await ask(of, agent)
    done = await runtime.maintenance.round()
    assert done["sweep accounts"] >= 1
    async with runtime.database.owner_transaction() as connection:
        cursor = await connection.execute("SELECT FROM llm_usage WHERE agent_id = %s", (agent.agent_id,))
        assert len(await cursor.fetchall()) == 1


@pytest.mark.shows("issue5-3-limits")
async def test_no_more_requests_than_allowed_run_at_once_and_the_background_leaves_room(
    runtime: Runtime, agent: Agent
) -> None:
    of, running, release = meter(runtime, concurrency=3), [0, 0], asyncio.Event()
    full = asyncio.Event()

    async def work(*, urgent: bool) -> None:
        async with of.request(agent.agent_id, "judge", "", 1, urgent=urgent):
            running[urgent] += 1
            if sum(running) == 3:
                full.set()
            await release.wait()

    background = [asyncio.create_task(work(urgent=False)) for _ in range(6)]
    waited_for = asyncio.create_task(work(urgent=True))
    await asyncio.wait_for(full.wait(), 10.0)
    assert running == [2, 1]
    release.set()
    await asyncio.gather(waited_for, *background)
    assert running == [6, 1]


@pytest.mark.parametrize("kept", ["room", "account"])
@pytest.mark.shows("issue5-3-limits")
async def test_whoever_waits_for_an_answer_does_not_wait_for_room_or_an_account_for_long(
    runtime: Runtime, agent: Agent, kept: str
) -> None:
    class Slow(MemoryStorage):
        @asynccontextmanager
        async def transaction(self, agent_id: str, *, record_lsn: bool = True) -> AsyncIterator[Any]:
            if kept == "account":
                await asyncio.Event().wait()
            async with super().transaction(agent_id, record_lsn=record_lsn) as transaction:
                yield transaction

    metrics, parts = Metrics(), runtime.parts
    of = LlmMeter(Slow(runtime.database), LlmUseOptions(concurrency=1), parts.count_tokens, metrics)
    async with AsyncExitStack() as before:
        if kept == "room":
            await before.enter_async_context(of.request(agent.agent_id, "judge", "", 1, urgent=False))
        with pytest.raises(DependencyUnavailable, match="no room for another request") as refused:
            await asyncio.wait_for(ask(of, agent), 10.0)
    assert refused.value.data == {"crowded": True}
    assert 'agentcore_llm_requests_total{outcome="crowded",work="judge"} 1.0' in metrics.exposition().decode()


async def test_whoever_has_the_answer_does_not_wait_for_the_account_for_long(runtime: Runtime, agent: Agent) -> None:
    class Stuck(MemoryStorage):
        stuck = False

        @asynccontextmanager
        async def transaction(self, agent_id: str, *, record_lsn: bool = True) -> AsyncIterator[Any]:
            if self.stuck:
                await asyncio.Event().wait()
            async with super().transaction(agent_id, record_lsn=record_lsn) as transaction:
                yield transaction
            self.stuck = True

    of = LlmMeter(Stuck(runtime.database), LlmUseOptions(), len)
    await asyncio.wait_for(ask(of, agent, (1, 1)), 10.0)
    assert (await use(agent)).tokens == ONE


async def test_an_account_that_cannot_be_read_lets_nothing_through(runtime: Runtime, agent: Agent) -> None:
    class Away(MemoryStorage):
        @asynccontextmanager
        async def transaction(self, agent_id: str, *, record_lsn: bool = True) -> AsyncIterator[Any]:
            raise DependencyUnavailable("PostgreSQL does not answer.")
            yield

    of = LlmMeter(Away(runtime.database), LlmUseOptions(), len)
    with pytest.raises(DependencyUnavailable, match="PostgreSQL"):
        await ask(of, agent)


async def test_a_cost_that_cannot_be_put_right_stays_as_it_was_reserved(runtime: Runtime, agent: Agent) -> None:
    class Leaving(MemoryStorage):
        left = False

        @asynccontextmanager
        async def transaction(self, agent_id: str, *, record_lsn: bool = True) -> AsyncIterator[Any]:
            if self.left:
                raise DependencyUnavailable("PostgreSQL does not answer.")
            async with super().transaction(agent_id, record_lsn=record_lsn) as transaction:
                yield transaction
            self.left = True

    await ask(LlmMeter(Leaving(runtime.database), LlmUseOptions(), len), agent, (1, 1))
    assert (await use(agent)).tokens == ONE


@pytest.mark.shows("issue5-3-budget")
async def test_what_it_cost_stands_in_the_metrics(runtime: Runtime, agent: Agent) -> None:
    metrics = Metrics()
    parts = runtime.parts
    options = LlmUseOptions(tokens_a_day=2 * ONE, input_price=1_000_000)
    of = LlmMeter(parts.storage, options, parts.count_tokens, metrics)
    await ask(of, agent, (3, 2))
    await ask(of, agent, (2 * ONE, 0))
    with pytest.raises(DependencyUnavailable):
        await ask(of, agent)
    told = metrics.exposition().decode()
    for line in (
        'agentcore_llm_requests_total{outcome="answered",work="judge"} 2.0',
        'agentcore_llm_requests_total{outcome="refused",work="judge"} 1.0',
        f'agentcore_llm_tokens_total{{direction="input",work="judge"}} {3.0 + 2 * ONE}',
        'agentcore_llm_tokens_total{direction="output",work="judge"} 2.0',
        f'agentcore_llm_cost_total{{work="judge"}} {3.0 + 2 * ONE}',
    ):
        assert line in told


# --- through the service -----------------------------------------------------------------------------------


@pytest.mark.shows("issue5-3-budget")
async def test_a_store_beyond_the_budget_goes_by_the_rules_alone(services: Services) -> None:
    model = ChatModel()
    model.answers["fact_judge"] = lambda document: {"verdict": "ADD"}
    async with talking(services, model, tokens_a_day=10) as talk:
        agent = talk.agent()
        old = await agent.stored_id(OLD)
        result = await agent.store(NEW)
        # The rules alone decide; the model, which would veto, is not called.
        assert result.superseded == [old]
        assert result.receipt is not None
        assert result.receipt.degraded == [
            "fact judge: skipped, The budget of this agent for language models is used up for today."
        ]
        assert model.asked == []
        assert (await use(agent)).refused == 1


async def test_the_budget_of_one_agent_says_nothing_of_the_model(services: Services) -> None:
    """Another agent is served at once: an agent over budget opens no circuit and leaves the service ready."""
    async with scripted_http(ChatModel().reply) as server:
        settings = settings_for(
            services,
            llm_model="small",
            llm_base_url=server.url,
            query_rewriter="openai",
            llm_options='{"tokens_a_day": 3000}',
        )
        async with open_runtime(settings) as runtime:
            agent, other = Agent(runtime), Agent(runtime)
            await agent.stored_id(OLD)
            await other.stored_id(OLD)
            async with runtime.parts.storage.transaction(agent.agent_id) as transaction:
                await transaction.llm.reserve(2_999, 0, most_tokens=0, most_micros=0)  # type: ignore[arg-type]
            params = RetrieveParams(query="Who owns Atlas nowadays?")
            degraded = (await agent.memory.retrieve(params)).receipt.degraded
            assert any("query rewriting: skipped, The budget" in each for each in degraded)
            assert (await runtime.readiness())["query_rewriter"]["ok"]
            assert (await other.memory.retrieve(params)).receipt.degraded == []


async def test_what_the_answer_says_it_took_is_what_is_charged(services: Services) -> None:
    async with talking(services) as talk:
        agent = talk.agent()
        await agent.stored_id(OLD)
        await agent.store(NEW)
        assert (await use(agent)).tokens == 120
        # Both owners are current, so two pairs are judged.
        talk.model.answers["fact_judge"] = lambda document: Reply(status=500)
        await agent.store("The owner of Atlas is Quentin now.")
        assert ((await use(agent)).tokens, (await use(agent)).requests) == (120, 3)
        talk.model.answers["fact_judge"] = lambda document: answered("no JSON at all")
        await agent.store("The owner of Atlas is Rosa now.")
        assert (await use(agent)).tokens == 240


async def test_a_request_that_reaches_no_server_costs_nothing(runtime: Runtime, agent: Agent) -> None:
    async with dead_address() as url:
        rewriter = OpenAiRewriter(LlmOptions("small", base_url=url, meter=meter(runtime)))
        await rewriter.open()
        with pytest.raises(DependencyUnavailable, match="cannot be reached"):
            await rewriter.rewrite("and then?", [], agent_id=agent.agent_id)
        await rewriter.close()
    used = await use(agent)
    assert (used.requests, used.tokens) == (1, 0)


async def test_a_request_whose_connection_broke_keeps_what_was_reserved(services: Services) -> None:
    """The server may have processed it."""
    async with talking(services) as talk:
        agent = talk.agent()
        await agent.stored_id(OLD)
        talk.model.answers["fact_judge"] = lambda document: Reply(closes=True)
        await agent.store(NEW)
        assert (await use(agent)).tokens > 0
