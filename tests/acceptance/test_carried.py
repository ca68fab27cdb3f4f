"""Further fields of an export: caller-provided vectors, validity intervals and supersession."""

from __future__ import annotations

import json
from uuid import UUID, uuid4

import pytest

from agentcore.client import MemoryClient
from agentcore.memory.params.changes import UpdateParams
from agentcore.memory.params.memories import DeleteParams, ListParams, RetrieveParams, StoreParams
from tests.acceptance.test_transfer import day, everything, tally
from tests.fixtures.serving import Serving

VECTOR_DIMENSIONS = 384


@pytest.mark.shows("issue4-export")
async def test_vectors_that_callers_gave_travel_and_those_of_the_embedder_are_made_anew(
    serving: Serving, memory: MemoryClient, agent_id: str
) -> None:
    own = [0.5, -0.25] * (VECTOR_DIMENSIONS // 2)
    await memory.store(StoreParams(content="It has a vector of its own.", embedding=own, timestamp=day(2)))
    await memory.store(StoreParams(content="It has the embedder's.", timestamp=day(3)))
    changed = await memory.store(StoreParams(content="It had one.", embedding=own, timestamp=day(4)))
    await memory.update(
        UpdateParams.model_validate(
            {"memory_id": changed.memory_id, "updates": {"content": "Its words are others now."}}
        )
    )
    exported = serving.cli("export", "--agent", agent_id).stdout
    lines = [json.loads(line) for line in exported.splitlines()]
    assert [line.get("embedding") for line in lines] == [own, None, None]
    other = f"agent-{uuid4()}"
    assert tally(serving.cli("import", "-", "--agent", other, said=exported)) == {"stored": 3}
    async with serving.client(other) as copy:
        listed = (await copy.list(ListParams(vectors=True, descending=False))).memories
        assert [each.embedding for each in listed] == [own, None, None]
        assert [each.embedding for each in (await copy.list(ListParams())).memories] == [None] * 3
        found = await copy.retrieve(RetrieveParams(query="x", query_vector=own, k=1))
        assert found.memories[0].similarity == pytest.approx(1.0, abs=1e-3)


@pytest.mark.shows("issue4-export")
async def test_when_a_memory_was_valid_and_what_replaced_it_travels(
    serving: Serving, memory: MemoryClient, agent_id: str
) -> None:
    # Stored newest first: the superseding memory must exist before the superseded one.
    third = await memory.store(StoreParams(content="The budget is 14,000.", timestamp=day(4)))
    second = await memory.store(
        StoreParams(content="The budget is 12,000.", timestamp=day(3), valid_to=day(4), superseded_by=third.memory_id)
    )
    await memory.store(
        StoreParams(
            content="The budget is 9,000.",
            timestamp=day(2),
            valid_from=day(1),
            valid_to=day(3),
            superseded_by=second.memory_id,
        )
    )
    gone = await memory.store(StoreParams(content="It was cancelled.", timestamp=day(6)))
    await memory.store(
        StoreParams(content="It goes on.", timestamp=day(5), valid_to=day(6), superseded_by=gone.memory_id)
    )
    await memory.delete(DeleteParams(memory_ids=[gone.memory_id]))
    exported = serving.cli("export", "--agent", agent_id).stdout
    other = f"agent-{uuid4()}"
    assert tally(serving.cli("import", "-", "--agent", other, said=exported)) == {"stored": 4}
    async with serving.client(other) as copy:
        after = {record.content: record for record in await everything(copy)}
        says: dict[UUID | None, str] = {record.memory_id: record.content for record in after.values()}
        assert {
            text: (record.valid_from, record.valid_to, says.get(record.superseded_by)) for text, record in after.items()
        } == {
            "The budget is 14,000.": (day(4), None, None),
            "The budget is 12,000.": (day(3), day(4), "The budget is 14,000."),
            "The budget is 9,000.": (day(1), day(3), "The budget is 12,000."),
            "It goes on.": (day(5), None, None),  # its successor was deleted
        }
    assert tally(serving.cli("import", "-", "--agent", other, said=exported)) == {"existing": 4}
