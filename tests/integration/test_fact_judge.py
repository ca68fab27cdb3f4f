"""The judge of facts against a scripted chat endpoint: it vetoes and confirms what the rules let through."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from agentcore.errors import DependencyUnavailable
from agentcore.memory.llm import LlmOptions
from agentcore.memory.statements import Told
from agentcore.providers.openai_fact_judge import OpenAiFactJudge
from agentcore.providers.prompts import load_prompt
from agentcore.runtime import open_runtime
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.rerank_providers import chat_answer
from tests.fixtures.scripted_http import Reply, scripted_http
from tests.fixtures.services import Services

OLD, NEW = "The owner of Atlas is Priya.", "The owner of Atlas is Tomas now."
# Of one attribute, but a person may have two of them: no rule takes a place.
ONE, OTHER = "I live in Bristol.", "I live in Cardiff."


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


async def test_it_is_not_asked_about_what_no_rule_lets_through(services: Services) -> None:
    async with (
        scripted_http(lambda request: chat_answer({"verdict": "SUPERSEDE"})) as server,
        judged_by(services, server.url) as agent,
    ):
        for content in (OLD, "Is the owner of Atlas Tomas now?", "The owner of Borealis is Tomas now."):
            assert (await agent.store(content, session_id="s")).superseded == []
        assert server.received == []


async def test_without_its_answer_the_rules_decide(services: Services) -> None:
    async with (
        scripted_http(lambda request: Reply(status=500)) as server,
        judged_by(services, server.url) as agent,
    ):
        old_id = await agent.stored_id(OLD)
        result = await agent.store(NEW)
        assert result.superseded == [old_id]
        assert result.receipt is not None
        assert any(part.startswith("fact judge: skipped") for part in result.receipt.degraded)


@pytest.mark.parametrize("said", [{"verdict": "DELETE"}, {"answer": "SUPERSEDE"}, "no idea"])
async def test_an_answer_that_is_no_verdict_is_refused(said: dict[str, str] | str) -> None:
    async with scripted_http(lambda request: chat_answer(said)) as server:
        judge = OpenAiFactJudge(LlmOptions(model_name="small", base_url=server.url))
        await judge.open()
        told = Told(OLD, datetime(2026, 3, 2, tzinfo=UTC))
        try:
            with pytest.raises(DependencyUnavailable):
                await judge.judge(told, told, agent_id="a")
        finally:
            await judge.close()
