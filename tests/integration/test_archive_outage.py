"""An S3 archive with outages: no memory is removed during one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace

import pytest

from agentcore.errors import DependencyUnavailable, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.archival import ID_KEY
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import MemoryType
from agentcore.memory.params.archived import RestoreParams
from agentcore.memory.params.memories import CountParams, PruneParams, StatsParams
from agentcore.providers.s3_archive import S3Archive
from agentcore.runtime import Runtime, open_runtime
from benchmarks.crash.object_store import BUCKET, CREDENTIALS, ObjectStore
from benchmarks.crash.records import records
from tests.fixtures.databases import migrated_database
from tests.fixtures.memory import Agent, fill, settings_for
from tests.fixtures.services import Services

PRUNE = PruneParams(memory_layer=MemoryType.EPISODIC, strategy="oldest_first", target=20)


@pytest.fixture(scope="module")
def started() -> Iterator[ObjectStore]:
    store = ObjectStore()
    store.start()
    yield store
    store.kill()


@pytest.fixture
def store(started: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    return started


@pytest.fixture
async def in_s3(store: ObjectStore, services: Services) -> AsyncIterator[Agent]:
    with migrated_database(services) as own:  # the shared database has copies in directories
        settings = settings_for(
            services,
            database_url=own.url,
            memory_archival_s3_bucket=BUCKET,
            aws_endpoint_url_s3=store.url,
            memory_archive_options='{"keys": {"2026": "' + "0f" * 32 + '"}, "storage_class": "STANDARD_IA"}',
        )
        async with open_runtime(settings) as running:
            yield Agent(running)


def held(store: ObjectStore, agent: Agent) -> list[str]:
    listed = store.client().list_objects_v2(Bucket=BUCKET, Prefix=agent.agent_id)
    return [each["Key"] for each in listed.get("Contents", [])]


async def archive_state(runtime: Runtime) -> Mapping[str, object]:
    return (await runtime.readiness())["archive"]


async def test_what_was_archived_in_s3_comes_back_as_it_was(store: ObjectStore, in_s3: Agent) -> None:
    await fill(in_s3, 20)
    before = await records(in_s3.runtime.database.url, in_s3.agent_id)
    assert (await in_s3.memory.prune(PRUNE)).pruned_count == 20
    assert sorted(held(store, in_s3)) == sorted(f"{in_s3.agent_id}/{each}.json" for each in before)
    assert await in_s3.found("meter reading") == []
    assert (await in_s3.memory.restore(RestoreParams(all=True))).restored_count == 20
    assert await records(in_s3.runtime.database.url, in_s3.agent_id) == before


@pytest.mark.shows("issue4-shows-S3")
async def test_while_s3_is_away_nothing_goes_and_nothing_comes_back_and_then_all_goes_on(
    store: ObjectStore, in_s3: Agent
) -> None:
    await fill(in_s3, 20)
    before = await records(in_s3.runtime.database.url, in_s3.agent_id)
    store.kill()
    with pytest.raises(DependencyUnavailable):
        await in_s3.memory.prune(PRUNE)
    assert await records(in_s3.runtime.database.url, in_s3.agent_id) == before
    assert (await in_s3.memory.stats(StatsParams())).archived == 0
    assert (await archive_state(in_s3.runtime))["ok"] is False
    store.start()
    assert (await archive_state(in_s3.runtime))["ok"] is True
    assert (await in_s3.memory.prune(PRUNE)).pruned_count == 20
    objects = {
        key: store.client().get_object(Bucket=BUCKET, Key=key)["Body"].read() for key in [*held(store, in_s3), ID_KEY]
    }
    store.kill()
    with pytest.raises(DependencyUnavailable):
        await in_s3.memory.restore(RestoreParams(all=True))
    assert (await in_s3.memory.count(CountParams())).count == 0
    assert (await in_s3.memory.stats(StatsParams())).archived == 20
    store.start()
    for key, data in objects.items():
        store.client().put_object(Bucket=BUCKET, Key=key, Body=data)
    assert (await archive_state(in_s3.runtime))["ok"] is True  # the check closes the circuit
    assert (await in_s3.memory.restore(RestoreParams(all=True))).restored_count == 20
    assert await records(in_s3.runtime.database.url, in_s3.agent_id) == before


class ShortLived(S3Archive):
    """An archive whose endpoint dies after 13 writes."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(BUCKET, store.url)
        self.store, self.left = store, 13

    async def _put(self, key: str, data: bytes) -> None:
        await super()._put(key, data)
        self.left -= 1
        if self.left == 0:
            self.store.kill()


@pytest.mark.shows("issue4-shows-S3")
async def test_an_outage_in_the_middle_of_a_prune_takes_nothing_with_it(store: ObjectStore, in_s3: Agent) -> None:
    await fill(in_s3, 20)
    before = await records(in_s3.runtime.database.url, in_s3.agent_id)
    archive = ShortLived(store)
    torn = MemoryManager(replace(in_s3.runtime.parts, archive=archive), Caller(in_s3.agent_id))
    with pytest.raises(DependencyUnavailable):
        await torn.prune(PRUNE)
    assert archive.left <= 0
    assert await records(in_s3.runtime.database.url, in_s3.agent_id) == before
    assert (await in_s3.memory.stats(StatsParams())).archived == 0
    store.start()
    assert (await in_s3.memory.prune(PRUNE)).pruned_count == 20


@pytest.mark.shows("issue13-circuit-breaker")
async def test_an_error_reply_of_s3_closes_the_circuit(store: ObjectStore) -> None:
    archive = S3Archive(BUCKET, store.url)
    archive.circuit.record_failure("connection refused")
    archive.circuit._next_probe_at = 0.0
    with pytest.raises(NotFound):
        await archive.read("nobody/nothing.json")
    assert not archive.circuit.is_open
