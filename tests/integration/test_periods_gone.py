"""Period summaries whose sources are deleted, archived, erased or restored."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agentcore.memory.models import MemoryType
from agentcore.memory.params.archived import EraseParams, RestoreParams
from agentcore.memory.params.memories import DeleteParams, ListParams, PruneParams
from agentcore.memory.params.sessions import AddSessionParams
from tests.fixtures.chat_model import Talking
from tests.fixtures.stretches import (
    LINES,
    NOON,
    SALT,
    change,
    end,
    message,
    periods,
    say,
    summaries,
    two_sessions,
    weekly,
)


@pytest.mark.shows("issue5-2-periods")
async def test_a_deleted_message_takes_the_summaries_above_it_at_once_and_the_rest_is_told_again(talk: Talking) -> None:
    agent = await weekly(talk)
    await say(agent, "a", 0, LINES[0], LINES[1])
    await say(agent, "b", 1, LINES[2])
    await talk.work()
    await agent.memory.delete(DeleteParams(memory_ids=[await message(agent, LINES[1])]))
    assert await periods(agent) == []
    assert [each.session_id for each in await summaries(agent)] == ["b"]
    await talk.work()
    [period] = await periods(agent)
    assert period.content == f"user: {LINES[0]}\nuser: {LINES[2]}"


async def test_with_one_session_left_there_is_no_summary_of_the_period(talk: Talking) -> None:
    agent = await weekly(talk)
    await two_sessions(agent, talk)
    [summary] = [each for each in await summaries(agent) if each.session_id == "a"]
    await agent.memory.delete(DeleteParams(memory_ids=[summary.memory_id]))
    await talk.work()
    assert await periods(agent) == []
    assert [each.session_id for each in await summaries(agent)] == ["b"]


async def test_a_period_deleted_by_its_id_stays_away_until_another_session(talk: Talking) -> None:
    agent = await weekly(talk)
    await two_sessions(agent, talk)
    await agent.memory.delete(DeleteParams(memory_ids=[each.memory_id for each in await periods(agent)]))
    await talk.work()
    assert await periods(agent) == []
    await say(agent, "c", 2, SALT)
    await talk.work()
    assert [each.metadata["summarised_count"] for each in await periods(agent)] == [3]


@pytest.mark.shows("issue5-2-periods")
async def test_what_a_period_says_of_archived_sessions_stays(talk: Talking) -> None:
    agent = await weekly(talk)
    for place in range(3):
        await say(agent, f"s{place}", place, LINES[place])
    await talk.work()
    going = next(each for each in await summaries(agent) if each.session_id == "s0")
    [period] = await periods(agent)
    await change(agent, period.memory_id, pinned=True)
    prune = PruneParams(memory_layer=MemoryType.SEMANTIC, strategy="oldest_first", target=1)
    assert (await agent.memory.prune(prune)).memory_ids == [going.memory_id]
    await say(agent, "s3", 3, SALT)
    await talk.work()
    [period] = await periods(agent)
    assert period.content == f"user: {LINES[0]}\nuser: {LINES[1]}\nuser: {LINES[2]}\nuser: {SALT}"
    assert period.metadata["summarised_count"] == 4
    assert period.metadata["from"] == NOON.isoformat()
    await agent.memory.restore(RestoreParams(memory_ids=[going.memory_id]))
    await talk.work()
    [period] = await periods(agent)
    assert "degraded" not in period.metadata
    assert len(period.links) == 4


async def test_a_restored_period_learns_what_was_changed_while_it_was_archived(talk: Talking) -> None:
    agent = await weekly(talk)
    await two_sessions(agent, talk)
    [period] = await periods(agent)
    for each in await summaries(agent):
        await change(agent, each.memory_id, pinned=True)
    prune = PruneParams(memory_layer=MemoryType.SEMANTIC, target=1)
    assert (await agent.memory.prune(prune)).memory_ids == [period.memory_id]
    await change(agent, await message(agent, LINES[1]), content=SALT)
    await talk.work()
    await agent.memory.restore(RestoreParams(memory_ids=[period.memory_id]))
    await talk.work()
    [again] = await periods(agent)
    assert (again.memory_id, again.content) == (period.memory_id, f"user: {LINES[0]}\nuser: {SALT}")


@pytest.mark.shows("issue5-2-periods")
async def test_a_users_erasure_reaches_the_periods_that_tell_of_it(talk: Talking) -> None:
    """Neither the session's nor the period's summary names the user."""
    agent = await weekly(talk)
    moment = (NOON + timedelta(hours=1)).isoformat()
    for user_id, text in (("u-1", LINES[0]), ("u-2", LINES[1])):
        params = {
            "session_id": "a",
            "user_id": user_id,
            "messages": [{"role": "user", "content": text, "timestamp": moment}],
        }
        await agent.memory.add_session(AddSessionParams.model_validate(params))
    await end(agent, "a")
    await say(agent, "b", 1, LINES[2])
    await talk.work()
    [period] = await periods(agent)
    assert (period.user_id, period.provenance["users"]) == (None, ["u-1", "u-2"])
    erased = await agent.memory.erase(EraseParams(user_id="u-1", confirm=True))
    assert erased.verified
    await talk.work()
    assert await periods(agent) == []
    left = (await agent.memory.list(ListParams(limit=100))).memories
    assert not any(LINES[0] in each.content for each in left)
