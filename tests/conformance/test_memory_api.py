"""Conformance of the manager and of the client in-process, over HTTP and sync."""

from __future__ import annotations

import ast
import math
import uuid
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import ValidationError

from agentcore.errors import Conflict, InvalidParams, NotFound
from agentcore.limits import MAX_METADATA_DEPTH
from agentcore.memory.api import METHODS, MemoryApi
from agentcore.memory.models import Interaction, MemoryType
from agentcore.params import (
    AddSessionParams,
    ArchivedParams,
    CapabilitiesParams,
    ClearParams,
    CompleteTaskParams,
    ConfigureParams,
    ConsolidateParams,
    CountParams,
    DeleteParams,
    EndSessionParams,
    EraseParams,
    FeedbackParams,
    GetContextParams,
    GetParams,
    HistoryParams,
    LayerRules,
    ListParams,
    Message,
    PruneParams,
    RestoreParams,
    RetrieveParams,
    RevertParams,
    SettingsParams,
    StatsParams,
    StoreBatchParams,
    StoreParams,
    SummarizeParams,
    UpdateParams,
    Updates,
)
from agentcore.runtime import Runtime
from tests.fixtures.memory_faces import FACES

TEA = "Ada prefers green tea over coffee in the morning."
BIKE = "The blue bicycle needs a new chain before Friday."
NOBODY = UUID(int=7)


@pytest.fixture(params=FACES)
async def memory(request: pytest.FixtureRequest, runtime: Runtime) -> AsyncIterator[MemoryApi]:
    """Each implementation, with a unique agent."""
    async with FACES[request.param](runtime, f"agent-{uuid.uuid4()}") as face:
        yield face


async def stored(memory: MemoryApi, content: str) -> UUID:
    result = await memory.store(StoreParams(content=content))
    assert result.memory_id is not None
    return result.memory_id


async def count(memory: MemoryApi) -> int:
    return (await memory.count(CountParams())).count


@pytest.mark.shows("issue6-1-one-suite")
async def test_what_is_stored_is_found_with_its_terms_and_a_receipt(memory: MemoryApi) -> None:
    tea = await memory.store(StoreParams(content=TEA, speaker="Ada", tags=["drinks"]))
    assert (tea.success, tea.status) == (True, "stored")
    found = await memory.retrieve(RetrieveParams(query="does Ada prefer tea or coffee?", explain=True))
    assert (found.memories[0].memory_id, found.memories[0].content) == (tea.memory_id, TEA)
    assert found.memories[0].terms
    assert found.receipt.candidates


async def test_the_named_methods_of_the_specification_are_there(memory: MemoryApi) -> None:
    kept = await memory.add_interaction(Interaction(query=TEA, response="Noted."), session_id="monday")
    [summary] = await memory.retrieve_memories("green tea", k=3, session_id="monday")
    assert summary.memory_id == kept.memory_id
    assert TEA in await memory.get_relevant_context("green tea", max_tokens=300)


async def test_a_context_keeps_to_its_budget_and_names_its_memories(memory: MemoryApi) -> None:
    tea = await memory.store(StoreParams(content=TEA, task_id="breakfast"))
    built = await memory.get_context(
        GetContextParams(query="green tea in the morning", task_id="breakfast", max_tokens=200)
    )
    assert TEA in built.context
    assert 0 < built.token_count <= 200
    assert built.memory_ids == [tea.memory_id]
    ended = await memory.complete_task(CompleteTaskParams(task_id="breakfast"))
    assert ended.cleared_count == 1


async def test_a_batch_answers_for_each_item(memory: MemoryApi) -> None:
    batch = await memory.store_batch(
        StoreBatchParams(
            items=[
                StoreParams(content=BIKE),
                StoreParams(content="hello there"),
                StoreParams(interaction=Interaction(query="Where is the key?", response="Under the mat.")),
            ]
        )
    )
    assert [result.status for result in batch.results] == ["stored", "rejected", "stored"]


