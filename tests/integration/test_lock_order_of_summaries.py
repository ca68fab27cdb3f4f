"""Deletions and changes concurrent with summaries of the same memories: the second blocks, none is
aborted."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any
from uuid import UUID

import pytest

from agentcore.memory.api import Caller
from agentcore.memory.deriving.session_summaries import Refreshing, SessionSummarizing
from agentcore.memory.models import MemoryRecord, MemoryType
from agentcore.memory.params.memories import DeleteParams, PruneParams
from tests.fixtures.chat_model import Talking
from tests.fixtures.gate import gate
from tests.fixtures.memory import Agent
from tests.fixtures.stretches import (
    LINES,
    add,
    at,
    change,
    end,
    lines,
    message,
    messages,
    periods,
    rules,
    say,
    summaries,
    summarised,
    two_sessions,
    waiting,
    weekly,
)

# Blocks calls that have locked their memories; readers continue.
HISTORIES = "LOCK TABLE memory_history IN SHARE MODE"
OLD, NEW = "The port of the gateway is 8080.", "The port of the gateway is 9090."


def _deleted(agent: Agent, *memory_ids: UUID) -> Awaitable[object]:
    return agent.memory.delete(DeleteParams(memory_ids=list(memory_ids)))


async def _late_session(talk: Talking) -> tuple[Agent, MemoryRecord]:
    """Returns an agent and a session summary younger than the period summary that includes it."""
    agent = await weekly(talk)
    await two_sessions(agent, talk)
    await say(agent, "c", 2, LINES[2], LINES[3])
    await talk.work()
    [period] = await periods(agent)
    [summary] = [each for each in await summaries(agent) if each.session_id == "c"]
    assert summary.memory_id in {link.target_id for link in period.links}
    assert period.memory_id < summary.memory_id
    return agent, summary


@pytest.mark.shows("issue5-2-in-order")
async def test_a_summary_is_made_anew_before_the_deletion_of_a_message_of_it(talk: Talking) -> None:
    agent, _ = await _late_session(talk)
    going = await message(agent, LINES[2])
    await change(agent, await message(agent, LINES[3]), content="Our broker works in Bruges now.")
    async with gate(agent) as opened:
        await opened.hold(HISTORIES)
        refreshed, deleted = await opened.through(
            Refreshing(talk.runtime.parts, Caller(agent.agent_id)).run(), opened.after_the_first(_deleted(agent, going))
        )
    assert refreshed is False
    assert getattr(deleted, "deleted_count", deleted) == 3
    await talk.work()
    [period] = await periods(agent)
    assert LINES[2] not in period.content
    assert "Bruges" in period.content


@pytest.mark.shows("issue5-2-in-order")
async def test_a_callers_words_for_a_summary_are_written_before_the_deletion_of_a_message_of_it(talk: Talking) -> None:
    agent, summary = await _late_session(talk)
    going = await message(agent, LINES[2])
    async with gate(agent) as opened:
        await opened.hold(HISTORIES)
        changed, deleted = await opened.through(
            change(agent, summary.memory_id, content="It was about money."),
            opened.after_the_first(_deleted(agent, going)),
        )
    assert changed is None
    assert getattr(deleted, "deleted_count", deleted) == 3


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.shows("issue5-2-in-order")
async def test_what_holds_again_after_a_deletion_is_told_by_the_summary_made_meanwhile(
    talk: Talking, again: bool
) -> None:
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    said = [OLD, LINES[4], NEW, LINES[1]]
    await add(
        agent,
        [{"role": "user", "content": each, "timestamp": at(place).isoformat()} for place, each in enumerate(said)],
    )
    stored = {each.content: each for each in await messages(agent)}
    assert stored[OLD].superseded_by == stored[NEW].memory_id
    caller = Caller(agent.agent_id)
    work: Awaitable[Any] = SessionSummarizing(talk.runtime.parts, caller, "s").run()
    if again:
        await work
        await change(agent, stored[LINES[1]].memory_id, content="The policy number is HX-9999.")
        work = Refreshing(talk.runtime.parts, caller).run()
    async with gate(agent) as opened:
        await opened.hold(HISTORIES)
        deleted, made = await opened.through(_deleted(agent, stored[NEW].memory_id), opened.after_the_first(work))
    assert getattr(deleted, "reinstated_count", deleted) == 1
    assert not isinstance(made, BaseException), made
    await talk.work()
    [summary] = await summaries(agent)
    assert OLD in summary.content
    assert NEW not in summary.content


@pytest.mark.shows("issue5-2-in-order")
async def test_a_message_that_another_holds_meanwhile_is_told_again_with_the_rest(talk: Talking) -> None:
    """As when a deletion of a message of the same session is aborted."""
    agent = talk.agent()
    await rules(agent, provider="extractive", trigger="session_end")
    await add(agent, lines(0, 4))
    await end(agent)
    stored = [each.memory_id for each in await messages(agent)]
    async with gate(agent) as opened:
        await opened.hold_row("memories", agent, stored[3])
        await opened.through(_deleted(agent, stored[0]))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.content == "\n".join(f"user: {LINES[place]}" for place in (1, 2, 3))
    assert await waiting(agent) == []


async def test_two_deletions_of_messages_of_one_summary_are_both_made(talk: Talking) -> None:
    agent, summary = await _late_session(talk)
    going = [await message(agent, each) for each in (LINES[3], LINES[2])]
    async with gate(agent) as opened:
        await opened.hold_row("memories", agent, summary.memory_id, "FOR KEY SHARE")
        done = await opened.through(*(_deleted(agent, each) for each in going))
    assert sorted(getattr(each, "deleted_count", -1) for each in done) == [1, 3]
    await talk.work()
    assert {each.session_id for each in await summaries(agent)} == {"a", "b"}


async def test_a_store_that_supersedes_a_summary_and_the_deletion_of_what_it_tells_are_both_made(talk: Talking) -> None:
    talk.model.answers["fact_judge"] = lambda document: {"verdict": "SUPERSEDE"}
    agent, summary = await _late_session(talk)
    await change(agent, summary.memory_id, content=OLD)
    going = await message(agent, LINES[2])
    async with gate(agent) as opened:
        await opened.hold(HISTORIES)
        stored, deleted = await opened.through(
            agent.store(NEW, memory_type="semantic", timestamp=at(60 * 24 * 3)),
            opened.after_the_first(_deleted(agent, going)),
        )
    assert getattr(stored, "superseded", stored) == [summary.memory_id]
    assert getattr(deleted, "deleted_count", deleted) == 3


async def test_a_change_that_began_before_a_summary_was_made_and_ended_behind_it_stands_in_the_next(
    talk: Talking,
) -> None:
    """The model's text about archived sources is kept, and later changes follow it."""
    agent = talk.agent()
    other = await agent.stored_id("The diary is green.", memory_type="semantic")
    await summarised(agent, talk, provider="llm")
    stored = [each.memory_id for each in await messages(agent)]
    for each in stored[1:]:
        await change(agent, each, pinned=True)
    prune = PruneParams(memory_layer=MemoryType.EPISODIC, strategy="oldest_first", target=1)
    assert (await agent.memory.prune(prune)).memory_ids == stored[:1]
    await change(agent, stored[2], content="The damage comes to 50,000 euros.")
    async with gate(agent) as opened:
        await opened.hold_row("memories", agent, other)
        links = [{"target_id": str(other), "relation": "beside"}]
        late = change(agent, stored[1], content="The policy number is HX-9999.", links=links)
        await opened.through(late, opened.after_the_first(_made_and_then(talk, agent, other)))
    await talk.work()
    [summary] = await summaries(agent)
    assert summary.version == 3
    assert "HX-9999" in summary.content
    assert "50,000" in summary.content


