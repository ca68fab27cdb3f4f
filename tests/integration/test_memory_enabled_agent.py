"""`MemoryEnabledAgent` over a real memory: retrieval, storing, and errors of a turn."""

from __future__ import annotations

import asyncio
import logging
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from agentcore.agents.memory_enabled_agent import MemoryEnabledAgent
from agentcore.agents.open_memory import open_memory
from agentcore.agents.scope import AgentSettings, MemoryScope
from agentcore.agents.tools import USUAL_TOOLS
from agentcore.client import MemoryClient
from agentcore.errors import AuthenticationFailed
from agentcore.memory.api import MemoryApi
from agentcore.memory.contexts.fencing import CLOSING, OPENING
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.memories import CountParams, GetContextParams, GetContextResult, ListParams
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent
from tests.fixtures.memory_faces import listening, token_of

HAWAII = "My budget for the Hawaii trip is 10,000 dollars."
QUESTION = "What is my budget for the Hawaii trip?"
FORBIDDEN = ["psycopg", "redis", "onnxruntime", "openai", "mcp", "a2a", "google.adk", "langgraph", "agents"]


class Scripted(MemoryEnabledAgent):
    """Answers with the result of `say` on its prompt."""

    def __init__(
        self,
        memory: MemoryApi,
        settings: AgentSettings | None = None,
        *,
        say: Callable[[str], str] = lambda prompt: "Noted.",
    ) -> None:
        super().__init__(memory, settings)
        self.say = say
        self.prompts: list[str] = []

    async def process_query(self, query: str, task_id: str) -> str:
        self.prompts.append(self.prompt(query))
        return self.say(self.prompts[-1])


class Model:
    """Replaces the LLM of the seed's example."""

    async def generate(self, prompt: str) -> str:
        return "10,000 dollars." if "10,000" in prompt else "I do not know."


class ByItself(MemoryEnabledAgent):
    """The specification's example, verbatim."""

    llm = Model()

    async def process_query(self, query: str, task_id: str) -> str:
        context = await self.memory.get_relevant_context(query, task_id)
        response = await self.llm.generate(f"Context:\n{context}\n\nQuery: {query}")
        await self._store_interaction(query, response, task_id)
        return response


class Watched:
    """Delegates to a memory and records the parameters of searches."""

    def __init__(self, memory: MemoryApi) -> None:
        self._memory = memory
        self.searches: list[GetContextParams] = []

    async def get_context(self, params: GetContextParams) -> GetContextResult:
        self.searches.append(params)
        return await self._memory.get_context(params)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)


async def records(agent: Agent) -> list[MemoryRecord]:
    """Returns all memories, oldest first."""
    return (await agent.memory.list(ListParams(descending=False))).memories


@pytest.mark.shows("issue6-2-agent")
async def test_what_one_conversation_was_told_the_next_one_knows(agent: Agent) -> None:
    await Scripted(agent.memory).run(HAWAII)
    later = Scripted(agent.memory, say=lambda prompt: "10,000." if "10,000" in prompt else "?")
    assert await later.run(QUESTION) == "10,000."
    assert later.prompts[0].startswith(f"{OPENING}\n")
    assert later.prompts[0].endswith(f"{CLOSING}\n\n{QUESTION}")


async def test_a_turn_is_stored_with_its_answer_its_task_and_its_conversation(agent: Agent) -> None:
    scripted = Scripted(agent.memory)
    turn = await scripted.run_turn(HAWAII, "trip")
    [record] = await records(agent)
    assert record.memory_id == turn.memory_id
    assert HAWAII in record.content
    assert "Noted." in record.content
    assert (record.task_id, record.session_id) == ("trip", scripted.session_id)


@pytest.mark.parametrize("driven", [True, False])
@pytest.mark.shows("Feature-8")
async def test_the_example_of_the_specification_stores_once(agent: Agent, driven: bool) -> None:
    await agent.store(HAWAII)
    own = ByItself(agent.memory)
    answer = await (own.run(QUESTION, "trip") if driven else own.process_query(QUESTION, "trip"))
    assert answer == "10,000 dollars."
    [_, record] = await records(agent)
    assert QUESTION in record.content
    assert "10,000 dollars." in record.content


@pytest.mark.shows("issue6-2-agent")
async def test_a_turn_is_stored_under_one_key(agent: Agent) -> None:
    class Twice(ByItself):
        async def process_query(self, query: str, task_id: str) -> str:
            response = await super().process_query(query, task_id)
            await self._store_interaction(query, response, task_id)
            await self._store_interaction("Was the key turned?", "Twice.", task_id)
            return response

    await Twice(agent.memory).run(QUESTION, "trip")
    assert [record.content.splitlines()[0] for record in await records(agent)] == [
        f"User: {QUESTION}",
        "User: Was the key turned?",
    ]


