"""Isolation properties: agents with equal ids, keys and words each see only their own data.

A model of plain dictionaries per agent, unaware of the others, predicts every answer.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcore.errors import AgentCoreError, Conflict, InvalidParams, NotFound
from agentcore.memory.api import METHODS, Caller, MemoryApi
from agentcore.memory.models import MemoryType
from agentcore.memory.params.changes import Verdict
from agentcore.params import (
    AddSessionParams,
    ArchivedParams,
    CapabilitiesParams,
    ChangeJobParams,
    ClearParams,
    CompleteTaskParams,
    ConfigureParams,
    ConsolidateParams,
    CountParams,
    DeleteParams,
    EndSessionParams,
    EraseParams,
    FacetsParams,
    FeedbackParams,
    GetContextParams,
    GetParams,
    HistoryParams,
    JobsParams,
    LayerRules,
    ListParams,
    ProjectParams,
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
)
from agentcore.runtime import Runtime
from tests.fixtures.isolation_model import Model, Stage, Turn
from tests.fixtures.plays import Play

NAMES = ("", ":t1", ":t1:t1")  # an agent's name may end as another's key continues
WORDS = ("zebra", "heron", "otter")
# The same for all agents, except for two with the agent's own word.
TEXTS = (
    "The spare key lies under the blue flower pot.",
    "The train to Ghent leaves at seven from platform four.",
    "Anna works at the harbour of Porto.",
    "The secret of {word} is a number with nine digits.",
    "Only {word} knows the way to the cellar.",
)
LAYERS = (MemoryType.EPISODIC, MemoryType.SEMANTIC, MemoryType.WORKING)


# --- operations and their expected results ------------------------------------------------------------------


async def store(turn: Turn, item: dict[str, Any]) -> None:
    params = StoreParams.model_validate({**item, "content": turn.model.said(item["content"])})
    conflict = [Conflict] if turn.model.is_conflict(item) else []
    result = await turn.ask(turn.memory.store, params, *conflict)
    if result is not None:
        turn.model.store(item, result)
        turn.stage.ids.append(result.memory_id)


async def store_batch(turn: Turn, items: list[dict[str, Any]]) -> None:
    said = [{**item, "content": turn.model.said(item["content"])} for item in items]
    result = await turn.ask(turn.memory.store_batch, StoreBatchParams.model_validate({"items": said}))
    for item, each in zip(items, result.results, strict=True):
        turn.model.store(item, each)
        turn.stage.ids += [] if each.memory_id is None else [each.memory_id]


async def update(turn: Turn, place: int, change: dict[str, Any], target: int | None) -> None:
    memory_id, model = turn.stage.id_at(place), turn.model
    updates = dict(change)
    if "content" in change:
        updates["content"] = model.said(change["content"])
    errors: list[type[AgentCoreError]] = [] if memory_id in model.visible() else [NotFound]
    if target is not None:
        target_id = turn.stage.id_at(target)
        updates["links"] = [{"target_id": target_id}]
        if not errors and target_id == memory_id:
            errors = [InvalidParams]
        elif not errors and target_id not in model.rows:
            errors = [NotFound]
    params = UpdateParams.model_validate({"memory_id": memory_id, "updates": updates})
    if await turn.ask(turn.memory.update, params, *errors) is not None:
        known = model.rows[memory_id]
        known.past.append((known.content, known.tags))
        known.content = updates.get("content", known.content)
        known.tags = tuple(updates.get("tags", known.tags))


async def history(turn: Turn, place: int) -> None:
    memory_id = turn.stage.id_at(place)
    known = turn.model.visible().get(memory_id)
    params = HistoryParams(memory_id=memory_id)
    result = await turn.ask(turn.memory.history, params, *([] if known is not None else [NotFound]))
    if known is not None:
        made = [change.version for change in result.changes if change.version is not None]
        assert (result.version, len(made)) == (len(known.past) + 1, len(known.past))


async def revert(turn: Turn, place: int, version: int) -> None:
    memory_id = turn.stage.id_at(place)
    known = turn.model.visible().get(memory_id)
    errors: list[type[AgentCoreError]] = [NotFound] if known is None else []
    if known is not None and version > len(known.past):
        errors = [InvalidParams]
    params = RevertParams(memory_id=memory_id, version=version)
    if await turn.ask(turn.memory.revert, params, *errors) is not None and known is not None:
        known.past.append((known.content, known.tags))
        known.content, known.tags = known.past[version - 1]


async def feedback(turn: Turn, place: int, verdict: Verdict) -> None:
    memory_id = turn.stage.id_at(place)
    known = turn.model.visible().get(memory_id)
    params = FeedbackParams(memory_id=memory_id, verdict=verdict, note=turn.model.said("{word}"))
    await turn.ask(turn.memory.feedback, params, *([] if known is not None else [NotFound]))
    if known is not None:
        known.past.append((known.content, known.tags))


async def add_session(turn: Turn, session_id: str, texts: list[str]) -> None:
    said = [{"content": turn.model.said(text)} for text in texts]
    params = AddSessionParams.model_validate({"session_id": session_id, "messages": said})
    result = await turn.ask(turn.memory.add_session, params)
    for text, each in zip(texts, result.results, strict=True):
        item = {"content": text, "memory_type": MemoryType.EPISODIC, "session_id": session_id, "speaker": "user"}
        turn.model.store(item, each)
        turn.stage.ids += [] if each.memory_id is None else [each.memory_id]


async def end_session(turn: Turn, session_id: str) -> None:
    working = turn.model.visible({"session_id": session_id, "memory_types": [MemoryType.WORKING]})
    params = EndSessionParams(session_id=session_id, summarize=False)
    result = await turn.ask(turn.memory.end_session, params)
    assert result.promoted_count + result.ended_count == len(working)
    left = await turn.ask(turn.memory.list, ListParams(session_id=session_id, limit=1_000))
    lasting = {each.memory_id for each in left.memories} & set(working)
    assert len(lasting) == result.promoted_count
    for memory_id, known in working.items():
        known.past.append((known.content, known.tags))
        known.hidden = memory_id not in lasting
        known.layer = MemoryType.EPISODIC


async def summarize(turn: Turn, session_id: str) -> None:
    result = await turn.ask(turn.memory.summarize, SummarizeParams(session_id=session_id))
    held = turn.model.visible({"session_id": session_id})
    assert set(result.memory_ids) <= set(held)
    assert result.memory_count == len(held)


async def clear(turn: Turn, session_id: str) -> None:
    going = turn.model.visible({"session_id": session_id})
    result = await turn.ask(turn.memory.clear, ClearParams(session_id=session_id))
    assert result.cleared_count == len(going)
    for memory_id in going:
        del turn.model.rows[memory_id]


async def show_settings(turn: Turn) -> None:
    result = await turn.ask(turn.memory.settings, SettingsParams())
    assert {layer: each.capacity for layer, each in result.own.items()} == turn.model.capacities


async def configure(turn: Turn, layer: MemoryType, capacity: int) -> None:
    changes = {layer: LayerRules(capacity=capacity)}
    await turn.ask(turn.memory.configure, ConfigureParams(layers=changes))
    turn.model.capacities[layer] = capacity


async def consolidate(turn: Turn, again: bool) -> None:
    # A preview only: a result would contain the agent's own memories.
    result = await turn.ask(turn.memory.consolidate, ConsolidateParams(dry_run=True, again=again))
    assert {each for cluster in result.clusters for each in cluster.source_ids} <= set(turn.model.rows)


async def get(turn: Turn, place: int) -> None:
    memory_id = turn.stage.id_at(place)
    known = turn.model.visible().get(memory_id)
    result = await turn.ask(turn.memory.get, GetParams(memory_id=memory_id), *([] if known is not None else [NotFound]))
    if known is not None:
        assert (result.memory.content, result.memory.task_id) == (known.content, known.task_id)
        assert set(result.memory.related_memory_ids) <= set(turn.model.rows)


async def list_memories(turn: Turn, filters: dict[str, Any]) -> None:
    result = await turn.ask(turn.memory.list, ListParams.model_validate({**filters, "limit": 1_000}))
    assert {each.memory_id: each.content for each in result.memories} == {
        memory_id: known.content for memory_id, known in turn.model.visible(filters).items()
    }


async def count_memories(turn: Turn, filters: dict[str, Any]) -> None:
    result = await turn.ask(turn.memory.count, CountParams.model_validate(filters))
    assert result.count == len(turn.model.visible(filters))


async def count_values(turn: Turn, filters: dict[str, Any]) -> None:
    result = await turn.ask(turn.memory.facets, FacetsParams.model_validate({"fields": ["memory_type"], **filters}))
    visible = turn.model.visible(filters)
    assert result.memory_count == len(visible)
    assert sum(each.count for each in result.facets["memory_type"]) == len(visible)


async def list_jobs(turn: Turn) -> None:
    await turn.ask(turn.memory.jobs, JobsParams())


async def change_a_strange_job(turn: Turn, action: Literal["retry", "cancel"]) -> None:
    others = [memory for memory in turn.stage.memories if memory is not turn.memory]
    strange = [job.job_id for memory in others for job in (await memory.jobs(JobsParams())).jobs]
    for job_id in [*strange[:2], 2**62]:
        await turn.ask(turn.memory.change_job, ChangeJobParams(job_id=job_id, action=action), NotFound)


async def project(turn: Turn, filters: dict[str, Any]) -> None:
    result = await turn.ask(turn.memory.project, ProjectParams.model_validate(filters))
    assert set(result.memory_ids) <= set(turn.model.visible(filters))
    assert len(result.memory_ids) + result.without_vectors == len(turn.model.visible(filters))


async def retrieve(turn: Turn, text: str, filters: dict[str, Any]) -> None:
    params = RetrieveParams.model_validate({"query": turn.model.said(text), "k": 200, **filters})
    result = await turn.ask(turn.memory.retrieve, params)
    visible = turn.model.visible(filters)
    assert {each.memory_id: each.content for each in result.memories}.items() <= {
        memory_id: known.content for memory_id, known in visible.items()
    }.items()
    assert bool(result.memories) == bool(visible)


async def get_context(turn: Turn, text: str, task_id: str | None) -> None:
    params = GetContextParams(query=turn.model.said(text), task_id=task_id, max_tokens=4_000)
    result = await turn.ask(turn.memory.get_context, params)
    assert set(result.memory_ids) <= set(turn.model.visible())


async def delete(turn: Turn, places: list[int], filters: dict[str, Any] | None) -> None:
    if filters is None:
        named = {turn.stage.id_at(place) for place in places}
        going = named & set(turn.model.visible())
        params = DeleteParams.model_validate({"memory_ids": list(named)})
    else:
        going = set(turn.model.visible(filters))
        params = DeleteParams.model_validate({**(filters or {"all": True}), "confirm": True})
    result = await turn.ask(turn.memory.delete, params)
    assert result.deleted_count == len(going)
    for memory_id in going:
        del turn.model.rows[memory_id]


async def prune(turn: Turn, layer: MemoryType, strategy: str, target: int, dry_run: bool) -> None:
    params = PruneParams.model_validate(
        {"memory_layer": layer, "strategy": strategy, "target": target, "dry_run": dry_run}
    )
    result = await turn.ask(turn.memory.prune, params)
    layer_now = turn.model.visible({"memory_types": [layer]})
    assert set(result.memory_ids) <= set(layer_now)
    assert len(result.memory_ids) == min(target, len(layer_now))
    assert result.pruned_count == (0 if dry_run else len(result.memory_ids))
    for memory_id in () if dry_run else result.memory_ids:
        turn.model.archived[memory_id] = turn.model.rows.pop(memory_id)


async def complete_task(turn: Turn, task_id: str) -> None:
    model = turn.model
    since = model.completed.get(task_id, -1)
    held = [known for known in model.visible({"task_id": task_id}).values() if known.place > since]
    result = await turn.ask(turn.memory.complete_task, CompleteTaskParams(task_id=task_id))
    assert result.cleared_count == len(held)
    model.completed[task_id] = next(model.places)
    for known in model.visible({"task_id": task_id, "memory_types": [MemoryType.WORKING]}).values():
        known.hidden = True


async def stats(turn: Turn) -> None:
    result = await turn.ask(turn.memory.stats, StatsParams())
    assert (result.total, result.archived) == (len(turn.model.visible()), len(turn.model.archived))


async def erase_all(turn: Turn) -> None:
    result = await turn.ask(turn.memory.erase, EraseParams(all=True, confirm=True))
    assert result.verified
    assert result.erased.get("memories", 0) == len(turn.model.rows)
    turn.stage.models[turn.stage.models.index(turn.model)] = Model(turn.model.word)


async def capabilities(turn: Turn) -> None:
    assert (await turn.ask(turn.memory.capabilities, CapabilitiesParams())).limits


async def restore(turn: Turn, place: int, filters: dict[str, Any] | None) -> None:
    """Restores by id (existing, another agent's or nonexistent) or by filter."""
    archived, memory_id = turn.model.archived, turn.stage.id_at(place)
    if filters is None:
        wanted, params = {memory_id}, RestoreParams(memory_ids=[memory_id])
        there = memory_id in turn.model.visible()
        errors = [] if memory_id in archived else [Conflict if there else NotFound]
    else:
        wanted, errors = {each for each, known in archived.items() if known.matches(filters)}, []
        params = RestoreParams.model_validate(filters or {"all": True})
    result = await turn.ask(turn.memory.restore, params, *errors)
    if result is not None:
        assert set(result.memory_ids) == wanted
        turn.model.rows |= {each: archived.pop(each) for each in wanted}


async def list_archived(turn: Turn, filters: dict[str, Any]) -> None:
    """Lists the archive and expects only the agent's own memories."""
    result = await turn.ask(turn.memory.archived, ArchivedParams.model_validate({**filters, "limit": 1_000}))
    assert {each.memory_id for each in result.memories} == {
        each for each, known in turn.model.archived.items() if known.matches(filters)
    }


tasks, sessions = st.sampled_from(["t1", "t2"]), st.sampled_from(["s1", "s2"])
tags = st.lists(st.sampled_from(["red", "blue"]), max_size=2, unique=True)
a_tag = st.lists(st.sampled_from(["red", "blue"]), min_size=1, max_size=1)
texts, places = st.sampled_from(TEXTS), st.integers(0, 40)
filters = st.fixed_dictionaries(
    {},
    optional={
        "task_id": tasks,
        "session_id": sessions,
        "tags": a_tag,
        "memory_types": st.lists(st.sampled_from(LAYERS), min_size=1, unique=True),
    },
)
items = st.fixed_dictionaries(
    {"content": texts, "memory_type": st.sampled_from(LAYERS)},
    optional={
        "task_id": tasks,
        "session_id": sessions,
        "tags": tags,
        "idempotency_key": st.sampled_from(["k1", "k2", "k3"]),
    },
)
changes = st.fixed_dictionaries({"importance": st.sampled_from([0.1, 0.9])}, optional={"content": texts, "tags": tags})

OPERATIONS: dict[str, tuple[Callable[..., Awaitable[None]], tuple[st.SearchStrategy[Any], ...]]] = {
    "memory.store": (store, (items,)),
    "memory.store_batch": (store_batch, (st.lists(items, min_size=2, max_size=6),)),
    "memory.retrieve": (retrieve, (texts, filters)),
    "memory.get_context": (get_context, (texts, st.none() | tasks)),
    "memory.update": (update, (places, changes, st.none() | places)),
    "memory.history": (history, (places,)),
    "memory.revert": (revert, (places, st.integers(1, 4))),
    "memory.feedback": (feedback, (places, st.sampled_from(["helpful", "unhelpful", "wrong"]))),
    "memory.add_session": (add_session, (sessions, st.lists(texts, min_size=1, max_size=3))),
    "memory.end_session": (end_session, (sessions,)),
    "memory.summarize": (summarize, (sessions,)),
    "memory.clear": (clear, (sessions,)),
    "memory.settings": (show_settings, ()),
    "memory.configure": (configure, (st.sampled_from(LAYERS), st.integers(0, 3))),
    "memory.consolidate": (consolidate, (st.booleans(),)),
    "memory.prune": (
        prune,
        (
            st.sampled_from([layer for layer in LAYERS if layer != MemoryType.WORKING]),
            st.sampled_from(["least_relevant", "oldest_first", "frequency_based", "retention_curve"]),
            st.integers(1, 3),
            st.booleans(),
        ),
    ),
    "memory.restore": (restore, (places, st.none() | filters)),
    "memory.archived": (list_archived, (filters,)),
    "memory.get": (get, (places,)),
    "memory.list": (list_memories, (filters,)),
    "memory.count": (count_memories, (filters,)),
    "memory.facets": (count_values, (filters,)),
    "memory.project": (project, (filters,)),
    "memory.delete": (delete, (st.lists(places, min_size=1, max_size=4), st.none() | filters)),
    "memory.stats": (stats, ()),
    "memory.capabilities": (capabilities, ()),
    "memory.jobs": (list_jobs, ()),
    "memory.change_job": (change_a_strange_job, (st.sampled_from(["retry", "cancel"]),)),
    "memory.erase": (erase_all, ()),
    "memory.complete_task": (complete_task, (tasks,)),
}
calls = st.one_of(
    *(
        st.tuples(st.integers(0, len(NAMES) - 1), st.just(name), st.tuples(*arguments))
        for name, (_, arguments) in OPERATIONS.items()
    )
)
# Each agent starts with the same batch, to make collisions likely.
beginnings = st.lists(items, min_size=2, max_size=5)


# --- the test ----------------------------------------------------------------------------------------------


def test_every_method_takes_part() -> None:
    assert set(OPERATIONS) == {method.name for method in METHODS}


@settings(max_examples=30)
@given(beginning=beginnings, script=st.lists(calls, min_size=5, max_size=30))
@pytest.mark.shows("issue2-isolation")
def test_each_agent_sees_what_it_did_itself_and_no_more(
    in_service: Play, beginning: list[dict[str, Any]], script: list[tuple[int, str, tuple[Any, ...]]]
) -> None:
    async def play(runtime: Runtime) -> tuple[list[int], list[int]]:
        name = f"agent-{uuid.uuid4()}"
        memories: list[MemoryApi] = [runtime.manager_for(Caller(name + ending)) for ending in NAMES]
        stage = Stage(memories, [Model(word) for word in WORDS])
        for who in range(len(NAMES)):
            await store_batch(Turn(stage, who), beginning)
        for who, method, arguments in script:
            await OPERATIONS[method][0](Turn(stage, who), *arguments)
        for who in range(len(NAMES)):
            await list_memories(Turn(stage, who), {})
            await stats(Turn(stage, who))
        counted = [(await memory.count(CountParams())).count for memory in stage.memories]
        return counted, [len(model.visible()) for model in stage.models]

    counted, expected = in_service(play)
    assert counted == expected
