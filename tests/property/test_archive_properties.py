"""Archive properties: a dry run equals the run, and a restore returns what was archived."""

from __future__ import annotations

import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentcore.memory.api import Caller
from agentcore.memory.models import MemoryType
from agentcore.memory.params.archived import RestoreParams
from agentcore.memory.params.memories import PruneParams, StoreBatchParams
from agentcore.runtime import Runtime
from benchmarks.crash.records import records
from benchmarks.crash.states import Said, prunes_as_said
from tests.fixtures.plays import Play

STATES = 5
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=80).filter(
    lambda text: bool(text.strip())
)
ids = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
# Up to 2023: future timestamps are rejected.
moments = st.integers(-(10**15), 17 * 10**14).map(lambda each: EPOCH + timedelta(microseconds=each))
vectors = st.none() | st.lists(
    st.floats(-60_000, 60_000, width=16).filter(lambda value: value == 0 or abs(value) > 1e-3), min_size=64, max_size=64
).filter(any)
items = st.fixed_dictionaries(
    {"content": texts, "force": st.just(True), "timestamp": moments},
    optional={
        "importance": st.floats(0, 1) | st.just(-0.0),
        "tags": st.lists(texts, max_size=3),
        "metadata": st.dictionaries(texts, values, max_size=3),
        "session_id": ids,
        "user_id": ids,
        "task_id": ids,
        "namespace": ids,
        "speaker": ids,
        "external_id": ids,
        "embedding": vectors,
        "ttl_seconds": st.integers(3_600, 10**9),
    },
)


@settings(max_examples=20)
@given(stored=st.lists(items, min_size=1, max_size=5))
@pytest.mark.shows("issue4-6-restore")
def test_any_memory_comes_back_from_the_archive_byte_for_byte(in_service: Play, stored: list[dict[str, Any]]) -> None:
    async def play(runtime: Runtime) -> None:
        agent_id = f"agent-{uuid.uuid4()}"
        memory = runtime.manager_for(Caller(agent_id))
        done = await memory.store_batch(StoreBatchParams.model_validate({"items": stored}))
        assert done.success, done
        before = await records(runtime.database.url, agent_id)
        assert len(before) == len(stored)
        pruned = await memory.prune(PruneParams(memory_layer=MemoryType.EPISODIC, target=1.0))
        assert pruned.pruned_count == len(stored)
        assert await records(runtime.database.url, agent_id) == {}
        await memory.restore(RestoreParams(all=True))
        assert await records(runtime.database.url, agent_id) == before

    in_service(play)


@settings(max_examples=8)
@given(seed=st.integers(0, 2**32))
@pytest.mark.shows("issue4-5-dry-run")
def test_a_prune_takes_what_its_dry_run_said_and_never_what_is_pinned(in_service: Play, seed: int) -> None:
    said = in_service(lambda runtime: prunes_as_said(runtime.parts, STATES, random.Random(seed)))
    assert said == Said(states=STATES)
