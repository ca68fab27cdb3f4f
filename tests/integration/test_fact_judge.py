"""The fact judge against a scripted chat endpoint: it vetoes or confirms supersessions of the rules."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from uuid import UUID

import pytest

from agentcore import assembly
from agentcore.errors import DependencyUnavailable
from agentcore.memory.llm import LlmOptions
from agentcore.memory.llm_limits import CROWDED
from agentcore.memory.params.memories import CapabilitiesParams, StoreBatchParams, StoreParams
from agentcore.memory.statements.statements import RuleInput
from agentcore.providers.openai_models import OpenAiFactJudge, load_prompt
from agentcore.runtime import open_runtime
from tests.fixtures.chat_model import ChatModel, Document, Talking, answered, talking
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.rerank_providers import chat_answer
from tests.fixtures.scripted_http import Reply, scripted_http
from tests.fixtures.services import Services

OLD, NEW = "The owner of Atlas is Priya.", "The owner of Atlas is Tomas now."
# The same attribute, but it may have several values: no rule supersedes.
ONE, OTHER = "I live in Bristol.", "I live in Cardiff."
THINGS = ("Atlas", "Boreas", "Castor", "Deneb")


@asynccontextmanager
async def judged_by(services: Services, url: str) -> AsyncIterator[Agent]:
    """An agent of a service whose language model is at this address."""
    async with open_runtime(settings_for(services, llm_model="small", llm_base_url=url)) as running:
        yield Agent(running)


@pytest.mark.parametrize(
    ("verdict", "old", "new", "superseded"),
    [
        ("SUPERSEDE", OLD, NEW, True),
        ("ADD", OLD, NEW, False),
        ("UPDATE", OLD, NEW, False),
        ("NOOP", OLD, NEW, False),
        ("SUPERSEDE", ONE, OTHER, True),
        ("ADD", ONE, OTHER, False),
    ],
)
@pytest.mark.shows("issue4-2-model")
async def test_its_verdict_decides_what_the_rules_let_through(
    services: Services, verdict: str, old: str, new: str, superseded: bool
) -> None:
    async with (
        scripted_http(lambda request: chat_answer({"verdict": verdict})) as server,
        judged_by(services, server.url) as agent,
    ):
        old_id = await agent.stored_id(old)
        result = await agent.store(new)
        assert (result.superseded == [old_id]) is superseded
        assert (await agent.get(old_id)).content == old
        (request,) = server.received
    system, user = request.json["messages"]
    assert system == {"role": "system", "content": load_prompt("fact_judge").text}
    assert [json.loads(user["content"])[side]["text"] for side in ("old", "new")] == [old, new]


@pytest.mark.parametrize(("options", "sent"), [(None, "Bearer none"), ('{"api_key": "own"}', "Bearer own")])
@pytest.mark.shows("issue5-3-key")
async def test_another_vendor_gets_its_own_key_and_never_that_of_openai(
    services: Services, options: str | None, sent: str
) -> None:
    async with scripted_http(lambda request: chat_answer({"verdict": "ADD"})) as server:
        settings = settings_for(
            services, llm_model="small", llm_base_url=server.url, openai_api_key="very-secret", llm_options=options
        )
        async with open_runtime(settings) as running:
            agent = Agent(running)
            await agent.stored_id(OLD)
            await agent.store(NEW)
    assert [request.headers["authorization"] for request in server.received] == [sent]


@pytest.mark.shows("issue5-3-features")
async def test_what_a_language_model_does_is_among_the_features(services: Services) -> None:
    by_model = {"model_facts", "model_summaries", "model_judge"}
    async with judged_by(services, "http://127.0.0.1:9") as agent:
        assert by_model <= {*(await agent.memory.capabilities(CapabilitiesParams())).features}
    async with open_runtime(settings_for(services)) as plain:
        features = {*(await Agent(plain).memory.capabilities(CapabilitiesParams())).features}
    assert (by_model & features, "session_summaries" in features) == (set(), True)


async def test_it_is_not_asked_about_what_no_rule_lets_through(services: Services) -> None:
    async with (
        scripted_http(lambda request: chat_answer({"verdict": "SUPERSEDE"})) as server,
        judged_by(services, server.url) as agent,
    ):
        for content in (OLD, "Is the owner of Atlas Tomas now?", "The owner of Borealis is Tomas now."):
            assert (await agent.store(content, session_id="s")).superseded == []
        assert server.received == []


@pytest.mark.shows("issue4-2-model")
async def test_without_its_answer_the_rules_decide(services: Services) -> None:
    async with scripted_http(lambda request: Reply(status=500)) as server, judged_by(services, server.url) as agent:
        old_id = await agent.stored_id(OLD)
        result = await agent.store(NEW)
        assert result.superseded == [old_id]
        assert result.receipt is not None
        assert any(part.startswith("fact judge: skipped") for part in result.receipt.degraded)


async def owners(talk: Talking) -> tuple[Agent, list[UUID]]:
    """An agent with the owners of four things."""
    agent = talk.agent()
    items = [StoreParams(content=f"The owner of {each} is Priya.") for each in THINGS]
    stored = await agent.memory.store_batch(StoreBatchParams(items=items))
    return agent, [each.memory_id for each in stored.results if each.memory_id is not None]


NEW_OWNERS = StoreBatchParams(items=[StoreParams(content=f"The owner of {each} is Tomas now.") for each in THINGS])


@pytest.mark.shows("issue5-3-limits")
async def test_pairs_of_one_store_are_asked_side_by_side(services: Services) -> None:
    all_asked = asyncio.Event()

    def together(document: Document) -> Reply:
        if len(model.asked) == len(THINGS):
            all_asked.set()
        return Reply(answered({"verdict": "SUPERSEDE"}).body, waits_for=all_asked)

    model = ChatModel()
    model.answers["fact_judge"] = together
    async with talking(services, model) as talk:
        agent, old = await owners(talk)
        # Sequential calls would deadlock: the first answer is sent after the last request.
        stored = await agent.memory.store_batch(NEW_OWNERS)
    assert [each.superseded for each in stored.results] == [[each] for each in old]
    assert stored.receipt.degraded == []


@pytest.mark.shows("issue5-3-limits")
async def test_what_is_not_judged_in_time_the_rules_decide_and_what_is_stays_judged(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, "JUDGING_SECONDS", 3.0)
    model = ChatModel()
    model.answers["fact_judge"] = lambda document: (
        {"verdict": "ADD"} if "Atlas" in document["new"]["text"] else Reply(hangs=True)
    )
    async with talking(services, model) as talk:
        agent, old = await owners(talk)
        began = time.monotonic()
        stored = await agent.memory.store_batch(NEW_OWNERS)
        # One timeout for all calls; sequentially they would take three times as long.
        assert 3.0 <= time.monotonic() - began < 9.0
        assert [each.superseded for each in stored.results] == [[], *([each] for each in old[1:])]
        [said] = stored.receipt.degraded
        assert said == "fact judge: skipped, openai/small did not answer within 3 seconds."
        again = await agent.store("The owner of Deneb is Quentin now.")
        assert again.receipt is not None
        assert again.receipt.degraded == [
            "fact judge: skipped, openai/small is left alone for a while: it was too slow."
        ]
    assert len(model.asked) == len(THINGS)


@pytest.mark.shows("issue5-3-limits")
async def test_a_judge_without_room_is_not_taken_for_a_slow_one(services: Services) -> None:
    """With a concurrency of one, background work uses the only slot; the next store is judged again."""
    model, release, begun = ChatModel(), asyncio.Event(), asyncio.Event()

    def slow(document: Document) -> Reply:
        begun.set()
        return Reply(answered({"memories": []}).body, waits_for=release)

    model.answers["fact_extraction"] = slow
    async with talking(services, model, concurrency=1, extract_facts=True) as talk:
        agent = talk.agent()
        await agent.stored_id("I moved from Bristol to Ghent in 2021, and my sister Maren Holt helped me.")
        old_id = await agent.stored_id(OLD)
        working = asyncio.create_task(talk.work())
        try:
            await asyncio.wait_for(begun.wait(), 20.0)
            result = await agent.store(NEW)
        finally:
            release.set()
            await working
        assert (result.superseded, model.documents("fact_judge")) == ([old_id], [])
        assert result.receipt is not None
        assert result.receipt.degraded == [f"fact judge: skipped, {CROWDED}"]
        again = await agent.store("The owner of Atlas is Quentin now.")
        assert again.receipt is not None
        assert (again.receipt.degraded, len(model.documents("fact_judge"))) == ([], 1)


@pytest.mark.parametrize("said", [{"verdict": "DELETE"}, {"answer": "SUPERSEDE"}, "no idea"])
async def test_an_answer_that_is_no_verdict_is_refused(said: dict[str, str] | str) -> None:
    async with scripted_http(lambda request: chat_answer(said)) as server:
        judge = OpenAiFactJudge(LlmOptions(model_name="small", base_url=server.url))
        await judge.open()
        told = RuleInput(OLD, datetime(2026, 3, 2, tzinfo=UTC))
        try:
            with pytest.raises(DependencyUnavailable):
                await judge.judge(told, told, agent_id="a")
        finally:
            await judge.close()
