"""Consolidation: clusters of episodes become summaries linked to them, idempotently."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from agentcore.errors import InvalidParams, NotFound
from agentcore.maintenance.rounds import LEAST_EPISODES, embed_pending, enqueue_consolidations
from agentcore.memory.deriving import consolidating
from agentcore.memory.models import MemoryRecord, MemoryType
from agentcore.memory.params.agent_settings import ConfigureParams, ConsolidateParams, ConsolidateResult, SettingsParams
from agentcore.memory.params.archived import RestoreParams
from agentcore.memory.params.changes import HistoryParams, UpdateParams
from agentcore.memory.params.memories import CountParams, DeleteParams, PruneParams, RetrieveParams
from agentcore.memory.params.sessions import EndSessionParams
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services

# The hashing embedder compares words only; these texts share most of theirs.
BOILER = (
    "The old boiler lost water pressure again.",
    "The old boiler lost its water pressure overnight.",
    "The old boiler lost all water pressure today.",
)
FOURTH = "The old boiler lost its water pressure at noon."
WINE = (
    "Cheap red wine gave a strong migraine again.",
    "Cheap red wine gave a strong migraine overnight.",
    "Cheap red wine gave a strong migraine today.",
)


async def told(agent: Agent, *contents: str, timestamp: str = "2026-01-01", **values: Any) -> list[UUID]:
    return [await agent.stored_id(each, timestamp=timestamp, **values) for each in contents]


async def consolidated(agent: Agent, **params: Any) -> ConsolidateResult:
    return await agent.memory.consolidate(ConsolidateParams(**params))


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the repeated check of recently changed memories."""
    monkeypatch.setattr(consolidating, "COMMIT_GRACE", timedelta())


async def summaries(agent: Agent) -> int:
    return (await agent.memory.count(CountParams(tags=["consolidated"]))).count


async def only_summary(agent: Agent, **params: Any) -> MemoryRecord:
    [cluster] = (await consolidated(agent, **params)).clusters
    assert cluster.memory_id is not None
    return await agent.get(cluster.memory_id)


@pytest.mark.shows("issue4-3-clusters")
async def test_a_cluster_becomes_a_summary_in_its_own_words_that_points_to_its_sources(agent: Agent) -> None:
    sources = await told(agent, *BOILER, user_id="u-1", tags=["home"])
    other = await told(agent, "My sister keeps goats in Wales.")
    result = await consolidated(agent)
    assert (result.success, result.complete, result.looked_at_count) == (True, True, 4)
    [cluster] = result.clusters
    assert cluster.source_ids == sources
    assert cluster.memory_id is not None
    summary = await agent.get(cluster.memory_id)
    assert summary.memory_type == "semantic"
    assert set(summary.content.splitlines()) <= {*BOILER}
    assert (summary.user_id, summary.tags) == ("u-1", ["consolidated"])
    assert summary.metadata["sources"] == [str(each) for each in sources]
    assert summary.provenance["form"] == "consolidation"
    assert {(link.target_id, link.relation) for link in summary.links} == {(each, "summarises") for each in sources}
    assert {*(await agent.get(sources[0])).related_memory_ids} == {summary.memory_id}
    assert other[0] not in cluster.source_ids


async def test_a_dry_run_lists_what_the_next_run_makes_and_writes_nothing(agent: Agent) -> None:
    await told(agent, *BOILER, *WINE)
    shown = await consolidated(agent, dry_run=True)
    assert (len(shown.clusters), await summaries(agent)) == (2, 0)
    made = await consolidated(agent)
    assert [each.model_dump(exclude={"memory_id"}) for each in shown.clusters] == [
        each.model_dump(exclude={"memory_id"}) for each in made.clusters
    ]
    assert await summaries(agent) == 2


@pytest.mark.shows("issue4-3-idempotent")
async def test_done_again_it_makes_nothing_new(agent: Agent) -> None:
    await told(agent, *BOILER, *WINE)
    assert len((await consolidated(agent)).clusters) == 2
    for again in (False, True):
        assert (await consolidated(agent, again=again)).clusters == []
    side_by_side = await asyncio.gather(*(consolidated(agent, again=True) for _ in range(4)))
    assert [each.clusters for each in side_by_side] == [[]] * 4
    assert await summaries(agent) == 2


