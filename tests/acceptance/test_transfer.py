"""JSONL export and import: no duplicates, no loss, invalid lines reported by number."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest

from agentcore.client import MemoryClient
from agentcore.memory.models import Interaction, Link, MemoryRecord, MemoryType
from agentcore.memory.params.changes import UpdateParams, Updates
from agentcore.memory.params.memories import CountParams, DeleteParams, ListParams, StoreBatchParams, StoreParams
from tests.fixtures.forked_commands import Done
from tests.fixtures.serving import Serving

# Fields that an import sets anew: ids, storage times and access counts.
OF_THE_STORE = {
    "memory_id",
    "created_at",
    "updated_at",
    "provenance",
    "access_count",
    "last_accessed",
    "parent_memory_id",
    "expires_at",
}
MONDAY = "2026-03-02T09:{:02}:00Z"


def day(number: int) -> datetime:
    return datetime(2026, 1, number, 10, tzinfo=UTC)


def conversation(count: int) -> list[dict[str, Any]]:
    return [
        {
            "role": "user" if number % 2 else "assistant",
            "session": "monday",
            "time": MONDAY.format(number % 60),
            "text": f"Note {number}: parcel {number * 7919} was sent.",
        }
        for number in range(count)
    ]


def write(file: Path, lines: Iterable[Any]) -> Path:
    file.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return file


def tally(done: Done) -> dict[str, int]:
    """Returns the counts of an import's summary line."""
    pairs = (pair.split(" ") for pair in done.stdout.splitlines()[0].split(", "))
    return {name: int(count) for name, count in pairs if int(count)}


async def stored(memory: MemoryClient, content: str, **more: Any) -> UUID:
    memory_id = (await memory.store(StoreParams(content=content, **more))).memory_id
    assert memory_id is not None
    return memory_id


async def link(memory: MemoryClient, memory_id: UUID, *links: Link) -> None:
    await memory.update(UpdateParams(memory_id=memory_id, updates=Updates(links=[*links])))


async def everything(memory: MemoryClient) -> list[MemoryRecord]:
    return (await memory.list(ListParams(limit=1_000, descending=False))).memories


def as_carried(record: MemoryRecord) -> dict[str, Any]:
    return record.model_dump(mode="json", exclude=OF_THE_STORE)


async def test_a_conversation_becomes_memories_with_all_its_lines_say(
    run: Callable[..., Done], memory: MemoryClient, tmp_path: Path
) -> None:
    file = write(
        tmp_path / "talk.jsonl",
        [
            {
                "role": "user",
                "text": "My sister Ada moved to Porto.",
                "time": "2026-03-02T09:30:00+01:00",
                "session": 7,
                "tags": ["family"],
                "metadata": {"mood": "glad"},
                "importance": 0.9,
            },
            {
                "speaker": "Bruno",
                "role": "assistant",
                "content": "Porto is a lovely city.",
                "timestamp": "2026-03-02T08:31:00Z",
                "session_id": "7",
                "external_id": "m-2",
                "memory_type": "semantic",
            },
            "",
            {"text": "A line may be nothing but its text."},
        ],
    )
    done = run("import", str(file))
    assert (done.returncode, tally(done)) == (0, {"stored": 3})
    first, second, third = sorted(await everything(memory), key=lambda record: record.timestamp)
    # 09:30 at UTC+1 is one minute before 08:31 UTC.
    assert (first.content, first.speaker, first.session_id) == ("My sister Ada moved to Porto.", "user", "7")
    assert (first.tags, first.metadata, first.relevance_score) == (["family"], {"mood": "glad"}, 0.9)
    assert (second.speaker, second.metadata, second.session_id) == ("Bruno", {"role": "assistant"}, "7")
    assert (second.external_id, second.memory_type) == ("m-2", "semantic")
    assert (third.speaker, third.session_id, third.memory_type) == (None, None, "episodic")


async def test_a_second_import_stores_nothing_and_a_longer_file_only_what_is_new(
    run: Callable[..., Done], memory: MemoryClient, tmp_path: Path
) -> None:
    lines = conversation(40)
    assert tally(run("import", str(write(tmp_path / "a.jsonl", lines[:25])))) == {"stored": 25}
    assert tally(run("import", str(tmp_path / "a.jsonl"))) == {"existing": 25}
    # The same lines in another file with a different JSON layout.
    spaced = [json.dumps(dict(reversed(line.items())), separators=(" , ", " : ")) for line in lines]
    assert tally(run("import", str(write(tmp_path / "b.jsonl", spaced)))) == {"existing": 25, "stored": 15}
    assert (await memory.count(CountParams())).count == 40