async def test_a_turns_own_context_is_searched_for_once(agent: Agent) -> None:
    watched = Watched(agent.memory)
    await ByItself(watched).run(QUESTION, "trip")  # type: ignore[arg-type]
    assert len(watched.searches) == 1


@pytest.mark.shows("issue6-2-agent")
async def test_a_call_may_go_without_looking_or_without_storing(agent: Agent) -> None:
    await agent.store(HAWAII)
    for own in (Scripted(agent.memory), ByItself(agent.memory)):
        turn = await own.run_turn(QUESTION, recall=False, remember=False)
        assert turn.context is None
    assert len(await records(agent)) == 1
    silent = Scripted(agent.memory, AgentSettings(recall=False, remember=False))
    await silent.run(QUESTION)
    assert silent.prompts == [QUESTION]
    assert len(await records(agent)) == 1
    await silent.run(QUESTION, recall=True, remember=True)
    assert HAWAII in silent.prompts[-1]
    assert len(await records(agent)) == 2


@pytest.mark.shows("issue6-2-agent")
async def test_an_error_is_stored_as_the_outcome_and_raised(agent: Agent) -> None:
    def fail(prompt: str) -> str:
        raise LookupError("the flight service knows no such airport")

    with pytest.raises(LookupError, match="no such airport"):
        await Scripted(agent.memory, say=fail).run("Book the flight to Lihue.")
    [record] = await records(agent)
    assert record.outcome == "failed: LookupError: the flight service knows no such airport"
    with pytest.raises(LookupError):
        await Scripted(agent.memory, AgentSettings(remember_errors=False), say=fail).run("Again.")
    assert len(await records(agent)) == 1


async def test_actions_and_outcome_are_stored_with_the_turn(agent: Agent) -> None:
    class Booking(Scripted):
        async def process_query(self, query: str, task_id: str) -> str:
            self.record_action({"tool": "flights", "to": "LIH"})
            self.record_action("paid by card")
            self.record_outcome("booked")
            return "Booked."

    await Booking(agent.memory).run("Book the flight to Lihue.")
    [record] = await records(agent)
    assert record.actions == [{"tool": "flights", "to": "LIH"}, "paid by card"]
    assert record.outcome == "booked"
    with pytest.raises(RuntimeError, match="no turn is running"):
        Booking(agent.memory).record_outcome("booked")


@pytest.mark.shows("issue6-2-agent")
async def test_notes_of_a_task_come_first_and_end_with_it(agent: Agent) -> None:
    scripted = Scripted(agent.memory)
    await scripted.memory.note("The gate code is 4711.", "errand")
    await scripted.run("Which code opens the gate?", "errand")
    assert "Current Task Context" in scripted.prompts[0]
    assert "4711" in scripted.prompts[0]
    assert await scripted.memory.complete_task("errand") > 0
    await scripted.run("Shall we go?", "errand")
    assert "Current Task Context" not in scripted.prompts[1]


async def test_a_search_within_a_turn_is_the_agents_too(agent: Agent) -> None:
    class Searching(MemoryEnabledAgent):
        async def process_query(self, query: str, task_id: str) -> str:
            await self.memory.note("A note of this turn.", task_id)
            return " ".join(memory.content for memory in await self.memory.retrieve_memories(query, k=1))

    await agent.store(HAWAII, user_id="ada")
    searching = Searching(agent.memory, AgentSettings(scope=MemoryScope(user_id="ada"), remember=False))
    assert await searching.run(QUESTION) == HAWAII
    assert await searching.run(QUESTION, recall=False) == ""
    assert len(await records(agent)) == 1


async def test_what_was_said_before_goes_with_the_next_query(agent: Agent) -> None:
    watched = Watched(agent.memory)
    talking = Scripted(watched)  # type: ignore[arg-type]
    await talking.run("Let us plan the Hawaii trip.")
    await talking.run("Keep this between us.", remember=False)
    await talking.run("How much?")
    assert [[(turn.role, turn.content) for turn in search.history] for search in watched.searches] == [
        [],
        *[[("user", "Let us plan the Hawaii trip."), ("assistant", "Noted.")]] * 2,
    ]


async def test_settings_scope_and_label_what_an_agent_stores_and_finds(agent: Agent) -> None:
    ada, bob = (
        AgentSettings(scope=MemoryScope(user_id=user), tags=["trip"], importance=0.9) for user in ("ada", "bob")
    )
    await Scripted(agent.memory, ada).run(HAWAII)
    [record] = await records(agent)
    assert (record.user_id, record.tags, record.relevance_score) == ("ada", ["trip"], 0.9)
    stranger = Scripted(agent.memory, bob)
    await stranger.run(QUESTION)
    assert stranger.prompts == [QUESTION]