@pytest.mark.shows("issue2-6-batch")
async def test_what_is_wrong_with_the_values_of_one_item_refuses_that_item_alone(memory: MemoryApi) -> None:
    batch = await memory.store_batch(
        StoreBatchParams.model_validate(
            {
                "items": [
                    {"content": BIKE},
                    {"content": " "},
                    {"content": "x" * 300_000},
                    {},
                    {"content": TEA, "importance": 7},
                    {"content": TEA},
                ]
            }
        )
    )
    assert [result.code for result in batch.results] == [None, -32602, -32602, -32602, -32602, None]
    assert [result.reason for result in batch.results[1:5]] == [
        "content is empty",
        "content is longer than 262144 characters",
        "requires interaction or content",
        "importance must be less than or equal to 1",
    ]
    assert (batch.success, await count(memory)) == (False, 2)


# Values without a JSON form: a serializer would change them or reject the whole batch.
NOT_JSON: list[tuple[dict[str, Any], str]] = [
    ({"importance": math.nan}, "importance must be a finite number"),
    ({"importance": math.inf}, "importance must be a finite number"),
    ({"metadata": {"weight": math.nan}}, "metadata weight is nan, which JSON cannot represent"),
    ({"metadata": {"weights": [-math.inf]}}, "metadata weights[0] is -inf, which JSON cannot represent"),
    ({"metadata": {"by": object()}}, "metadata by is of type object, which JSON cannot represent"),
    ({"metadata": {"name": "\ud800"}}, "metadata "),
    ({"content": "half a pair: \ud800"}, "content "),
]


@pytest.mark.shows("issue2-6-batch")
async def test_a_value_that_json_has_no_form_for_refuses_its_item_and_nothing_is_made_of_it(memory: MemoryApi) -> None:
    items = [{"content": BIKE} | wrong for wrong, _ in NOT_JSON]
    batch = await memory.store_batch(StoreBatchParams.model_validate({"items": [*items, {"content": TEA}]}))
    added = await memory.add_session(
        AddSessionParams.model_validate({"session_id": "s", "messages": [*items, {"content": None}, {"content": TEA}]})
    )
    for results in (batch.results, added.results):
        for (_, reason), result in zip(NOT_JSON, results, strict=False):
            assert (result.status, result.code) == ("rejected", -32602)
            assert (result.reason or "").startswith(reason)
    assert [result.status for result in batch.results[len(items) :]] == ["stored"]
    assert [(result.status, result.code) for result in added.results[len(items) :]] == [
        ("rejected", None),
        ("stored", None),
    ]
    assert (batch.success, added.success, added.stored_count, added.session_id) == (False, False, 1, "s")
    assert [record.content for record in (await memory.list(ListParams())).memories] == [TEA, TEA]


async def test_where_every_item_is_refused_each_has_its_answer(memory: MemoryApi) -> None:
    batch = await memory.store_batch(
        StoreBatchParams.model_validate({"items": [{"content": TEA, "importance": math.nan}]})
    )
    assert (batch.success, [result.code for result in batch.results]) == (False, [-32602])
    added = await memory.add_session(
        AddSessionParams.model_validate({"session_id": "s", "messages": [{"content": None, "tool_calls": []}]})
    )
    assert (added.success, added.stored_count, added.results[0].code) == (True, 0, None)
    assert "it has no text" in (added.results[0].reason or "")
    assert await count(memory) == 0


async def test_values_are_counted_the_most_frequent_first(memory: MemoryApi) -> None:
    for user, tags in (("ada", ["a"]), ("ben", ["a", "b"]), ("ben", [])):
        await memory.store(content=f"{user} drinks tea {tags}", user_id=user, tags=tags, timestamp="2026-05-01T12:00Z")
    counted = await memory.facets(fields=["user_id", "tags", "day", "task_id"])
    assert {field: [(each.value, each.count) for each in values] for field, values in counted.facets.items()} == {
        "user_id": [("ben", 2), ("ada", 1)],
        "tags": [("a", 2), ("b", 1)],
        "day": [("2026-05-01", 3)],
        "task_id": [],
    }
    assert (counted.memory_count, counted.complete) == (3, True)
    assert (await memory.facets(fields=["task_id"])).memory_count == 3
    one = await memory.facets(fields=["user_id"], user_id="ada", limit=1)
    assert ([each.value for each in one.facets["user_id"]], one.memory_count) == (["ada"], 1)