async def _made_and_then(talk: Talking, agent: Agent, held: UUID) -> None:
    """Runs pending work, then blocks the memory on the gate."""
    await talk.work()
    async with talk.runtime.database.owner_transaction() as connection:
        row = "SELECT FROM memories WHERE agent_id = %s AND memory_id = %s FOR KEY SHARE"
        await connection.execute(row, [agent.agent_id, held])


@pytest.mark.parametrize("statement", ["mark_restored_stale", "enqueue_for_period"])
async def test_summaries_are_enqueued_in_the_order_of_their_ids(agent: Agent, statement: str) -> None:
    """Otherwise two transactions that enqueue the same summaries can deadlock."""
    await rules(agent, provider="extractive", trigger="session_end", period="week")
    ids = [await agent.stored_id(f"Summary {number}.", memory_type="semantic") for number in range(9)]
    async with agent.runtime.database.owner_transaction() as connection:
        for each in reversed(ids):  # the rows move: they are now stored in reverse order
            await connection.execute(
                """UPDATE memories SET provenance = provenance || '{"form": "session"}'
                    WHERE memory_id = %s""",
                [each],
            )
    async with agent.runtime.parts.storage.transaction(agent.agent_id) as transaction:
        # Forces plans that read in storage order or hash; the planner may choose them for many rows.
        for name in ("enable_indexscan", "enable_indexonlyscan", "enable_sort"):
            await transaction._connection.execute(f"SET LOCAL {name} = off".encode())
        assert await getattr(transaction.summaries, statement)(ids)
    async with agent.runtime.database.owner_transaction() as connection:
        queued = await (
            await connection.execute(
                "SELECT memory_id FROM llm_queue WHERE agent_id = %s ORDER BY ctid", [agent.agent_id]
            )
        ).fetchall()
    assert [row["memory_id"] for row in queued] == sorted(ids)