async def test_turns_at_the_same_time_keep_to_themselves(agent: Agent) -> None:
    both = asyncio.Barrier(2)

    class Slow(MemoryEnabledAgent):
        async def process_query(self, query: str, task_id: str) -> str:
            async with both:
                self.record_outcome(f"answered {query}")
            return query

    slow = Slow(agent.memory)
    queries = ["Where do the red kayaks lie?", "Who repairs the old tractor?"]
    assert await asyncio.gather(*(slow.run(query) for query in queries)) == queries
    assert {record.outcome for record in await records(agent)} == {f"answered {query}" for query in queries}


async def test_an_agent_called_within_anothers_turn_has_a_turn_of_its_own(
    agent: Agent, new_agent: Callable[..., Agent]
) -> None:
    other = new_agent()
    inner = ByItself(other.memory)

    class Outer(MemoryEnabledAgent):
        async def process_query(self, query: str, task_id: str) -> str:
            return await inner.process_query(query, task_id)

    await Outer(agent.memory).run(QUESTION, "trip")
    assert len(await records(agent)) == len(await records(other)) == 1


@pytest.mark.shows("issue6-2-agent", "NFR-4.3")
async def test_memory_that_cannot_be_reached_holds_no_turn_up(caplog: pytest.LogCaptureFixture) -> None:
    async with MemoryClient("http://127.0.0.1:9", "t.o.k", max_attempts=1) as nobody:
        turn = await ByItself(nobody).run_turn(QUESTION, "trip")
    assert (turn.response, turn.context, turn.memory_id, turn.memory_ids) == ("I do not know.", "", None, ())
    assert [problem.partition(":")[0] for problem in turn.problems] == ["recall", "store", "store"]
    assert [record.levelno for record in caplog.records if record.name == "agentcore.agents.memory_enabled_agent"] == [
        logging.WARNING
    ] * 3


@pytest.mark.shows("NFR-4.3")
async def test_memory_that_stays_silent_is_waited_for_no_longer_than_set_in_all_of_a_turn() -> None:
    settings = AgentSettings(timeout_seconds=2.0, template={"goal": "what the user is after"})
    with socket.create_server(("127.0.0.1", 0)) as unanswering:
        url = f"http://127.0.0.1:{unanswering.getsockname()[1]}"
        async with MemoryClient(url, "t.o.k") as silent:
            began = asyncio.get_running_loop().time()
            turn = await ByItself(silent, settings).run_turn(QUESTION, "trip")
            waited = asyncio.get_running_loop().time() - began
    assert turn.response == "I do not know."
    assert [problem.partition(": memory did not answer within ")[0] for problem in turn.problems] == [
        "recall",
        "template",
        "store",
        "store",
    ]
    assert waited < 1.5 * settings.timeout_seconds  # each call alone could use the whole timeout


async def test_a_refused_token_is_no_silence(runtime: Runtime) -> None:
    async with listening(runtime) as url, MemoryClient(url, "t.o.k") as forged:
        with pytest.raises(AuthenticationFailed):
            await Scripted(forged).run(QUESTION)


async def test_the_instructions_name_the_tools_the_agent_gives(agent: Agent) -> None:
    scripted = Scripted(agent.memory)
    names = [tool.name for tool in scripted.tools().definitions]
    assert names == list(USUAL_TOOLS)
    assert all(name in scripted.instructions for name in names)
    assert "never instructions" in scripted.instructions
    await scripted.tools().call("save_memory", {"content": HAWAII})
    [record] = await records(agent)
    assert record.session_id == scripted.session_id


@pytest.mark.shows("issue6-2-same-code")
async def test_the_same_agent_runs_on_a_service_and_in_its_own_process(runtime: Runtime, agent: Agent) -> None:
    await Scripted(agent.memory).run(HAWAII)
    async with listening(runtime) as url, open_memory(url=url, token=token_of(runtime, agent.agent_id)) as remote:
        assert await ByItself(remote).run(QUESTION) == "10,000 dollars."
    async with open_memory(agent_id=agent.agent_id, settings=runtime.settings) as embedded:
        assert await ByItself(embedded).run(QUESTION) == "10,000 dollars."
        assert (await embedded.count(CountParams())).count >= 2


def test_the_base_class_imports_neither_a_framework_nor_a_driver() -> None:
    code = (
        "import sys, agentcore.agents.memory_enabled_agent, agentcore.agents.openai_tools; "
        f"print([name for name in {FORBIDDEN!r} if name in sys.modules])"
    )
    said = subprocess.check_output([sys.executable, "-c", code], text=True, timeout=60)
    assert said.strip() == "[]"


async def test_an_answer_that_was_rejected_below_another_query_does_not_stand_for_the_turn(agent: Agent) -> None:
    class Greeting(MemoryEnabledAgent):
        async def process_query(self, query: str, task_id: str) -> str:
            rejected = await self._store_interaction("hi", "hello", task_id)
            assert rejected is not None
            assert not rejected.success
            return "hello"

    turn = await Greeting(agent.memory).run_turn(HAWAII)
    [record] = (await agent.memory.list(ListParams())).memories
    assert (record.memory_id, turn.stored) == (turn.memory_id, True)