@pytest.mark.shows("issue4-3-idempotent")
async def test_runs_side_by_side_make_one_summary(agent: Agent) -> None:
    await told(agent, *BOILER)
    results = await asyncio.gather(*(consolidated(agent) for _ in range(6)))
    assert sum(len(each.clusters) for each in results) == 1
    assert await summaries(agent) == 1


async def test_a_cluster_that_grew_gets_a_new_summary_that_supersedes_the_old(agent: Agent) -> None:
    sources = await told(agent, *BOILER)
    old = await only_summary(agent)
    sources += await told(agent, FOURTH, timestamp="2026-01-02")
    new = await only_summary(agent)
    assert {link.target_id for link in new.links} == {*sources}
    before = await agent.get(old.memory_id)
    assert before.superseded_by == new.memory_id
    assert before.valid_to is not None
    assert before.content == old.content
    history = await agent.memory.history(HistoryParams(memory_id=old.memory_id))
    told_of = [(each.operation, each.version) for each in history.changes]
    assert told_of == [("supersede", 2), ("consolidate", 1)]
    assert history.changes[0].token_id == "token-1"


async def test_a_corrected_source_gives_a_corrected_summary(agent: Agent) -> None:
    sources = await told(agent, *BOILER)
    old = await only_summary(agent)
    corrected = "The old boiler lost a little water pressure today."
    await agent.memory.update(UpdateParams.model_validate({"memory_id": sources[2], "updates": {"content": corrected}}))
    new = await only_summary(agent)
    assert (await agent.get(old.memory_id)).superseded_by == new.memory_id
    assert BOILER[2] not in new.content


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"memory_type": "working", "task_id": "t"}, "working memory ends with its task"),
        ({"memory_type": "semantic"}, "only episodes are consolidated"),
        ({"pinned": True}, "pinned"),
        ({"timestamp": datetime.now(UTC).isoformat()}, "not a day old"),
        ({"user_id": "u-2"}, "of another user"),
        ({"namespace": "n-2"}, "of another namespace"),
        ({"speaker": "Noah"}, "said by somebody else"),
    ],
)
async def test_what_may_not_stand_in_a_cluster_leaves_it_too_small(
    agent: Agent, values: dict[str, Any], why: str
) -> None:
    await told(agent, *BOILER[:2])
    await told(agent, BOILER[2], **values)
    assert (await consolidated(agent)).clusters == [], why


@pytest.mark.usefixtures("settled")
async def test_what_comes_back_from_the_archive_is_looked_at_though_newer_episodes_were(agent: Agent) -> None:
    sources = await told(agent, *BOILER)
    everything = PruneParams(memory_layer=MemoryType.EPISODIC, target=1.0)
    assert (await agent.memory.prune(everything)).pruned_count == 3
    await told(agent, "Meter 7 was read in the cellar.")
    assert (await consolidated(agent)).looked_at_count == 1
    await agent.memory.restore(RestoreParams(all=True))
    assert len((await consolidated(agent, dry_run=True)).clusters) == 1
    summary = await only_summary(agent)
    assert {link.target_id for link in summary.links} == {*sources}
    assert (await consolidated(agent)).looked_at_count == 0


@pytest.mark.usefixtures("settled")
async def test_what_was_promoted_is_looked_at_once_it_has_a_vector(agent: Agent) -> None:
    sources = await told(agent, *BOILER, memory_type=MemoryType.WORKING, session_id="s", importance=0.9)
    await told(agent, "Meter 7 was read in the cellar.")
    await consolidated(agent)
    ended = await agent.memory.end_session(EndSessionParams(session_id="s", summarize=False))
    assert ended.promoted_count == 3
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "UPDATE memories SET embedding = NULL, embedding_model = NULL WHERE memory_id = %s", (sources[0],)
        )
    assert (await consolidated(agent)).clusters == []
    embedder = agent.runtime.parts.embedder
    assert embedder is not None
    await embed_pending(agent.runtime.database, embedder)
    summary = await only_summary(agent)
    assert {link.target_id for link in summary.links} == {*sources}


async def test_a_superseded_memory_stands_in_no_cluster(agent: Agent) -> None:
    sources = await told(agent, *BOILER)
    async with agent.runtime.database.owner_transaction() as connection:
        await connection.execute(
            "UPDATE memories SET superseded_by = %s WHERE agent_id = %s AND memory_id = %s",
            (sources[0], agent.agent_id, sources[1]),
        )
    assert (await consolidated(agent)).clusters == []