async def test_an_agents_own_export_stores_nothing_again(
    run: Callable[..., Done], memory: MemoryClient, tmp_path: Path
) -> None:
    run("import", str(write(tmp_path / "a.jsonl", conversation(30))))
    assert run("export", str(tmp_path / "own.jsonl")).returncode == 0
    await memory.delete(DeleteParams(memory_ids=[(await everything(memory))[0].memory_id]))
    assert tally(run("import", str(tmp_path / "own.jsonl"))) == {"existing": 29, "stored": 1}
    assert (await memory.count(CountParams())).count == 30


@pytest.mark.shows("issue2-13-import")
async def test_an_import_that_was_killed_goes_on_where_it_stopped(
    serving: Serving, memory: MemoryClient, tmp_path: Path, agent_id: str
) -> None:
    lines = conversation(400)
    killed = serving.open_cli("import", "-", "--agent", agent_id)
    assert killed.stdin is not None
    killed.stdin.write("".join(f"{json.dumps(line)}\n" for line in lines[:300]))
    killed.stdin.flush()
    async with asyncio.timeout(60):
        # Stdin stays open, so the last, partial batch is not stored yet.
        while (count := (await memory.count(CountParams())).count) < 250:
            pass
    killed.kill()
    killed.communicate()
    assert count == 250
    done = serving.cli("import", str(write(tmp_path / "talk.jsonl", lines)), "--agent", agent_id)
    assert (done.returncode, tally(done)) == (0, {"existing": 250, "stored": 150})
    assert (await memory.count(CountParams())).count == 400


async def test_a_strict_import_stores_what_stands_before_the_bad_line(
    run: Callable[..., Done], memory: MemoryClient, tmp_path: Path
) -> None:
    lines = conversation(30)
    file = write(tmp_path / "a.jsonl", [*lines[:20], "not json", *lines[20:]])
    stopped = run("import", str(file), "--strict")
    assert (stopped.returncode, tally(stopped)) == (1, {"stored": 20, "failed": 1})
    assert "stopped after line 20: line 21: is not JSON" in stopped.stderr
    assert tally(run("import", str(write(file, lines)))) == {"existing": 20, "stored": 10}
    assert (await memory.count(CountParams())).count == 30


async def test_equal_lines_of_one_file_are_asked_to_be_stored_each(
    run: Callable[..., Done], memory: MemoryClient, tmp_path: Path
) -> None:
    file = write(tmp_path / "twice.jsonl", [{"text": "Ada rang the bell.", "force": True}] * 3)
    assert tally(run("import", str(file))) == {"stored": 3}
    assert tally(run("import", str(file))) == {"existing": 3}
    assert (await memory.count(CountParams())).count == 3


def test_bad_lines_are_told_by_number_and_reason_and_the_rest_is_stored(run: Callable[..., Done]) -> None:
    good = conversation(2)
    expired = '{"text": "a", "expires_at": "2001-01-01T00:00:00Z"}'
    done = run("import", "-", said=f"{json.dumps(good[0])}\n{{\n{expired}\n{json.dumps(good[1])}\n")
    assert (done.returncode, tally(done)) == (1, {"stored": 2, "failed": 2})
    assert "line 2: is not JSON" in done.stderr
    assert "line 3: expired at 2001-01-01" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_not_worth_storing_is_counted_by_reason_and_can_be_forced(run: Callable[..., Done]) -> None:
    said = "".join(json.dumps({"text": text}) + "\n" for text in ("hi", "Good morning!", "Ada paints boats."))
    done = run("import", "-", said=said)
    assert (done.returncode, tally(done)) == (0, {"stored": 1, "rejected": 2})
    assert "rejected 2: greeting" in done.stdout
    assert tally(run("import", "-", "--force", said=said)) == {"existing": 1, "stored": 2}


