"""Agent turns: exceptions, refusals, unreachable memory, and secrets that must not be stored."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from agentcore.agents.memory_enabled_agent import MemoryEnabledAgent
from agentcore.agents.prefetch import with_memory
from agentcore.agents.scope import AgentSettings, MemoryScope
from agentcore.agents.tool_operations import Confirmations
from agentcore.agents.tools import MemoryTools
from agentcore.errors import NotAuthorised
from agentcore.memory.api import Caller, MemoryApi
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.memories import ListParams, StoreParams, StoreResult
from agentcore.runtime import Runtime
from tests.fixtures.memory import Agent
from tests.fixtures.memory_faces import FACES, reading

HAWAII = "My budget for the Hawaii trip is 10,000 dollars."
QUESTION = "What is my budget for the Hawaii trip?"
LOGGER = "agentcore.agents.memory_enabled_agent"
ROOM_SECONDS = 2.0


class Doing(MemoryEnabledAgent):
    """Runs `work` within its turn and answers with its result."""

    def __init__(
        self,
        memory: MemoryApi,
        work: Callable[[Doing], Any] = lambda own: "Done.",
        settings: AgentSettings | None = None,
    ) -> None:
        super().__init__(memory, settings)
        self.work = work

    async def process_query(self, query: str, task_id: str) -> str:
        self.seen = self.prompt(query)
        given = self.work(self)
        answer: str = await given if asyncio.iscoroutine(given) else given
        return answer


class ByItself(MemoryEnabledAgent):
    """The specification's example: it fetches and stores explicitly."""

    async def process_query(self, query: str, task_id: str) -> str:
        context = await self.memory.get_relevant_context(query, task_id)
        response = "10,000 dollars." if "10,000" in context else "I do not know."
        await self._store_interaction(query, response, task_id, tags=["own"])
        return response


async def records(memory: MemoryApi) -> list[MemoryRecord]:
    """Returns all memories, oldest first."""
    return (await memory.list(ListParams(descending=False))).memories


# --- any noted value ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("face", ["manager", "HTTP client"])
@pytest.mark.shows("issue6-2-answer-kept")
async def test_whatever_was_noted_the_answer_and_the_turn_are_kept(runtime: Runtime, face: str) -> None:
    def note(own: Doing) -> str:
        moment = datetime(2026, 5, 1, tzinfo=UTC)
        for action in ({"at": moment}, {"Lihue"}, float("nan"), object(), "\ud800\x00"):
            own.record_action(action)
        own.record_outcome({"ended": [float("inf"), b"raw", uuid4()]})
        return "Booked."

    async with FACES[face](runtime, f"agent-{uuid4()}") as memory:
        turn = await Doing(memory, note).run_turn("Book the flight to Lihue.")
        assert (turn.response, turn.problems) == ("Booked.", [])
        [record] = await records(memory)
    assert record.memory_id == turn.memory_id
    assert record.actions[:3] == [{"at": "2026-05-01 00:00:00+00:00"}, ["Lihue"], "nan"]
    assert record.outcome["ended"][:2] == ["inf", "b'raw'"]


@pytest.mark.shows("issue6-2-answer-kept")
async def test_of_too_many_actions_the_turn_is_kept_and_the_rest_is_told_of(agent: Agent) -> None:
    def note(own: Doing) -> str:
        for number in range(301):
            own.record_action(f"secret step {number}")
        return "Walked."

    turn = await Doing(agent.memory, note).run_turn("Walk the Kalalau trail.")
    [record] = await records(agent.memory)
    assert turn.problems == ["store: 46 of 301 actions are not kept"]
    assert record.actions[-1] == "[46 more actions are not kept]"
    assert len(record.actions) == 256


@pytest.mark.parametrize(("answer", "text"), [(42, "42"), (None, ""), ({"a": 1}, "{'a': 1}")])
async def test_an_answer_that_is_no_text_is_given_and_kept_as_its_text(agent: Agent, answer: Any, text: str) -> None:
    own = Doing(agent.memory, lambda own: answer)
    assert await own.run("What is the answer to that?") == text
    assert await own.run("And once more, please?") == text
    assert len(await records(agent.memory)) == 2


