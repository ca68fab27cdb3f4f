"""What every archive does: keep bytes by key, give them back, say when it cannot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import boto3
import pytest
from moto.server import ThreadedMotoServer

from agentcore.errors import DependencyUnavailable, NotFound
from agentcore.memory.archival import Archive, DirectoryArchive, archive_memories
from agentcore.providers.s3_archive import S3Archive


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, str]]:
    """A bucket of its own (moto keeps them for the process) at an S3 endpoint on this machine."""
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


@pytest.fixture(params=["directory", "s3"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> Archive:
    """Each archive there is."""
    if request.param == "directory":
        return DirectoryArchive(tmp_path)
    return S3Archive(*request.getfixturevalue("bucket"))


async def test_what_is_written_is_read_back_and_written_over(archive: Archive) -> None:
    await archive.check()
    await archive.write({"agent/one.json": b"first", "agent/two.json": b"other"})
    await archive.write({"agent/one.json": b"second"})
    assert await archive.read("agent/one.json") == b"second"
    assert await archive.read("agent/two.json") == b"other"


async def test_what_is_not_there_is_not_found(archive: Archive) -> None:
    with pytest.raises(NotFound):
        await archive.read("agent/none.json")


async def test_a_memory_is_archived_under_its_agent_and_id(archive: Archive) -> None:
    memory_id = uuid4()
    [kept] = await archive_memories(archive, "../agent", [{"memory_id": memory_id, "content": "héron"}])
    assert kept.object_key == f"%2E%2E%2Fagent/{memory_id}.json"
    assert kept.size_bytes == len(await archive.read(kept.object_key))


class Forgetful(DirectoryArchive):
    """A disk that gives back other bytes than it took."""

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


async def test_an_endpoint_that_does_not_answer_is_a_dependency(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    with pytest.raises(DependencyUnavailable, match="does not answer"):
        await S3Archive("archive", "http://127.0.0.1:9").check()