async def test_background_jobs_are_listed_and_an_unknown_one_is_not_changed(memory: MemoryApi) -> None:
    assert (await memory.jobs(limit=1)).jobs == []
    with pytest.raises(NotFound):
        await memory.change_job(job_id=2**62, action="cancel")


async def test_memories_are_projected_onto_two_axes(memory: MemoryApi) -> None:
    assert (await memory.project()).memory_ids == []
    for user in ("ada", "ben", "ben"):
        await memory.store(content=f"{user} drinks tea", user_id=user, force=True)
    found = await memory.project()
    assert [found.values["user_ids"][each] for each in found.user_ids] == ["ben", "ben", "ada"]
    assert (found.explained, found.without_vectors, found.complete) == ((1.0, 0.0), 0, True)
    assert max(map(abs, (*found.x, *found.y))) == 1.0
    one = await memory.project(user_id="ben", limit=1)
    assert (len(one.memory_ids), one.x, one.y, one.complete) == (1, [0.0], [0.0], False)


async def test_nothing_has_to_be_said_where_nothing_is_asked(memory: MemoryApi) -> None:
    await stored(memory, TEA)
    assert (await memory.stats()).total == (await memory.count()).count == 1
    assert len((await memory.list()).memories) == 1
    assert (await memory.settings()).own == {}
    assert (await memory.capabilities()).features


async def test_a_change_is_kept_in_history_and_can_be_taken_back(memory: MemoryApi) -> None:
    tea = await stored(memory, TEA)
    changed = await memory.update(UpdateParams(memory_id=tea, updates=Updates(content=BIKE)))
    judged = await memory.feedback(FeedbackParams(memory_id=tea, verdict="helpful"))
    assert (changed.version, judged.version) == (2, 3)
    history = await memory.history(HistoryParams(memory_id=tea))
    assert [change.operation for change in history.changes] == ["feedback", "update"]
    reverted = await memory.revert(RevertParams(memory_id=tea, version=1))
    assert reverted.version == 4
    assert (await memory.get(GetParams(memory_id=tea))).memory.content == TEA


async def test_pages_hold_every_memory_once(memory: MemoryApi) -> None:
    kept = {await stored(memory, f"Locker {number} holds the key of door {number}.") for number in range(3)}
    page = await memory.list(ListParams(limit=2))
    rest = await memory.list(ListParams(limit=2, cursor=page.next_cursor))
    assert {record.memory_id for record in [*page.memories, *rest.memories]} == kept
    assert rest.next_cursor is None
    assert (await memory.stats(StatsParams())).total == await count(memory) == 3


async def test_what_is_deleted_is_gone(memory: MemoryApi) -> None:
    tea, _ = await stored(memory, TEA), await stored(memory, BIKE)
    assert (await memory.delete(DeleteParams(memory_ids=[tea]))).deleted_count == 1
    with pytest.raises(NotFound):
        await memory.get(GetParams(memory_id=tea))
    assert (await memory.delete(DeleteParams(all=True, confirm=True))).deleted_count == 1
    assert await count(memory) == 0


async def test_what_is_pruned_can_be_restored(memory: MemoryApi) -> None:
    tea = await stored(memory, TEA)
    pruned = await memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=1))
    assert pruned.memory_ids == [tea]
    archived = await memory.archived(ArchivedParams())
    assert [each.memory_id for each in archived.memories] == [tea]
    restored = await memory.restore(RestoreParams(memory_ids=[tea]))
    assert restored.restored_count == 1
    assert (await memory.get(GetParams(memory_id=tea))).memory.content == TEA


async def test_a_session_is_added_summarised_ended_and_cleared(memory: MemoryApi) -> None:
    added = await memory.add_session(
        AddSessionParams(session_id="s-1", messages=[Message(content=TEA), Message(content=BIKE, role="assistant")])
    )
    assert added.stored_count == 2
    summary = await memory.summarize(SummarizeParams(session_id="s-1"))
    assert TEA in summary.summary
    ended = await memory.end_session(EndSessionParams(session_id="s-1"))
    assert ended.summary_id is not None
    cleared = await memory.clear(ClearParams(session_id="s-1"))
    assert cleared.cleared_count >= 2
    assert await count(memory) == 0


