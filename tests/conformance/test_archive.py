"""Conformance of every archive, encrypted or not."""

from __future__ import annotations

import asyncio
import gzip
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from uuid import uuid4

import boto3
import pytest
from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends
from moto.server import ThreadedMotoServer
from pgvector import HalfVector

from agentcore.errors import Conflict, DependencyUnavailable, NotFound, Unreachable
from agentcore.memory.archival import (
    ID_KEY,
    MAX_THREADS,
    Archive,
    DirectoryArchive,
    SealedArchive,
    _delete_files,
    _write_files,
    archive_id,
    archive_memories,
    memory_of,
    read_copy,
    read_stray,
    stored_id,
    vector_of,
)
from agentcore.providers.s3_archive import DELETED_AT_ONCE, S3Archive
from agentcore.structured_settings import Keyring

KEYS = {"2025": bytes(range(32)), "2026": bytes(range(32, 64))}


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """Separate, since moto keeps buckets for the whole process."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client("s3", endpoint_url=url)
    name = f"archive-{uuid4()}"
    client.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})
    yield name, url
    server.stop()


@pytest.fixture(params=["directory", "s3", "sealed directory", "sealed s3"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Archive:
    inner: Archive
    if request.param.endswith("directory"):
        inner = DirectoryArchive(tmp_path)
    else:
        inner = S3Archive(*request.getfixturevalue("bucket"))
    return SealedArchive(inner, Keyring(KEYS, "2026")) if request.param.startswith("sealed") else inner


async def test_what_is_written_is_read_back_and_written_over(archive: Archive) -> None:
    await archive.check()
    await archive.write({"agent/one.json": b"first", "agent/two.json": b"other"})
    await archive.write({"agent/one.json": b"second"})
    assert await archive.read("agent/one.json") == b"second"
    assert await archive.read("agent/two.json") == b"other"


async def test_of_several_writers_of_an_object_that_is_written_once_one_succeeds(archive: Archive) -> None:
    await asyncio.gather(*(archive.write_once("one.id", f"writer {n}".encode()) for n in range(8)))
    first = await archive.read("one.id")
    await archive.write_once("one.id", b"late")
    assert await archive.read("one.id") == first


@pytest.mark.shows("issue13-archive-ids")
async def test_servers_that_open_a_new_archive_at_once_agree_on_its_id(archive: Archive) -> None:
    assert await stored_id(archive) is None
    ids = await asyncio.gather(*(archive_id(archive) for _ in range(8)))
    assert {await stored_id(archive), *ids} == {ids[0]}
    assert await archive.keys("archive.id/") == []
    await archive.write({ID_KEY: b"no id"})
    with pytest.raises(DependencyUnavailable, match="contains no UUID"):
        await archive_id(archive)


@pytest.mark.shows("issue13-archive-ids")
async def test_the_id_of_a_sealed_archive_is_read_with_other_keys(tmp_path: Path) -> None:
    sealed = SealedArchive(DirectoryArchive(tmp_path), Keyring(KEYS, "2026"))
    assert await archive_id(sealed) == await archive_id(DirectoryArchive(tmp_path))


@pytest.mark.shows("issue13-archive-ids")
async def test_s3_keeps_the_id_in_no_cold_storage_class(bucket: tuple[str, str]) -> None:
    archive = S3Archive(*bucket, object_headers={"StorageClass": "GLACIER", "ServerSideEncryption": "AES256"})
    first = await archive_id(archive)
    assert await archive_id(archive) == first


@pytest.mark.shows("A14-modes")
async def test_directories_and_files_of_the_archive_are_closed_to_others(tmp_path: Path) -> None:
    root = tmp_path / "home" / "archive"
    before = os.umask(0o022)
    try:
        archive = DirectoryArchive(root)
        await archive_id(archive)
        await archive.write({"agent/one.json": b"x"})
    finally:
        os.umask(before)
    made = [root.parent, root, root / ID_KEY, root / "agent", root / "agent" / "one.json"]
    assert [path.stat().st_mode & 0o777 for path in made] == [0o700, 0o700, 0o600, 0o700, 0o600]
    assert {path.name for path in root.iterdir()} == {ID_KEY, "agent"}


@pytest.mark.shows("issue4-8-erase")
async def test_what_is_deleted_is_gone_and_what_is_absent_is_no_error(archive: Archive) -> None:
    await archive.write({f"agent/{name}.json": b"x" for name in ("one", "two", "three")})
    await archive.delete({"agent/one.json", "agent/two.json", "agent/none.json", "nobody/one.json"})
    await archive.delete([])
    assert await archive.keys("agent/") == ["agent/three.json"]
    with pytest.raises(NotFound):
        await archive.read("agent/one.json")


async def test_a_folder_tells_its_keys_in_order_and_no_others(archive: Archive) -> None:
    await archive.write({f"{folder}/{name}.json": b"x" for folder in ("agent", "agent2") for name in "ba"})
    assert await archive.keys("agent/") == ["agent/a.json", "agent/b.json"]
    assert await archive.keys("nobody/") == []


async def test_a_copy_is_known_by_its_key_and_read_without_its_digest(archive: Archive) -> None:
    memory_id = uuid4()
    [kept] = await archive_memories(archive, "agent", [{"memory_id": memory_id, "content": "heron"}])
    assert memory_of(kept.object_key) == memory_id
    assert [memory_of(f"agent/{name}") for name in ("x.json", str(memory_id), "")] == [None] * 3
    copy = await read_stray(archive, kept.object_key)
    assert copy is not None
    assert copy["content"] == "heron"
    await archive.write({kept.object_key: b"another"})
    assert await read_stray(archive, kept.object_key) is None
    with pytest.raises(NotFound):
        await read_stray(archive, "agent/none.json")


@pytest.mark.shows("FR-5.3", "NFR-5.3")
async def test_a_memory_is_archived_under_its_agent_and_id(archive: Archive) -> None:
    memory_id = uuid4()
    [kept] = await archive_memories(archive, "../agent", [{"memory_id": memory_id, "content": "héron"}])
    assert kept.object_key == f"%2E%2E%2Fagent/{memory_id}.json"
    assert kept.size_bytes == len(await archive.read(kept.object_key))


async def test_a_copy_is_read_again_and_a_changed_one_is_refused(archive: Archive) -> None:
    memory_id, row = uuid4(), {"content": "héron", "embedding": HalfVector([0.1, -3.5])}
    [kept] = await archive_memories(archive, "agent", [{"memory_id": memory_id, **row}])
    copy = await read_copy(archive, memory_id, kept)
    assert (copy["content"], vector_of(copy)) == (row["content"], row["embedding"])
    await archive.write({kept.object_key: b"another"})
    with pytest.raises(Conflict, match=f"{memory_id} is not the one that was archived"):
        await read_copy(archive, memory_id, kept)
    with pytest.raises(NotFound, match="gone from the archive"):
        await read_copy(archive, memory_id, replace(kept, object_key="agent/none.json"))


@pytest.mark.shows("NFR-6.3")
async def test_a_sealed_object_tells_its_key_and_nothing_else(tmp_path: Path) -> None:
    archive = SealedArchive(DirectoryArchive(tmp_path), Keyring(KEYS, "2026"))
    for _ in range(2):
        await archive.write({"agent/one.json": b"the heron", "agent/two.json": b"the heron"})
    one, two = ((tmp_path / "agent" / name).read_bytes() for name in ("one.json", "two.json"))
    assert one.startswith(b"agentcore-sealed/1 2026\n")
    assert b"heron" not in one + two
    assert one[-30:] != two[-30:]  # the same text and key, encrypted twice


@pytest.mark.shows("issue4-6-sealed")
async def test_keys_are_changed_without_writing_anything_again(tmp_path: Path) -> None:
    plain = DirectoryArchive(tmp_path)
    await plain.write({"agent/plain.json": b"before there were keys"})
    await SealedArchive(plain, Keyring({"2025": KEYS["2025"]}, "2025")).write({"agent/old.json": b"old"})
    both = SealedArchive(plain, Keyring(KEYS, "2026"))
    await both.write({"agent/new.json": b"new"})
    assert await both.read("agent/plain.json") == b"before there were keys"
    assert (await both.read("agent/old.json"), await both.read("agent/new.json")) == (b"old", b"new")
    new_alone = SealedArchive(plain, Keyring({"2026": KEYS["2026"]}, "2026"))
    with pytest.raises(Conflict, match="sealed with the key '2025', which this service does not hold"):
        await new_alone.read("agent/old.json")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data[:-1],
        lambda data: data[:-1] + bytes([data[-1] ^ 1]),
        lambda data: data[:30],
        lambda data: data.replace(b"1 2026\n", b"1 2025\n"),
    ],
    ids=["cut off", "one bit", "a stump", "another key's name"],
)
async def test_a_sealed_object_that_was_changed_does_not_open(tmp_path: Path, change: Callable[[bytes], bytes]) -> None:
    archive = SealedArchive(DirectoryArchive(tmp_path), Keyring(KEYS, "2026"))
    await archive.write({"agent/one.json": b"the heron"})
    path = tmp_path / "agent" / "one.json"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(Conflict, match="does not open"):
        await archive.read("agent/one.json")


@pytest.mark.shows("issue4-6-sealed")
async def test_a_sealed_object_does_not_open_in_anothers_place(tmp_path: Path) -> None:
    archive = SealedArchive(DirectoryArchive(tmp_path), Keyring(KEYS, "2026"))
    await archive.write({"agent/one.json": b"the heron"})
    (tmp_path / "agent" / "one.json").rename(tmp_path / "agent" / "two.json")
    with pytest.raises(Conflict, match="does not open"):
        await archive.read("agent/two.json")


async def test_a_draft_that_a_crash_left_is_written_over(tmp_path: Path) -> None:
    archive = DirectoryArchive(tmp_path)
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / ".one.json.draft").write_bytes(b"half of a longer copy")
    await archive.write({"agent/one.json": b"whole"})
    assert [path.name for path in (tmp_path / "agent").iterdir()] == ["one.json"]
    assert await archive.read("agent/one.json") == b"whole"


async def test_a_draft_that_a_crash_left_is_told_and_deleted_as_its_object(tmp_path: Path) -> None:
    archive = DirectoryArchive(tmp_path)
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / ".one.json.draft").write_bytes(b"half of a copy")
    assert await archive.keys("agent/") == ["agent/one.json"]
    await archive.delete(["agent/one.json"])
    assert [*(tmp_path / "agent").iterdir()] == []


async def test_s3_deletes_and_lists_more_than_it_takes_in_one_request(bucket: tuple[str, str]) -> None:
    # Into the server's own store: a request for each takes longer than all other tests of this file.
    stored = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for number in range(DELETED_AT_ONCE + 5):
        stored.put_object(bucket[0], f"agent/{number}.json", b"x")
    archive = S3Archive(*bucket)
    keys = await archive.keys("agent/")
    assert len(keys) == DELETED_AT_ONCE + 5
    await archive.delete(keys)
    assert await archive.keys("agent/") == []


@pytest.mark.shows("issue4-6-sealed")
async def test_s3_is_told_how_to_keep_each_object(bucket: tuple[str, str]) -> None:
    headers = {"StorageClass": "STANDARD_IA", "ServerSideEncryption": "AES256"}
    archive = S3Archive(*bucket, object_headers=headers)
    await SealedArchive(archive, Keyring(KEYS, "2026")).write({"agent/sealed.json": b"x"})
    await archive.write({"agent/plain.json": gzip.compress(b"{}")})
    client = boto3.client("s3", endpoint_url=bucket[1])
    sealed, plain = (client.head_object(Bucket=bucket[0], Key=f"agent/{name}.json") for name in ("sealed", "plain"))
    for told in (sealed, plain):
        assert {name: told[name] for name in headers} == headers
    assert (plain["ContentType"], plain["ContentEncoding"]) == ("application/json", "gzip")
    assert sealed["ContentType"] == "application/octet-stream"


async def test_a_copy_in_a_cold_class_says_what_is_to_be_done(bucket: tuple[str, str]) -> None:
    client = boto3.client("s3", endpoint_url=bucket[1])
    client.put_object(Bucket=bucket[0], Key="agent/cold.json", Body=b"x", StorageClass="GLACIER")
    with pytest.raises(DependencyUnavailable, match="cold storage class"):
        await S3Archive(*bucket).read("agent/cold.json")


class Forgetful(DirectoryArchive):
    async def read(self, key: str) -> bytes:
        return (await super().read(key))[:-1]


async def test_a_copy_that_does_not_read_back_whole_is_no_copy(tmp_path: Path) -> None:
    with pytest.raises(DependencyUnavailable, match="other bytes"):
        await archive_memories(Forgetful(tmp_path), "agent", [{"memory_id": uuid4(), "content": "heron"}])


async def test_a_directory_that_cannot_be_used_is_a_dependency(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    archive = DirectoryArchive(tmp_path / "file")
    with pytest.raises(DependencyUnavailable):
        await archive.check()
    with pytest.raises(DependencyUnavailable):
        await archive.write({"agent/one.json": b"x"})


async def test_a_missing_bucket_is_a_dependency(bucket: tuple[str, str]) -> None:
    archive = S3Archive("nobodys-bucket", bucket[1])
    with pytest.raises(DependencyUnavailable):
        await archive.check()
    with pytest.raises(DependencyUnavailable, match="NoSuchBucket"):
        await archive.write({"agent/one.json": b"x"})
    with pytest.raises(DependencyUnavailable, match="NoSuchBucket"):
        await archive.delete(["agent/one.json"])


async def test_an_endpoint_that_does_not_answer_is_a_dependency(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with pytest.raises(DependencyUnavailable, match="does not answer"):
        await S3Archive("archive", "http://127.0.0.1:9").check()


def hanging(path: Path) -> Path:
    """Opening a named pipe blocks, as a file of a dead mount does."""
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    return path


async def test_a_directory_that_hangs_is_unreachable_within_the_limit_then_at_once(tmp_path: Path) -> None:
    pipe = hanging(tmp_path / "agent" / "one.json")
    archive = DirectoryArchive(tmp_path, timeout_seconds=0.2)
    async with asyncio.timeout(10):
        with pytest.raises(Unreachable):
            await archive.read("agent/one.json")
        assert archive.circuit.is_open
        with pytest.raises(Unreachable):
            await archive.read("agent/two.json")  # raises without a read, which would be NotFound
        await archive.check()  # closes the circuit
        with pytest.raises(NotFound):
            await archive.read("agent/two.json")
    pipe.write_bytes(b"")  # unblocks and ends the thread


async def test_calls_that_hang_take_a_bounded_number_of_threads(tmp_path: Path) -> None:
    pipe = hanging(tmp_path / "agent" / "one.json")
    archive = DirectoryArchive(tmp_path, timeout_seconds=0.2)
    async with asyncio.timeout(10):
        reads = (archive.read("agent/one.json") for _ in range(3 * MAX_THREADS))
        outcomes = await asyncio.gather(*reads, return_exceptions=True)
        assert {type(each) for each in outcomes} == {Unreachable}
        hung = [each for each in threading.enumerate() if each.name == "archive"]
        assert len(hung) == MAX_THREADS
        with pytest.raises(Unreachable):
            await archive.check()
        pipe.write_bytes(b"")
        await asyncio.gather(*(asyncio.to_thread(each.join) for each in hung))
        await archive.check()


async def test_nothing_is_written_or_deleted_before_a_change_that_hung_has_ended(tmp_path: Path) -> None:
    pipe = hanging(tmp_path / "agent" / ".one.json.draft")
    archive = DirectoryArchive(tmp_path, timeout_seconds=0.2)
    async with asyncio.timeout(10):
        with pytest.raises(Unreachable):
            await archive.write({"agent/one.json": b"first"})
        await archive.check()
        with pytest.raises(Unreachable):
            await archive.write({"agent/two.json": b"x"})
        await archive.check()
        with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)):
            await archive.write({"agent/two.json": b"second"})
        assert await archive.keys("agent/") == ["agent/two.json"]


def test_a_change_that_was_given_up_places_and_deletes_no_further_file(tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_bytes(b"x")
    given_up = Event()
    given_up.set()
    _write_files([(tmp_path / "one.json", b"x")], given_up)
    _delete_files([tmp_path / "kept.json"], given_up)
    assert not (tmp_path / "one.json").exists()
    assert (tmp_path / "kept.json").exists()