@pytest.mark.shows("issue4-3-idempotent")
async def test_a_run_that_is_killed_in_the_middle_is_done_to_the_same_end(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    await told(agent, *BOILER, *WINE)
    kept = consolidating.Consolidating._store_summary
    written: list[object] = []

    async def dies(self: Any, *arguments: Any) -> None:
        if written:
            raise asyncio.CancelledError
        written.append(arguments)
        await kept(self, *arguments)

    with monkeypatch.context() as patched:
        patched.setattr(consolidating.Consolidating, "_store_summary", dies)
        with pytest.raises(asyncio.CancelledError):
            await consolidated(agent)
    assert await summaries(agent) == 1
    assert len((await consolidated(agent)).clusters) == 1
    assert await summaries(agent) == 2


async def test_what_is_too_young_is_counted(agent: Agent) -> None:
    today = agent.runtime.parts.clock().isoformat()
    await told(agent, *WINE, timestamp=today)
    first = await consolidated(agent)
    assert (first.looked_at_count, len(first.clusters)) == (0, 0)
    assert [(each.reason, each.count) for each in first.receipt.dropped] == [("too_young", len(WINE))]


@pytest.mark.shows("issue4-3-sources")
async def test_archived_sources_leave_their_summary_which_still_names_them(agent: Agent) -> None:
    sources = await told(agent, *BOILER)
    young = await told(agent, FOURTH, timestamp=agent.runtime.parts.clock().date().isoformat())
    summary = await only_summary(agent)
    shown = await consolidated(agent, archive_sources=True, dry_run=True)
    result = await consolidated(agent, archive_sources=True)
    assert (shown.archived_count, result.archived_count, result.complete) == (3, 3, True)
    for each in sources:
        with pytest.raises(NotFound):
            await agent.get(each)
    assert await agent.get(young[0])
    left = await agent.get(summary.memory_id)
    assert left.content == summary.content
    assert left.metadata["sources"] == [str(each) for each in sources]
    history = await agent.memory.history(HistoryParams(memory_id=summary.memory_id))
    assert [each.operation for each in history.changes] == ["archive_sources", "consolidate"]
    assert {tie["target_id"] for tie in (history.changes[0].before or {})["links"]} == {*map(str, sources)}
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(
            "SELECT memory_id, reason FROM archived_memories WHERE agent_id = %s", (agent.agent_id,)
        )
        rows = await cursor.fetchall()
    assert {row["memory_id"] for row in rows} == {*sources}
    assert {row["reason"] for row in rows} == {"consolidation"}
    assert (await consolidated(agent, archive_sources=True, again=True)).archived_count == 0


async def test_a_summary_whose_sources_are_archived_is_not_replaced(agent: Agent) -> None:
    await told(agent, *BOILER)
    old = await only_summary(agent)
    await consolidated(agent, archive_sources=True)
    await told(agent, *(f"{each[:-1]}, once more." for each in BOILER), timestamp="2026-02-01")
    new = await only_summary(agent)
    assert (await agent.get(old.memory_id)).superseded_by is None
    assert len(new.links) == 3


async def test_deleting_a_source_deletes_the_summary_that_holds_its_words(agent: Agent) -> None:
    sources = await told(agent, *BOILER, session_id="s-1")
    summary = await only_summary(agent)
    await agent.memory.delete(DeleteParams(memory_ids=sources[:1]))
    with pytest.raises(NotFound):
        await agent.get(summary.memory_id)
    assert await agent.get(sources[1])


async def test_the_summaries_of_a_deleted_session_go_though_they_span_others(agent: Agent) -> None:
    await told(agent, *BOILER[:2], session_id="s-1")
    await told(agent, BOILER[2], session_id="s-2")
    summary = await only_summary(agent)
    assert summary.session_id is None
    await agent.memory.delete(DeleteParams(session_id="s-2", confirm=True))
    with pytest.raises(NotFound):
        await agent.get(summary.memory_id)


async def test_equal_words_of_two_agents_become_a_summary_of_each(agent: Agent) -> None:
    other = Agent(agent.runtime)
    sources = {each: await told(each, *BOILER) for each in (agent, other)}
    for each in (agent, other):
        summary = await only_summary(each)
        assert {link.target_id for link in summary.links} == {*sources[each]}
        with pytest.raises(NotFound):
            await (other if each is agent else agent).get(summary.memory_id)


async def test_a_search_gives_the_sources_and_their_summary_only_where_they_are_gone(agent: Agent) -> None:
    await told(agent, *BOILER)
    query = "What did the old boiler lose?"
    before = await agent.memory.retrieve(RetrieveParams(query=query, k=10))
    summary = await only_summary(agent)
    after = await agent.memory.retrieve(RetrieveParams(query=query, k=10))
    assert [each.memory_id for each in after.memories] == [each.memory_id for each in before.memories]
    assert {each.reason for each in after.receipt.dropped} == {"summary_of_what_is_found"}
    of_layer = await agent.memory.retrieve(RetrieveParams(query=query, k=10, memory_types=["semantic"]))
    assert [each.memory_id for each in of_layer.memories] == [summary.memory_id]
    await consolidated(agent, archive_sources=True)
    archived = await agent.memory.retrieve(RetrieveParams(query=query, k=10))
    assert [each.memory_id for each in archived.memories] == [summary.memory_id]


async def test_without_an_archive_no_source_goes(services: Services) -> None:
    async with open_runtime(settings_for(services, memory_archival_enabled=False)) as runtime:
        agent = Agent(runtime)
        await told(agent, *BOILER)
        with pytest.raises(InvalidParams):
            await consolidated(agent, archive_sources=True)
        assert await summaries(agent) == 0


@pytest.fixture
async def queue(runtime: Runtime) -> AsyncIterator[Runtime]:
    """The service with an empty job queue."""
    async with runtime.database.owner_transaction() as connection:
        await connection.execute("DELETE FROM procrastinate_jobs")
        await connection.execute("DELETE FROM agent_settings")
    yield runtime


async def enqueued(runtime: Runtime) -> int:
    return await enqueue_consolidations(runtime.database, runtime.parts)


@pytest.mark.shows("issue4-3-off")
async def test_it_is_off_unless_the_agent_is_given_it(agent: Agent, queue: Runtime) -> None:
    await told(agent, *BOILER)
    for number in range(LEAST_EPISODES):
        await told(agent, f"Diary page {number} tells of day {number * 7}.")
    assert await enqueued(queue) == 0
    assert not (await agent.memory.settings(SettingsParams())).consolidate
    answer = await agent.memory.configure(ConfigureParams(consolidate=True))
    assert (answer.consolidate, answer.archive_sources_after_days) == (True, 0)
    assert await enqueued(queue) == 1
    await queue.jobs.run_pending()
    assert await summaries(agent) == 1
    assert (await agent.get((await told(agent, FOURTH))[0])).memory_type == "episodic"


async def test_too_few_new_episodes_wait_for_more(agent: Agent, queue: Runtime) -> None:
    await agent.memory.configure(ConfigureParams(consolidate=True, archive_sources_after_days=7))
    await told(agent, *BOILER)
    assert await enqueued(queue) == 0


async def test_a_job_that_was_switched_off_meanwhile_does_nothing(agent: Agent, queue: Runtime) -> None:
    await told(agent, *BOILER)
    async with queue.parts.storage.transaction(agent.agent_id) as transaction:
        await transaction.jobs.enqueue("consolidate_episodes")
    await queue.jobs.run_pending()
    assert await summaries(agent) == 0


@pytest.mark.shows("issue4-3-off")
async def test_a_job_archives_sources_where_the_agent_wishes_it_and_goes_on_until_done(
    agent: Agent, queue: Runtime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(consolidating, "PAGE", 2)
    monkeypatch.setattr(consolidating, "MAX_PROCESSED", 2)
    await agent.memory.configure(ConfigureParams(consolidate=True, archive_sources_after_days=7))
    sources = await told(agent, *BOILER, *WINE)
    async with queue.parts.storage.transaction(agent.agent_id) as transaction:
        await transaction.jobs.enqueue("consolidate_episodes")
    while await queue.jobs.queue.page(agent_id=agent.agent_id):
        await queue.jobs.run_pending()
    assert await summaries(agent) == 2
    assert (await agent.memory.count(CountParams(memory_types=["episodic"]))).count == 0
    assert len(sources) == 6