@pytest.mark.shows("issue2-13-export")
async def test_export_and_import_into_another_memory_give_equal_memories(
    serving: Serving, memory: MemoryClient, tmp_path: Path, agent_id: str
) -> None:
    await memory.store_batch(
        StoreBatchParams(
            items=[
                StoreParams(
                    content="Ada prefers tea.",
                    speaker="Ada",
                    session_id="s",
                    task_id="t",
                    user_id="u",
                    namespace="n",
                    tags=["drinks", "ünïcode"],
                    importance=0.7,
                    external_id="x-1",
                    metadata={"nested": {"list": [1, 2.5, None, "three"]}},
                    timestamp=day(1),
                ),
                StoreParams(
                    content="Pinned: the code is 4711.\nSecond line.",
                    pinned=True,
                    importance=0.0,
                    memory_type=MemoryType.SEMANTIC,
                    timestamp=day(2),
                ),
                StoreParams(
                    interaction=Interaction(
                        query="Deploy it",
                        response="Done.",
                        interaction_id="i-1",
                        actions=["make build", {"tool": "deploy", "result": "ok"}],
                        outcome={"success": True},
                    ),
                    memory_type=MemoryType.PROCEDURAL,
                    timestamp=day(3),
                ),
                StoreParams(interaction=Interaction(actions=["restart"], outcome=False), force=True, timestamp=day(4)),
                StoreParams(content="hello", force=True, timestamp=day(5)),
                StoreParams(content="hello", force=True, timestamp=day(5)),
                StoreParams(content="Soon forgotten.", ttl_seconds=86_400, timestamp=day(6)),
            ]
        )
    )
    before = await everything(memory)
    file = tmp_path / "out.jsonl"
    exported = serving.cli("export", str(file), "--agent", agent_id)
    assert exported.returncode == 0
    assert "exported 7 memories" in exported.stderr
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    other = f"agent-{uuid4()}"
    done = serving.cli("import", str(file), "--agent", other)
    assert (done.returncode, tally(done)) == (0, {"stored": 7})
    async with serving.client(other) as copy:
        after = await everything(copy)
    assert [as_carried(record) for record in after] == [as_carried(record) for record in before]
    [ends_before], [ends_after] = (
        [each.expires_at for each in records if each.expires_at] for records in (before, after)
    )
    assert abs((ends_after - ends_before).total_seconds()) < 5
    assert tally(serving.cli("import", str(file), "--agent", other)) == {"existing": 7}


async def test_a_parent_is_found_again_under_its_new_id(serving: Serving, memory: MemoryClient, agent_id: str) -> None:
    parent_id = await stored(memory, "Ada talked about boats.", timestamp=day(1))
    await stored(memory, "Ada owns a boat.", parent_memory_id=parent_id, timestamp=day(2))
    exported = serving.cli("export", "--agent", agent_id)
    other = f"agent-{uuid4()}"
    assert tally(serving.cli("import", "-", "--agent", other, said=exported.stdout)) == {"stored": 2}
    async with serving.client(other) as copy:
        older, younger = await everything(copy)
    assert older.memory_id != parent_id
    assert younger.parent_memory_id == older.memory_id


def told(memories: list[MemoryRecord]) -> dict[str, set[tuple[str, str, float]]]:
    """Returns each memory's links, keyed by contents instead of ids."""
    says = {record.memory_id: record.content for record in memories}
    return {
        record.content: {(says[link.target_id], link.relation, link.weight) for link in record.links}
        for record in memories
    }


async def test_links_come_back_between_the_same_memories(serving: Serving, memory: MemoryClient, agent_id: str) -> None:
    contents = ["Ada owns a boat.", "The boat lies in Porto.", "Porto has a harbour."]
    ids = [await stored(memory, text, timestamp=day(number)) for number, text in enumerate(contents, start=1)]
    # One link points to a later line of the file, and one pair is mutual.
    for source, target, weight in ((0, 2, 0.9), (1, 0, 0.25), (0, 1, 1.0)):
        await link(memory, ids[source], Link(target_id=ids[target], relation="leads to", weight=weight))
    exported = serving.cli("export", "--agent", agent_id).stdout
    other = f"agent-{uuid4()}"
    async with serving.client(other) as copy:
        for counted in ("stored", "existing"):
            done = serving.cli("import", "-", "--agent", other, said=exported)
            assert (done.returncode, tally(done)) == (0, {counted: 3})
            assert told(await everything(copy)) == told(await everything(memory))
        # The second import changed nothing.
        assert [record.version for record in await everything(copy)] == [2, 2, 1]


async def test_an_import_again_ties_what_is_still_there(serving: Serving, memory: MemoryClient, agent_id: str) -> None:
    hub = await stored(memory, "Ada owns a boat.", ttl_seconds=86_400, timestamp=day(1))
    for number in range(3):
        sail = f"Its sail {number} is white."
        sail_id = await stored(memory, sail, timestamp=day(2 + number), links=[Link(target_id=hub)])
        await link(memory, hub, Link(target_id=sail_id))
    exported = serving.cli("export", "--agent", agent_id).stdout
    other = f"agent-{uuid4()}"
    async with serving.client(other) as copy:
        assert tally(serving.cli("import", "-", "--agent", other, said=exported)) == {"stored": 4}
        whole = told(await everything(copy))
        assert whole == told(await everything(memory))
        # Simulates an interruption before the links were created, and a deleted memory.
        boat, first, *others = await everything(copy)
        await copy.update(
            UpdateParams(memory_id=boat.memory_id, updates=Updates(unlink=[each.memory_id for each in others]))
        )
        await copy.delete(DeleteParams(memory_ids=[first.memory_id]))
        done = serving.cli("import", "-", "--agent", other, said=exported)
        assert (done.returncode, tally(done)) == (0, {"existing": 4})
        assert "links left out" in done.stderr
        left = {says: {tie for tie in ties if tie[0] != first.content} for says, ties in whole.items()}
        assert told(await everything(copy)) == {says: left[says] for says in left if says != first.content}


