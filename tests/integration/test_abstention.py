"""Abstention with the local model: unrelated prompts find no memory, and no answer is lost."""

from __future__ import annotations

import pytest

from agentcore.memory.params.memories import GetContextParams, RetrieveParams
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent

MESSAGES = (
    "The nightly deploy failed with ERR-4711 again, Tom restarted the runner.",
    "Oma's number is 0170 5551234",
    "Ada prefers green tea over coffee in the morning.",
    "Seit Mai wohnt meine Schwester in Kassel.",
    "Standup is at 9:15 in room Kepler",
)
OFF_TOPIC = (
    "What is the capital of Mongolia?",
    "Write a short poem about the sea",
    "Was ist 17 mal 24?",
    "\u00bfCu\u00e1ntos lados tiene un hex\u00e1gono?",
    "Explain how a heat pump works",
    "thanks!",
    "Danke!",
    "hello there",
    "git status",
)
ANSWERED = {
    "ERR-4711": 0,
    "what is grandma's phone number?": 1,
    "Which drink does Ada like?": 2,
    "Where does my sister live now?": 3,
    "Kepler": 4,
}


@pytest.fixture
async def agent(local_runtime: Runtime) -> Agent:
    filled = Agent(local_runtime)
    for text in MESSAGES:
        await filled.stored_id(text)
    return filled


async def test_prompts_about_other_subjects_find_nothing_unless_asked_to(agent: Agent) -> None:
    for prompt in OFF_TOPIC:
        found = await agent.memory.retrieve(RetrieveParams(query=prompt))
        assert [each.content for each in found.memories] == [], prompt
        assert found.receipt.dropped[0].reason == "nothing_fits"
        built = await agent.memory.get_context(GetContextParams(query=prompt, max_tokens=300))
        assert built.memory_ids == [], prompt
        assert await agent.found(prompt, min_fit=0), prompt


async def test_a_query_for_a_time_alone_finds_the_memories_of_that_time(agent: Agent) -> None:
    assert await agent.found("What happened today?")
    assert await agent.found("What happened in 2019?") == []


async def test_a_context_of_a_task_does_not_abstain(agent: Agent) -> None:
    for prompt in OFF_TOPIC:
        built = await agent.memory.get_context(GetContextParams(query=prompt, task_id="t", max_tokens=300))
        assert len(built.memory_ids) == len(MESSAGES), prompt


async def test_questions_codes_and_names_are_answered(agent: Agent) -> None:
    found = {query: (await agent.found(query))[:1] for query in ANSWERED}
    assert found == {query: [MESSAGES[at]] for query, at in ANSWERED.items()}


async def test_memories_that_are_not_embedded_yet_are_found_by_words(agent: Agent) -> None:
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute("UPDATE memories SET embedding = NULL, embedding_model = NULL")
    assert await agent.found("Kepler") == [MESSAGES[4]]
