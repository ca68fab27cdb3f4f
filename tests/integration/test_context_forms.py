"""Context formats, token counts and reports of omissions."""

from __future__ import annotations

import json

import pytest

from agentcore.errors import InvalidParams
from agentcore.memory.contexts.fencing import NOTICE
from agentcore.memory.params.memories import GetContextParams, GetContextResult
from agentcore.memory.ranking.calibration import CutOffs
from tests.fixtures.memory import Agent

LOG = " ".join(f"Berth {number} was swept and found in order." for number in range(120))


async def context(agent: Agent, query: str = "harbour crane", **values: object) -> GetContextResult:
    return await agent.memory.get_context(GetContextParams.model_validate({"query": query, **values}))


async def harbour(agent: Agent) -> None:
    """Stores a task's memory, two messages of a session and a fact."""
    await agent.stored_id("Ordered a rope for the harbour crane.", task_id="crane")
    for number, said in enumerate(("The harbour crane squeaks.", "Its bearing is worn, it must rest.")):
        await agent.stored_id(said, session_id="s1", speaker="Rui", timestamp=f"2026-03-01T10:0{number}:00Z")
    await agent.stored_id("The harbour crane lifts 40 tonnes.", memory_type="semantic")


@pytest.mark.parametrize("form", ["markdown", "text", "json"])
@pytest.mark.parametrize("max_tokens", [1, 30, 60, 90, 2_000])
@pytest.mark.parametrize("encoding", ["o200k_base", "cl100k_base"])
@pytest.mark.shows("issue5-1-limit")
async def test_no_form_exceeds_the_limit_in_any_encoding(
    agent: Agent, form: str, max_tokens: int, encoding: str
) -> None:
    await harbour(agent)
    result = await context(agent, task_id="crane", format=form, max_tokens=max_tokens, encoding=encoding)
    count = agent.runtime.parts.token_counters.of(encoding).count
    assert result.token_count == count(result.context) <= max_tokens
    assert result.encoding == encoding
    assert len(result.memory_ids) == (4 if max_tokens == 2_000 else len(result.memory_ids))


@pytest.mark.shows("issue5-1-citable")
async def test_each_numbered_line_is_the_memory_at_that_place(agent: Agent) -> None:
    await harbour(agent)
    result = await context(agent, task_id="crane")
    lines = result.context.splitlines()
    for number, memory_id in enumerate(result.memory_ids, 1):
        [line] = [each for each in lines if each.startswith(f"{number}. ")]
        assert (await agent.get(memory_id)).content in line
    assert "2026-03-01 10:00\n2. Rui: The harbour crane squeaks.\n3. Rui: Its bearing" in result.context


async def test_json_holds_the_same_memories_under_the_same_sections(agent: Agent) -> None:
    await harbour(agent)
    lines, told = await context(agent, task_id="crane"), await context(agent, task_id="crane", format="json")
    assert told.memory_ids == lines.memory_ids
    sections = list(json.loads(told.context))
    assert sections == ["notice", "Current Task Context", "Relevant Past Interactions", "Relevant Knowledge"]


@pytest.mark.shows("issue5-1-nothing")
async def test_where_nothing_is_found_json_is_an_empty_document_and_the_others_no_text(agent: Agent) -> None:
    empty = await context(agent, format="json")
    assert json.loads(empty.context) == {"notice": NOTICE}
    assert empty.token_count == agent.runtime.parts.count_tokens(empty.context)
    just = await context(agent, format="json", max_tokens=empty.token_count)
    assert just.context == empty.context
    short = await context(agent, format="json", max_tokens=empty.token_count - 1)
    assert (short.context, short.token_count) == ("", 0)
    for form in ("markdown", "text"):
        assert (await context(agent, format=form)).context == ""


async def test_json_that_no_memory_fits_into_is_an_empty_document(agent: Agent) -> None:
    await harbour(agent)
    result = await context(agent, task_id="crane", format="json", max_tokens=20)
    assert (json.loads(result.context), result.memory_ids) == ({"notice": NOTICE}, [])


@pytest.mark.shows("issue5-1-limit")
async def test_tokens_are_counted_as_the_model_counts_them(agent: Agent) -> None:
    await agent.stored_id("Der Hafenkran am Nordufer wird jährlich überprüft, sagte Jürgen Größmann. 起重机")
    newer, older = await context(agent, model="gpt-4o-mini"), await context(agent, model="gpt-4")
    assert (newer.encoding, older.encoding) == ("o200k_base", "cl100k_base")
    assert newer.context == older.context
    assert newer.token_count < older.token_count


@pytest.mark.parametrize("model", ["somebody's own", "davinci"])
@pytest.mark.shows("issue5-1-limit")
async def test_a_model_that_cannot_be_counted_is_refused_with_what_to_do(agent: Agent, model: str) -> None:
    with pytest.raises(InvalidParams, match="name an encoding instead, cl100k_base or o200k_base") as refused:
        await context(agent, model=model)
    assert refused.value.data == {"field": "model"}


async def test_model_and_encoding_together_are_refused() -> None:
    with pytest.raises(ValueError, match="either model or encoding"):
        GetContextParams(query="x", model="gpt-4", encoding="o200k_base")


@pytest.mark.shows("FR-3.3", "issue5-1-receipt")
async def test_a_memory_too_long_stands_by_what_answers_and_the_result_says_so(agent: Agent) -> None:
    answer = "The key of the harbour crane hangs behind the blue door."
    long = await agent.stored_id(f"{LOG} {answer} {LOG}")
    result = await context(agent, "where is the key of the harbour crane", max_tokens=200)
    assert answer in result.context
    assert result.shortened == result.memory_ids == [long]
    assert {each.reason: each.count for each in result.receipt.dropped}["shortened"] == 1


@pytest.mark.shows("issue5-1-receipt")
async def test_what_does_not_fit_is_named_up_to_a_bound(agent: Agent) -> None:
    stored = [await agent.stored_id(f"Harbour crane, inspection {number}: fine.") for number in range(15)]
    result = await context(agent, max_tokens=80, min_fit=0)
    assert {each.memory_id for each in result.left_out} <= set(stored) - set(result.memory_ids)
    [lost] = [each.count for each in result.receipt.dropped if each.reason == "beyond_max_tokens"]
    assert lost == len(result.left_out) > 0


@pytest.mark.shows("issue5-1-once")
async def test_a_replaced_statement_is_not_in_the_context(agent: Agent) -> None:
    await agent.stored_id("The harbour crane is yellow.", external_id="colour")
    old = await agent.stored_id("My favourite colour is yellow.", speaker="Rui")
    new = await agent.store("My favourite colour is green.", speaker="Rui")
    assert new.superseded == [old]
    result = await context(agent, "what is Rui's favourite colour")
    assert "favourite colour is green" in result.context
    assert "favourite colour is yellow" not in result.context


@pytest.mark.shows("issue5-1-once")
async def test_words_of_the_task_are_not_said_twice(agent: Agent) -> None:
    await agent.stored_id("The harbour crane squeaks.", task_id="crane", session_id="s1")
    again = await agent.stored_id("The harbour crane squeaks.", session_id="s2")
    result = await context(agent, task_id="crane")
    assert result.context.count("squeaks") == 1
    assert again not in result.memory_ids


def test_the_room_grows_with_the_fit_up_to_where_it_is_full() -> None:
    cut_offs = CutOffs(full_fit=0.5)
    assert [cut_offs.room(fit) for fit in (0.0, 0.25, 0.5, 0.9, None)] == [0.0, 0.5, 1.0, 1.0, 1.0]
    assert CutOffs().room(0.0) == 1.0