async def test_rules_of_an_agent_are_set_and_told(memory: MemoryApi) -> None:
    configured = await memory.configure(ConfigureParams(layers={MemoryType.EPISODIC: LayerRules(capacity=100)}))
    assert configured.success
    told = await memory.settings(SettingsParams())
    assert told.layers[MemoryType.EPISODIC].capacity == 100
    assert told.own[MemoryType.EPISODIC].capacity == 100


async def test_consolidation_says_what_it_made(memory: MemoryApi) -> None:
    await stored(memory, TEA)
    assert (await memory.consolidate(ConsolidateParams())).model_fields_set


async def test_what_is_erased_leaves_nothing(memory: MemoryApi) -> None:
    await stored(memory, TEA)
    await memory.erase(EraseParams(all=True, confirm=True))
    assert await count(memory) == 0


async def test_the_service_tells_what_it_can_do(memory: MemoryApi) -> None:
    told = await memory.capabilities(CapabilitiesParams())
    assert MemoryType.SEMANTIC in told.memory_types
    assert told.limits


@pytest.mark.shows("AC-7", "issue6-1-one-suite")
async def test_failures_are_the_same_classes_with_the_same_words(memory: MemoryApi) -> None:
    with pytest.raises(NotFound, match=r"^No such memory\.$"):
        await memory.get(GetParams(memory_id=NOBODY))
    with pytest.raises(InvalidParams) as refused:
        await memory.list(ListParams(cursor="made up"))
    assert "cursor" in f"{refused.value.message} {refused.value.data}"
    await memory.store(StoreParams(content=TEA, idempotency_key="one"))
    with pytest.raises(Conflict):
        await memory.store(StoreParams(content=BIKE, idempotency_key="one"))
    assert await count(memory) == 1


@pytest.mark.shows("issue6-1-one-suite")
async def test_what_json_has_no_type_for_is_stored_in_its_form_by_every_face(memory: MemoryApi) -> None:
    said = datetime(2026, 5, 1, 10, tzinfo=UTC)
    told = Interaction(query=TEA, actions=[{"at": said}], outcome=(NOBODY, 1), metadata={"at": said, "of": NOBODY})
    kept = await memory.store(StoreParams(interaction=told))
    assert kept.memory_id is not None
    await memory.update(UpdateParams(memory_id=kept.memory_id, updates=Updates(metadata={"seen": said})))
    record = (await memory.get(GetParams(memory_id=kept.memory_id))).memory
    stands = "2026-05-01T10:00:00Z"
    assert record.metadata == {"at": stands, "of": str(NOBODY), "seen": stands}
    assert (record.actions, record.outcome) == ([{"at": stands}], [str(NOBODY), 1])


async def test_as_deep_as_a_value_may_nest_every_face_stores_it(memory: MemoryApi) -> None:
    deep: Any = "deep"
    for _ in range(MAX_METADATA_DEPTH - 1):
        deep = [deep]
    batch = await memory.store_batch(
        StoreBatchParams(
            items=[StoreParams(interaction=Interaction(query=TEA, actions=[deep], metadata={"deep": deep}))]
        )
    )
    [stored_one] = batch.results
    assert stored_one.memory_id is not None
    assert (await memory.get(GetParams(memory_id=stored_one.memory_id))).memory.metadata == {"deep": deep}


@pytest.mark.shows("issue6-1-one-suite")
async def test_what_json_cannot_say_reaches_no_face(memory: MemoryApi) -> None:
    for value in (float("nan"), float("inf"), object()):
        with pytest.raises(ValidationError, match=r"metadata\n.*at\[0\] is"):
            await memory.store(StoreParams(content=TEA, metadata={"at": [value]}))
    assert await count(memory) == 0


@pytest.mark.shows("issue6-1-one-suite")
def test_the_suite_calls_every_method() -> None:
    nodes = ast.walk(ast.parse(Path(__file__).read_text()))
    called = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "memory"
    }
    assert {method.attribute for method in METHODS} <= called