async def test_a_link_made_between_two_exports_stores_nothing_again(
    serving: Serving, memory: MemoryClient, agent_id: str
) -> None:
    ids = [await stored(memory, text) for text in ("Ada rows.", "Bo sails.")]
    other = f"agent-{uuid4()}"
    exported = serving.cli("export", "--agent", agent_id).stdout
    assert tally(serving.cli("import", "-", "--agent", other, said=exported)) == {"stored": 2}
    await link(memory, ids[0], Link(target_id=ids[1]))
    exported = serving.cli("export", "--agent", agent_id).stdout
    assert tally(serving.cli("import", "-", "--agent", other, said=exported)) == {"existing": 2}
    async with serving.client(other) as copy:
        assert told(await everything(copy)) == told(await everything(memory))


async def test_a_line_without_an_id_may_link_to_lines_and_to_what_is_there(
    run: Callable[..., Done], memory: MemoryClient
) -> None:
    there = await stored(memory, "Bo sails.")
    other_line = str(uuid4())
    lines = [
        {"text": "Ada rows.", "links": [{"target_id": other_line}, {"target_id": str(there)}]},
        {"text": "Cem swims.", "memory_id": other_line},
    ]
    done = run("import", "-", said="".join(f"{json.dumps(line)}\n" for line in lines))
    assert (done.returncode, tally(done)) == (0, {"stored": 2})
    assert told(await everything(memory))["Ada rows."] == {
        ("Cem swims.", "relates_to", 1.0),
        ("Bo sails.", "relates_to", 1.0),
    }


async def test_a_link_to_what_was_not_exported_is_left_out_and_counted(
    serving: Serving, memory: MemoryClient, agent_id: str
) -> None:
    far = await stored(memory, "Porto has a harbour.", namespace="far")
    await stored(memory, "Ada owns a boat.", namespace="near", links=[Link(target_id=far)])
    exported = serving.cli("export", "--agent", agent_id, "--namespace", "near").stdout
    done = serving.cli("import", "-", "--agent", f"agent-{uuid4()}", said=exported)
    assert (done.returncode, tally(done)) == (0, {"stored": 1})
    assert "links left out" in done.stderr
    assert done.stderr.rstrip().endswith("not there: 1")


async def test_more_memories_than_a_page_come_out_oldest_first_and_filtered(
    serving: Serving, memory: MemoryClient, agent_id: str
) -> None:
    await memory.store_batch(
        StoreBatchParams(
            items=[
                StoreParams(
                    content=f"Reading {number}",
                    timestamp=day(1) + timedelta(minutes=number),
                    namespace="odd" if number % 2 else "even",
                )
                for number in range(600)
            ]
        )
    )
    lines = serving.cli("export", "--agent", agent_id).stdout.splitlines()
    assert [json.loads(line)["text"] for line in lines] == [f"Reading {number}" for number in range(600)]
    assert len(serving.cli("export", "--agent", agent_id, "--namespace", "odd").stdout.splitlines()) == 300


def test_an_export_replaces_a_file_only_when_told_to(run: Callable[..., Done], tmp_path: Path) -> None:
    file = write(tmp_path / "kept.jsonl", ["before"])
    assert run("store", "The lighthouse was painted in May.").returncode == 0
    refused = run("export", str(file))
    assert (refused.returncode, file.read_text()) == (1, "before\n")
    assert refused.stderr.startswith(f"agentcore: {file} is there already")
    assert "--overwrite" in refused.stderr
    assert run("export", str(file), "--overwrite").returncode == 0
    assert json.loads(file.read_text())["text"] == "The lighthouse was painted in May."
    dashed = run("export", "-")
    assert (dashed.stdout, dashed.stderr) == (file.read_text(), "exported 1 memory\n")


def test_an_export_that_fails_leaves_no_half_file(serving: Serving, agent_id: str, tmp_path: Path) -> None:
    (tmp_path / "kept.jsonl").write_text("before\n")
    done = serving.cli("export", str(tmp_path / "kept.jsonl"), "--overwrite", "--token", "no.real.token")
    assert done.returncode == 1
    assert (tmp_path / "kept.jsonl").read_text() == "before\n"
    assert list(tmp_path.iterdir()) == [tmp_path / "kept.jsonl"]


def test_an_import_without_a_service_says_so_once(serving: Serving, agent_id: str) -> None:
    nowhere = ("--url", "http://127.0.0.1:9")
    done = serving.cli("import", "-", "--agent", agent_id, *nowhere, said='{"text": "a"}\n')
    assert done.returncode == 1
    assert "No service answers at http://127.0.0.1:9" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_file_that_is_not_there_is_a_usage_error(run: Callable[..., Done]) -> None:
    done = run("import", "missing.jsonl")
    assert done.returncode == 2
    assert "missing.jsonl" in done.stderr
