"""Two servers of one database, each with its own archive."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentcore.cli.operate import verify
from agentcore.database import Database
from agentcore.doctor.examination import examine
from agentcore.errors import DependencyUnavailable, NotFound
from agentcore.memory.api import Caller
from agentcore.memory.archival import DirectoryArchive, archive_id, object_key, stored_id
from agentcore.memory.forgetting.erase_receipt import read_receipt
from agentcore.memory.manager import MemoryManager
from agentcore.memory.models import MemoryType
from agentcore.memory.params.archived import ArchivedParams, EraseParams, EraseResult, RestoreParams
from agentcore.memory.params.memories import CountParams, DeleteParams, PruneParams
from agentcore.readiness import archive_state
from agentcore.runtime import Runtime, open_runtime
from tests.fixtures.memory import Agent, settings_for
from tests.fixtures.services import Services

EVERYTHING = EraseParams(all=True, confirm=True)
ALL_EPISODIC = PruneParams(memory_layer=MemoryType.EPISODIC, strategy="oldest_first", target=1.0)
OF_ADA = EraseParams(user_id="ada", confirm=True)


@dataclass(frozen=True)
class Pair:
    """One memory is pruned on each of two servers."""

    here: Agent
    there: Agent
    pruned_here: UUID
    pruned_there: UUID

    @property
    def other_id(self) -> str:
        return (self.there.runtime.home.archive / "archive.id").read_text()


async def test_readiness_says_when_it_cannot_read_where_the_copies_are(tmp_path: Path) -> None:
    nowhere = Database("postgresql://127.0.0.1:1/nothing", timeout_seconds=0.5)
    state = await archive_state(nowhere, DirectoryArchive(tmp_path))
    assert state["ok"] is False
    assert "could not be read" in state["problem"]


async def _prune(agent: Agent) -> None:
    await agent.memory.prune(ALL_EPISODIC)


async def _pruned(agent: Agent, content: str, **values: Any) -> UUID:
    memory_id = await agent.stored_id(content, **values)
    await _prune(agent)
    return memory_id


@pytest.fixture
async def other(services: Services, tmp_path: Path) -> AsyncIterator[Runtime]:
    async with open_runtime(settings_for(services, agentcore_home=tmp_path / "other")) as running:
        yield running
        # Servers of other tests share the database and could not reach these copies.
        async with running.database.owner_transaction() as connection:
            own_id = await stored_id(DirectoryArchive(running.home.archive))
            await connection.execute("DELETE FROM archived_memories WHERE archive_id = %s", (own_id,))
            await connection.execute("DELETE FROM archived_copies WHERE archive_id = %s", (own_id,))


@pytest.fixture
async def pair(agent: Agent, other: Runtime) -> Pair:
    there = Agent(other, agent.agent_id)
    here_id = await _pruned(agent, "Ada keeps bees on the roof.", user_id="ada")
    there_id = await _pruned(there, "Ada sold the green canoe.", user_id="ada")
    return Pair(agent, there, here_id, there_id)


def _copy(agent: Agent, memory_id: UUID) -> Path:
    return agent.runtime.home.archive / object_key(agent.agent_id, memory_id)


async def _as_owner(agent: Agent, statement: str, *values: Any) -> list[Mapping[str, Any]]:
    async with agent.runtime.database.owner_transaction() as connection:
        cursor = await connection.execute(statement.encode(), values)
        return list(await cursor.fetchall()) if cursor.description else []


async def _attested(agent: Agent, result: EraseResult) -> dict[str, Any]:
    assert result.signed_receipt is not None
    key = await agent.runtime.parts.storage.receipt_key()
    return read_receipt([key["key"]], result.signed_receipt)


@pytest.mark.parametrize("params", [EVERYTHING, OF_ADA], ids=["all", "user"])
@pytest.mark.shows("A13")
async def test_an_erasure_never_says_verified_about_a_copy_in_another_archive(pair: Pair, params: EraseParams) -> None:
    result = await pair.here.memory.erase(params)
    assert (result.verified, result.complete, result.unreachable) == (False, True, {pair.other_id: 1})
    attested = await _attested(pair.here, result)
    assert (attested["verified"], attested["unreachable"]) == (False, {pair.other_id: 1})
    assert result.left == {}
    assert not _copy(pair.here, pair.pruned_here).exists()
    assert _copy(pair.there, pair.pruned_there).exists()
    left = await _as_owner(pair.here, "SELECT memory_id FROM archived_memories WHERE agent_id = %s", pair.here.agent_id)
    assert [row["memory_id"] for row in left] == [pair.pruned_there]

    there = await pair.there.memory.erase(params)
    assert (there.verified, there.unreachable) == (True, {})
    assert (await _attested(pair.there, there))["verified"] is True
    assert not _copy(pair.there, pair.pruned_there).exists()
    assert (await pair.here.memory.erase(params)).verified


@pytest.mark.shows("A13")
async def test_a_users_erasure_counts_copies_elsewhere_that_may_be_the_users(pair: Pair) -> None:
    await pair.there.memory.erase(EVERYTHING)
    await _pruned(pair.there, "The roof was painted.")
    await _pruned(pair.there, "Bob moved to Oslo.", user_id="bob")
    result = await pair.here.memory.erase(OF_ADA)
    assert (result.verified, result.unreachable) == (False, {pair.other_id: 1})


@pytest.mark.shows("A13")
async def test_a_local_copy_goes_though_the_tombstone_is_of_another_archive(pair: Pair) -> None:
    await pair.there.memory.restore(RestoreParams(memory_ids=[pair.pruned_there]))
    await _prune(pair.here)
    await pair.here.memory.restore(RestoreParams(memory_ids=[pair.pruned_there]))
    await _prune(pair.there)
    assert _copy(pair.here, pair.pruned_there).exists()
    for params in (OF_ADA, EVERYTHING):
        result = await pair.here.memory.erase(params)
        assert (result.verified, result.unreachable) == (False, {pair.other_id: 1})
        assert not _copy(pair.here, pair.pruned_there).exists()


@pytest.mark.shows("A13")
async def test_an_archive_that_is_replaced_during_an_erasure_ends_it_and_nothing_is_lost(
    agent: Agent, tmp_path: Path
) -> None:
    memory_id = await _pruned(agent, "Ada keeps bees on the roof.")

    class Unmounted(DirectoryArchive):
        """An archive whose volume is unmounted before copies are deleted."""

        async def delete(self, keys: Any) -> None:
            self._root = tmp_path / "empty"

    parts = replace(agent.runtime.parts, archive=Unmounted(agent.runtime.home.archive))
    with pytest.raises(DependencyUnavailable, match="replaced"):
        await MemoryManager(parts, Caller(agent.agent_id)).erase(EVERYTHING)
    assert (await agent.memory.restore(RestoreParams(memory_ids=[memory_id]))).restored_count == 1


@pytest.mark.shows("A8-content")
async def test_a_copy_that_names_another_agent_is_not_erased(agent: Agent) -> None:
    own = await _pruned(agent, "Ada keeps bees on the roof.")
    strange, kin = uuid4(), uuid4()
    folder = _copy(agent, own).parent
    for memory_id, owner in ((strange, "Casey"), (kin, agent.agent_id)):
        copy = {"memory_id": str(memory_id), "agent_id": owner, "user_id": "ada", "speaker": None, "content": "x"}
        (folder / f"{memory_id}.json").write_bytes(gzip.compress(json.dumps(copy).encode()))
    result = await agent.memory.erase(OF_ADA)
    assert (result.verified, result.left) == (True, {})
    assert {path.stem for path in folder.iterdir()} == {str(own), str(strange)}
    result = await agent.memory.erase(EVERYTHING)
    assert (result.verified, result.left) == (True, {})
    assert [path.stem for path in folder.iterdir()] == [str(strange)]


@pytest.mark.parametrize("params", [EVERYTHING, OF_ADA], ids=["all", "user"])
@pytest.mark.parametrize("after", ["nothing", "delete", "prune", "restore"])
@pytest.mark.shows("A13")
async def test_a_copy_that_a_restore_left_elsewhere_is_unreachable_until_it_is_erased_there(
    pair: Pair, params: EraseParams, after: str
) -> None:
    await pair.there.memory.restore(RestoreParams(memory_ids=[pair.pruned_there]))
    if after == "delete":
        await pair.here.memory.delete(DeleteParams(memory_ids=[pair.pruned_there]))
    if after in ("prune", "restore"):
        await _prune(pair.here)
    if after == "restore":
        await pair.here.memory.restore(RestoreParams(memory_ids=[pair.pruned_there]))
    assert pair.other_id in (await pair.here.runtime.readiness())["archive"]["other_archives"]
    for _ in range(2):
        result = await pair.here.memory.erase(params)
        assert (result.verified, result.unreachable, result.left) == (False, {pair.other_id: 1}, {})
        assert (await _attested(pair.here, result))["unreachable"] == {pair.other_id: 1}
    assert _copy(pair.there, pair.pruned_there).exists()
    assert (await pair.there.memory.erase(params)).verified
    assert not _copy(pair.there, pair.pruned_there).exists()
    assert (await pair.here.memory.erase(params)).verified


@pytest.mark.shows("A13")
async def test_a_copy_that_a_killed_prune_left_elsewhere_is_unreachable(pair: Pair) -> None:
    memory_id = await pair.there.stored_id("Ada bought a red bicycle.", user_id="ada")

    class Killed(DirectoryArchive):
        """An archive whose process dies after writing copies, leaving them in place."""

        async def write(self, objects: Mapping[str, bytes]) -> None:
            await super().write(objects)
            raise RuntimeError("killed")

    parts = replace(pair.there.runtime.parts, archive=Killed(pair.there.runtime.home.archive))
    with pytest.raises(RuntimeError, match="killed"):
        await MemoryManager(parts, Caller(pair.there.agent_id)).prune(ALL_EPISODIC)
    assert _copy(pair.there, memory_id).exists()
    result = await pair.here.memory.erase(OF_ADA)
    assert (result.verified, result.unreachable) == (False, {pair.other_id: 2})
    assert (await pair.there.memory.erase(OF_ADA)).verified
    assert not _copy(pair.there, memory_id).exists()


@pytest.mark.shows("A13")
async def test_merged_archives_count_once_they_are_adopted(pair: Pair) -> None:
    shutil.copyfile(_copy(pair.there, pair.pruned_there), _copy(pair.here, pair.pruned_there))
    archive = pair.here.runtime.parts.archive
    assert archive is not None
    await verify(pair.here.runtime.database, archive, pair.here.agent_id, adopt=True)
    assert (await pair.here.memory.erase(EVERYTHING)).verified


@pytest.mark.parametrize(
    "given", [{"all": True}, {"user_id": "ada"}, {"memory_ids": None}], ids=["all", "filter", "ids"]
)
@pytest.mark.shows("issue13-other-archives")
async def test_a_restore_continues_with_the_rest_and_lists_what_is_elsewhere(pair: Pair, given: dict[str, Any]) -> None:
    named = {"memory_ids": [pair.pruned_here, pair.pruned_there]} if "memory_ids" in given else given
    back = await pair.here.memory.restore(RestoreParams(**named))
    assert (back.memory_ids, back.unreadable_ids) == ([pair.pruned_here], [pair.pruned_there])
    assert (await pair.there.memory.restore(RestoreParams(all=True))).memory_ids == [pair.pruned_there]


@pytest.mark.shows("issue13-other-archives")
async def test_a_single_id_that_is_elsewhere_is_not_found_and_its_archive_is_named(pair: Pair) -> None:
    with pytest.raises(NotFound, match=pair.other_id) as refused:
        await pair.here.memory.restore(RestoreParams(memory_ids=[pair.pruned_there]))
    assert refused.value.data == {"memory_id": str(pair.pruned_there), "archive_id": pair.other_id}


@pytest.mark.shows("issue13-other-archives")
async def test_the_list_marks_which_copies_are_elsewhere(pair: Pair) -> None:
    listed = {each.memory_id: each for each in (await pair.here.memory.archived(ArchivedParams())).memories}
    assert {each: memory.elsewhere for each, memory in listed.items()} == {
        pair.pruned_here: False,
        pair.pruned_there: True,
    }
    assert str(listed[pair.pruned_there].archive_id) == pair.other_id
    away = replace(pair.here.runtime.parts, archive=None)
    listing = await MemoryManager(away, Caller(pair.here.agent_id)).archived(ArchivedParams())
    assert [each.elsewhere for each in listing.memories] == [None, None]


@pytest.mark.shows("issue13-other-archives")
async def test_start_doctor_and_readyz_name_the_other_archive(
    pair: Pair, services: Services, caplog: pytest.LogCaptureFixture
) -> None:
    state = (await pair.here.runtime.readiness())["archive"]
    assert (state["ok"], state["required"]) == (False, False)
    assert pair.other_id in state["other_archives"]
    async with open_runtime(settings_for(services)):
        pass
    [line] = [each for each in caplog.messages if each.startswith("archive: Copies are in archives")]
    assert f"1 in {pair.other_id}" in line
    assert "archive verify --adopt" in line
    [check] = [each for each in await examine(settings_for(services)) if each.name == "copies"]
    assert check.ok is False
    assert f"1 in {pair.other_id}" in check.found
    assert "MEMORY_ARCHIVAL_S3_BUCKET" in check.fix

    await pair.there.memory.erase(EVERYTHING)
    assert pair.other_id not in (await pair.here.runtime.readiness())["archive"].get("other_archives", [])


@pytest.mark.shows("issue13-other-archives")
async def test_a_service_without_an_archive_reports_the_archived_copies(pair: Pair, services: Services) -> None:
    state = await archive_state(pair.here.runtime.database, None)
    assert (state["ok"], state["required"], state["kind"]) == (False, False, "none")
    assert "MEMORY_ARCHIVAL_ENABLED" in state["problem"]
    assert pair.other_id in state["other_archives"]
    without = settings_for(services, memory_archival_enabled=False)
    [check] = [each for each in await examine(without) if each.name == "copies"]
    assert (check.ok, pair.other_id in check.found) == (False, True)
    assert "MEMORY_ARCHIVAL_ENABLED=true" in check.fix


async def test_looking_at_an_archive_that_was_never_used_changes_nothing(other: Runtime) -> None:
    await other.readiness()
    await examine(other.settings)
    assert await stored_id(DirectoryArchive(other.home.archive)) is None


@pytest.mark.shows("issue13-other-archives")
async def test_the_check_of_copies_calls_them_unreachable_and_adopts_them_once_they_are_merged(pair: Pair) -> None:
    async def kinds(*, adopt: bool = False) -> list[str]:
        database, archive = pair.here.runtime.database, pair.here.runtime.parts.archive
        assert archive is not None
        intact, findings = await verify(database, archive, pair.here.agent_id, adopt=adopt)
        return sorted([*["whole"] * intact, *(each.kind for each in findings)])

    assert await kinds() == ["unreachable", "whole"]
    assert await kinds(adopt=True) == ["unreachable", "whole"]
    shutil.copyfile(_copy(pair.there, pair.pruned_there), _copy(pair.here, pair.pruned_there))
    assert await kinds() == ["unreachable", "whole"]
    assert await kinds(adopt=True) == ["whole", "whole"]
    assert await kinds() == ["whole", "whole"]
    _copy(pair.here, pair.pruned_there).unlink()
    assert await kinds() == ["missing", "whole"]


@pytest.mark.shows("A14-copies")
async def test_a_prune_that_fails_midway_leaves_no_copy_behind(agent: Agent) -> None:
    class Full(DirectoryArchive):
        """An archive whose disk is full after the first copies."""

        async def write(self, objects: Mapping[str, bytes]) -> None:
            await super().write(dict([*objects.items()][:2]))
            raise DependencyUnavailable("no space")

    for note in ("Ada keeps bees.", "The canoe is green.", "Bob moved to Oslo."):
        await agent.stored_id(note)
    full = replace(agent.runtime.parts, archive=Full(agent.runtime.home.archive))
    with pytest.raises(DependencyUnavailable, match="no space"):
        await MemoryManager(full, Caller(agent.agent_id)).prune(ALL_EPISODIC)
    assert (await agent.memory.count(CountParams())).count == 3
    await agent.memory.delete(DeleteParams(all=True, confirm=True))
    folder = agent.runtime.home.archive / object_key(agent.agent_id, uuid4())
    assert [*folder.parent.iterdir()] == []
    assert await archive_id(DirectoryArchive(agent.runtime.home.archive))