async def test_an_answer_longer_than_a_memory_is_kept_in_its_beginning(agent: Agent) -> None:
    answer = "All \x00 right." + "." * 300_000
    turn = await Doing(agent.memory, lambda own: answer).run_turn(HAWAII)
    assert (turn.response, turn.problems) == (answer, [])
    [record] = await records(agent.memory)
    assert HAWAII in record.content
    assert "right....." in record.content


async def test_what_a_store_refuses_is_told_without_the_words_and_the_turn_is_kept_without_it(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    async def store(own: Doing) -> str:
        await own._store_interaction(QUESTION, "10,000.", own.task_id, importance=7)
        return "10,000."

    turn = await Doing(agent.memory, store).run_turn(QUESTION)
    [problem] = turn.problems
    assert problem.startswith("store: ValidationError: importance")
    assert QUESTION not in caplog.text + problem
    [record] = await records(agent.memory)
    assert "10,000." in record.content


class Shy:
    """An object whose repr raises."""

    def __str__(self) -> str:
        raise LookupError("it is gone")


@pytest.mark.shows("issue6-2-answer-kept")
async def test_an_object_that_cannot_be_shown_costs_no_answer(agent: Agent) -> None:
    async def store(own: Doing) -> str:
        own.record_action(Shy())
        await own._store_interaction("What did you see?", "Nothing.", own.task_id, actions=[Shy()])
        return "Done."

    turn = await Doing(agent.memory, store).run_turn(QUESTION)
    assert (turn.response, turn.problems) == ("Done.", [])
    assert [record.actions for record in await records(agent.memory)] == [["(Shy)"], ["(Shy)"]]
    silent = await Doing(agent.memory, lambda own: Shy()).run_turn(QUESTION)
    assert silent.response == "(Shy)"


@pytest.mark.shows("issue6-2-answer-kept")
async def test_a_note_that_cannot_be_kept_costs_no_answer(
    runtime: Runtime, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    async def note(own: Doing) -> str:
        assert await own.memory.note(" ", own.task_id) is None
        assert await own.memory.note("The gate code is 4711.", "x" * 10_000) is None
        assert await own.memory.note("The gate code is 4711.", own.task_id) is None
        return "Done."

    async with reading(runtime, agent.agent_id) as memory:
        own = Doing(memory, note)
        turn = await own.run_turn(QUESTION)
        assert turn.response == "Done."
        assert [problem.partition(":")[2].split()[0] for problem in turn.problems] == [
            "ValidationError:",
            "NotAuthorised",
        ]
        assert "4711" not in caplog.text
        with pytest.raises(NotAuthorised):
            await own.run(QUESTION)


@pytest.mark.shows("issue6-2-answer-kept")
async def test_a_turn_whose_answer_is_stored_below_another_query_is_stored_once(agent: Agent) -> None:
    rewritten = "What is the budget for the trip to Hawaii in dollars?"

    async def store(own: Doing) -> str:
        await own._store_interaction(rewritten, "10,000 dollars.", own.task_id)
        return "10,000 dollars."

    turn = await Doing(agent.memory, store).run_turn(QUESTION)
    [record] = await records(agent.memory)
    assert (record.memory_id, turn.stored) == (turn.memory_id, True)
    assert rewritten in record.content

    async def note_too(own: Doing) -> str:
        own.record_action("looked it up")
        return await store(own)

    await Doing(agent.memory, note_too).run_turn("And what is it in euros?")
    *_, last = await records(agent.memory)
    assert last.actions == ["looked it up"]


# --- any query ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("query", ["x" * 40_000, "what \x00 budget", " ", "", "half \ud83d a pair"])
@pytest.mark.shows("issue6-2-answer-kept")
async def test_a_query_that_cannot_be_searched_is_answered_all_the_same(agent: Agent, query: str) -> None:
    async def search(own: Doing) -> str:
        return f"Found {len(await own.memory.retrieve_memories(query))}."

    await agent.store(HAWAII)
    own = Doing(agent.memory, search)
    assert (await own.run(query)).startswith("Found ")
    assert (await own.run(QUESTION)).startswith("Found ")
    assert await with_memory(agent.memory, [{"role": "user", "content": query}])


async def test_of_a_query_with_what_cannot_be_searched_the_rest_is(agent: Agent) -> None:
    await agent.store(HAWAII)
    own = Doing(agent.memory)
    await own.run(f"{QUESTION}\x00\ud83d")
    assert HAWAII in own.seen


# --- nested agents ------------------------------------------------------------------------------------------


@pytest.mark.shows("issue6-2-own-turn")
async def test_an_agent_within_anothers_turn_sees_and_notes_nothing_of_it(
    agent: Agent, new_agent: Callable[..., Agent]
) -> None:
    await agent.store(HAWAII)
    inner = Doing(new_agent().memory)

    async def ask(own: Doing) -> str:
        assert await inner.process_query(QUESTION, "trip") == "Done."
        for noting in (inner.record_action, inner.record_outcome):
            with pytest.raises(RuntimeError, match="no turn is running"):
                noting("of the inner agent")
        return "Asked."

    outer = Doing(agent.memory, ask)
    turn = await outer.run_turn(QUESTION, "trip")
    assert HAWAII in outer.seen
    assert inner.seen == QUESTION
    assert (turn.actions, turn.outcome) == ([], None)


@pytest.mark.shows("issue6-2-own-turn")
async def test_what_an_agent_does_for_another_it_still_notes_in_its_own_turn(
    agent: Agent, new_agent: Callable[..., Agent]
) -> None:
    other = new_agent()
    outer = Doing(agent.memory)

    def call_back(own: Doing) -> str:
        own.record_action("asked back")
        outer.record_action("was asked back")
        return "Asked."

    outer.work = lambda own: Doing(other.memory, call_back).run("May I ask back?")
    await outer.run("Ask the other agent.")
    assert [record.actions for record in await records(agent.memory)] == [["was asked back"]]
    assert [record.actions for record in await records(other.memory)] == [["asked back"]]


# --- refused and unanswered writes --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Doing, ByItself])
@pytest.mark.shows("issue6-2-answer-kept")
async def test_a_token_that_may_not_store_costs_no_answer_and_is_raised_before_the_next(
    runtime: Runtime, agent: Agent, caplog: pytest.LogCaptureFixture, kind: type[MemoryEnabledAgent]
) -> None:
    async with reading(runtime, agent.agent_id) as memory:
        own = kind(memory)
        turn = await own.run_turn(QUESTION)
        assert turn.response in ("Done.", "I do not know.")
        [problem] = turn.problems
        assert problem.startswith("store: NotAuthorised (-32104): ")
        told = [record for record in caplog.records if record.name == LOGGER]
        assert [record.levelno for record in told] == [logging.ERROR]
        assert "NotAuthorised (-32104): " in told[0].getMessage()
        with pytest.raises(NotAuthorised):
            await own.run(QUESTION)
        assert await own.run(QUESTION, remember=False)
        assert (await own.run_turn(QUESTION)).refused is not None


async def test_a_failure_of_the_agent_hides_no_refusal(runtime: Runtime, agent: Agent) -> None:
    def fail(own: Doing) -> str:
        raise LookupError("no such airport")

    async with reading(runtime, agent.agent_id) as memory:
        own = Doing(memory, fail)
        with pytest.raises(LookupError):
            await own.run(QUESTION)
        with pytest.raises(NotAuthorised):
            await own.run(QUESTION)


@pytest.mark.shows("issue6-2-answer-kept")
async def test_a_tool_that_is_refused_is_logged_with_its_code(
    runtime: Runtime, agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    async with reading(runtime, agent.agent_id) as memory:
        answer = await MemoryTools(memory).answer("save_memory", {"content": HAWAII})
    assert answer.failed
    [told] = [record.getMessage() for record in caplog.records if record.name == "agentcore.agents.tools"]
    assert told.startswith("save_memory was refused (-32104): ")
    assert "lacks the scope" in told
    assert HAWAII not in told


class Silent:
    """A memory that performs the first stores, but loses their responses."""

    def __init__(self, memory: MemoryApi, *, answers_lost: int) -> None:
        self._memory = memory
        self.lost = answers_lost
        self.statuses: list[str] = []

    async def add_interaction(self, interaction: Any, **options: Any) -> StoreResult:
        stored = await self._memory.store(StoreParams(interaction=interaction, **options))
        self.statuses.append(stored.status)
        if len(self.statuses) <= self.lost:
            await asyncio.Event().wait()
        return stored

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)


@pytest.mark.shows("issue6-2-answer-kept")
async def test_a_store_that_was_not_answered_is_tried_once_more_and_is_there_once(agent: Agent) -> None:
    silent = Silent(agent.memory, answers_lost=1)
    settings = AgentSettings(timeout_seconds=ROOM_SECONDS)
    turn = await ByItself(silent, settings).run_turn(QUESTION, "trip")  # type: ignore[arg-type]
    assert silent.statuses == ["stored", "existing"]
    [record] = await records(agent.memory)
    assert (record.memory_id, record.tags) == (turn.memory_id, ["own"])


async def test_what_a_turn_could_not_store_by_itself_its_end_stores(agent: Agent) -> None:
    class Once(Silent):
        async def add_interaction(self, interaction: Any, **options: Any) -> StoreResult:
            self.lost -= 1
            if self.lost >= 0:
                await asyncio.Event().wait()
            return await super().add_interaction(interaction, **options)

    once = Once(agent.memory, answers_lost=1)
    settings = AgentSettings(timeout_seconds=ROOM_SECONDS)
    turn = await ByItself(once, settings).run_turn(QUESTION, "trip")  # type: ignore[arg-type]
    [record] = await records(agent.memory)
    assert (record.memory_id, record.tags) == (turn.memory_id, ["own"])
    assert [problem.partition(":")[0] for problem in turn.problems] == ["store"]


# --- what is stored of an error -----------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.shows("issue6-2-answer-kept")
async def test_an_error_lasts_without_its_secrets_unless_that_is_wished(agent: Agent, whole: bool) -> None:
    def fail(own: Doing) -> str:
        raise ConnectionError("https://rates.example.com/v1?key=s3cr3t answered 500")

    with pytest.raises(ConnectionError, match="s3cr3t"):
        await Doing(agent.memory, fail, AgentSettings(whole_errors=whole)).run(QUESTION)
    [record] = await records(agent.memory)
    assert record.outcome.startswith("failed: ConnectionError: https://rates.example.com/v1?")
    assert record.outcome.endswith(" answered 500")
    assert ("s3cr3t" in record.model_dump_json()) == whole


# --- forgetting across turns --------------------------------------------------------------------------------


@pytest.mark.shows("issue6-3-tools")
async def test_what_one_turn_proposes_to_forget_the_next_confirms(agent: Agent) -> None:
    memory_id = str(await agent.stored_id(HAWAII))
    own = Doing(agent.memory)
    proposed = await own.tools().call("forget_memory", {"memory_ids": [memory_id]})
    confirmation = proposed.partition('"confirmation":"')[2].partition('"')[0]
    answer = await own.tools().call("forget_memory", {"memory_ids": [memory_id], "confirmation": confirmation})
    assert answer == '{"status":"forgotten","deleted_count":1}'


async def test_a_server_confirms_with_another_object_of_the_same_session_and_key(
    runtime: Runtime, agent: Agent
) -> None:
    memory_id = str(await agent.stored_id(HAWAII, user_id="ada"))

    def tools(session_id: str) -> MemoryTools:
        settings = AgentSettings(scope=MemoryScope(user_id="ada", session_id=session_id))
        own = Doing(runtime.manager_for(Caller(agent.agent_id)), settings=settings)
        return own.tools(confirmations=Confirmations(b"a secret of the server"))

    proposed = await tools("s1").call("forget_memory", {"memory_ids": [memory_id]})
    confirmation = proposed.partition('"confirmation":"')[2].partition('"')[0]
    confirmed = {"memory_ids": [memory_id], "confirmation": confirmation}
    assert (await tools("s2").answer("forget_memory", confirmed)).failed
    assert not (await tools("s1").answer("forget_memory", confirmed)).failed
