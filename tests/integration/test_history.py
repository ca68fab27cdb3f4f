"""A memory's history: versions of each change, revert, and feedback."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentcore.errors import Conflict, InvalidParams, NotFound
from agentcore.maintenance.rounds import fold_deltas
from agentcore.memory.models import MemoryRecord
from agentcore.memory.params.changes import FeedbackParams, HistoryParams, HistoryResult, RevertParams, UpdateParams
from agentcore.memory.params.memories import CompleteTaskParams, DeleteParams
from tests.fixtures.memory import Agent

LIFE = {"version", "updated_at"}


async def update(agent: Agent, memory_id: UUID, **updates: object) -> int:
    params = UpdateParams.model_validate({"memory_id": memory_id, "updates": updates})
    return (await agent.memory.update(params)).version


async def past(agent: Agent, memory_id: UUID, **values: Any) -> HistoryResult:
    return await agent.memory.history(HistoryParams(memory_id=memory_id, **values))


async def revert(agent: Agent, memory_id: UUID, version: int) -> list[str]:
    """Reverts, and returns the degradations of the receipt."""
    result = await agent.memory.revert(RevertParams(memory_id=memory_id, version=version))
    return result.receipt.degraded


def held(record: MemoryRecord) -> dict[str, Any]:
    """Returns a memory without the fields that every change updates."""
    return record.model_dump(exclude=LIFE)


@pytest.mark.shows("FR-4.2", "issue4-1.1")
async def test_every_change_says_what_by_whom_and_which_version_it_made(agent: Agent) -> None:
    memory_id = await agent.stored_id("The door code is 1234.", importance=0.5)
    other = await agent.stored_id("The door is green.")
    await update(agent, memory_id, content="The door code is 9999.", tags=["codes"])
    await update(agent, memory_id, links=[{"target_id": str(other), "relation": "about"}], ttl_seconds=600)
    await update(agent, memory_id, unlink=[str(other)], ttl_seconds=None)
    page = await past(agent, memory_id)
    tie = {"source_id": str(memory_id), "target_id": str(other), "relation": "about", "weight": 1.0}
    third, second, first = page.changes
    assert (first.version, first.operation, first.token_id, first.trace_id) == (2, "update", "token-1", "t" * 32)
    assert first.before == {"content": "The door code is 1234.", "tags": []}
    assert first.after == {"content": "The door code is 9999.", "tags": ["codes"]}
    assert second.before == {"ttl_seconds": None, "expires_at": None}
    assert second.after is not None
    assert second.after["links"] == [tie]
    expires_at = datetime.fromisoformat(second.after["expires_at"])
    assert timedelta(seconds=590) < expires_at - datetime.now(UTC) <= timedelta(seconds=600)
    assert third.before == {"ttl_seconds": 600, "expires_at": second.after["expires_at"], "links": [tie]}
    assert third.after == {"ttl_seconds": None, "expires_at": None}
    assert (page.version, page.next_cursor, page.provenance["token_id"]) == (4, None, "token-1")


async def test_the_history_comes_page_by_page(agent: Agent) -> None:
    memory_id = await agent.stored_id("The count is 0.")
    for count in range(1, 6):
        await update(agent, memory_id, content=f"The count is {count}.")
    versions, cursor = [], None
    while True:
        page = await past(agent, memory_id, limit=2, cursor=cursor)
        versions += [change.version for change in page.changes]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert versions == [6, 5, 4, 3, 2]


@pytest.mark.shows("FR-4.2", "issue4-1.2")
async def test_a_memory_goes_back_to_exactly_what_it_held(agent: Agent) -> None:
    other = await agent.stored_id("The harbour of Porto.")
    memory_id = await agent.stored_id(
        "Anna lives in Porto (Oporto).",
        tags=["people"],
        metadata={"a": 1},
        importance=0.3,
        links=[{"target_id": other, "weight": 0.25}],
    )
    stages = [await agent.get(memory_id)]
    for changes in (
        {"content": "Anna lives in Lisbon since May 2026.", "importance": 0.9},
        {"metadata": {"a": None, "b": [2]}, "pinned": True, "tags": []},
        {"unlink": [str(other)], "ttl_seconds": 5_000},
        {"links": [{"target_id": str(other), "relation": "near", "weight": 0.5}]},
    ):
        await update(agent, memory_id, **changes)
        stages.append(await agent.get(memory_id))
    for version in (3, 1, 4, 2, 5):
        assert await revert(agent, memory_id, version) == []
        assert held(await agent.get(memory_id)) == held(stages[version - 1])
    page = await past(agent, memory_id)
    assert [change.operation for change in page.changes] == ["revert"] * 5 + ["update"] * 4
    assert page.changes[0].after is not None
    assert page.changes[0].after["to_version"] == 5


async def test_a_revert_brings_an_earlier_time_to_live_back_with_its_moment(agent: Agent) -> None:
    memory_id = await agent.stored_id("The permit holds.", ttl_seconds=864_000)
    ends_at = (await agent.get(memory_id)).expires_at
    await update(agent, memory_id, ttl_seconds=600)
    await revert(agent, memory_id, 1)
    assert (await agent.get(memory_id)).expires_at == ends_at
    [change, *_] = (await past(agent, memory_id)).changes
    assert change.after is not None
    assert change.after["ttl_seconds"] == 864_000
    # After frequent use the lifetime is the original one, not that of the reverted update.
    parts, rules = agent.runtime.parts, {"episodic": 1}
    parts.accesses.note(agent.agent_id, [memory_id], parts.clock())
    await parts.accesses.flush(parts.storage, rules)
    extended = (await agent.get(memory_id)).expires_at
    assert extended is not None
    assert extended - datetime.now(UTC) > timedelta(days=9)


async def test_after_a_revert_the_old_words_find_the_memory_and_the_new_do_not(agent: Agent) -> None:
    memory_id = await agent.stored_id("The zebra sleeps.")
    await update(agent, memory_id, content="The heron wakes.")
    await revert(agent, memory_id, 1)
    await fold_deltas(agent.runtime.database)
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT sum(memory_count) AS known FROM lexical_terms WHERE agent_id = %s", (agent.agent_id,)
        )
        assert await cursor.fetchone() == {"known": 2}  # zebra, sleep
    assert await agent.found("zebra") == ["The zebra sleeps."]


async def test_a_version_that_never_was_or_is_not_earlier_is_refused(agent: Agent) -> None:
    memory_id = await agent.stored_id("The bell rings at nine.")
    await update(agent, memory_id, content="The bell rings at ten.")
    for version in (2, 3, 400):
        with pytest.raises(InvalidParams, match="stands at 2"):
            await revert(agent, memory_id, version)
    with pytest.raises(Conflict, match="version 2"):
        await agent.memory.revert(RevertParams(memory_id=memory_id, version=1, if_version=1))
    for call in (revert(agent, uuid4(), 1), past(agent, uuid4())):
        with pytest.raises(NotFound):
            await call
    assert (await agent.get(memory_id)).version == 2


async def test_without_a_whole_history_nothing_is_reverted(agent: Agent) -> None:
    memory_id = await agent.stored_id("The lamp is red.")
    await update(agent, memory_id, content="The lamp is blue.")
    await update(agent, memory_id, content="The lamp is white.")
    async with agent.runtime.database.owner_transaction() as connection:  # as an older service wrote it
        await connection.execute(
            "UPDATE memory_history SET version = NULL WHERE memory_id = %s AND version = 2", (memory_id,)
        )
    with pytest.raises(Conflict, match="every change"):
        await revert(agent, memory_id, 1)
    await revert(agent, memory_id, 2)
    assert (await agent.get(memory_id)).content == "The lamp is blue."


@pytest.mark.shows("issue4-1.2")
async def test_what_cannot_come_back_is_told_and_the_rest_does(agent: Agent) -> None:
    other = await agent.stored_id("A shed.")
    memory_id = await agent.stored_id("A key.", links=[{"target_id": other}], ttl_seconds=1)
    await update(agent, memory_id, ttl_seconds=None, unlink=[str(other)], content="A key of brass.")
    await agent.memory.delete(DeleteParams(memory_ids=[other]))
    async with agent.runtime.database.owner_transaction() as connection:  # the second is over
        await connection.execute(
            "UPDATE memory_history SET before = before || jsonb_build_object('expires_at', now()) WHERE memory_id = %s",
            (memory_id,),
        )
    expiry, ties = await revert(agent, memory_id, 1)
    assert expiry.startswith("expires_at")
    assert ties.startswith("links")
    record = await agent.get(memory_id)
    assert (record.content, record.expires_at, record.links) == ("A key.", None, [])


@pytest.mark.shows("issue4-1.1")
async def test_the_end_of_a_task_stands_in_the_history_of_what_it_ends(agent: Agent) -> None:
    memory_id = await agent.stored_id("Half of the boxes are packed.", memory_type="working", task_id="move")
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute("UPDATE memories SET expires_at = NULL WHERE memory_id = %s", (memory_id,))
    await agent.memory.complete_task(CompleteTaskParams(task_id="move"))
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT operation, version, trace_id, before FROM memory_history WHERE memory_id = %s", (memory_id,)
        )
        [change] = await cursor.fetchall()
    assert change == {"operation": "complete_task", "version": 2, "trace_id": "t" * 32, "before": {"expires_at": None}}


@pytest.mark.shows("issue4-1.3")
async def test_feedback_moves_the_relevance_score_and_is_kept(agent: Agent) -> None:
    memory_id = await agent.stored_id("The ferry leaves at six.", importance=0.5)
    scores = []
    for verdict in ("helpful", "unhelpful", "wrong"):
        params = FeedbackParams.model_validate({"memory_id": memory_id, "verdict": verdict, "note": "seen"})
        scores.append((await agent.memory.feedback(params)).relevance_score)
    assert scores == pytest.approx([0.55, 0.495, 0.2475])
    assert (await agent.get(memory_id)).relevance_score == pytest.approx(0.2475)
    latest = (await past(agent, memory_id)).changes[0]
    assert (latest.operation, latest.version) == ("feedback", 4)
    assert latest.after == {"verdict": "wrong", "note": "seen", "relevance_score": pytest.approx(0.2475)}


async def test_verdicts_given_at_the_same_time_all_count(agent: Agent) -> None:
    memory_id = await agent.stored_id("The baker closes at noon.", importance=0.0)
    params = FeedbackParams(memory_id=memory_id, verdict="helpful")
    await asyncio.gather(*(agent.memory.feedback(params) for _ in range(4)))
    assert (await agent.get(memory_id)).relevance_score == pytest.approx(1 - 0.9**4)
