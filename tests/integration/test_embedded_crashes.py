"""Embedded parts after abnormal ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest

from agentcore.embedded import EmbeddedParts, Home, attach
from agentcore.errors import StartupError
from tests.fixtures.embedded_parts import (
    PATIENCE_SECONDS,
    answers,
    ask,
    assert_nothing_left,
    cache,
    eventually,
    hosted,
    keep_row,
    new_home,
    processes_of,
    redis_answers,
    rows,
    running,
    start_host,
    the_process,
)


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with new_home() as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_left(home: Home) -> Iterator[None]:
    yield
    assert_nothing_left(home)


@pytest.fixture
def fresh_home() -> Iterator[Home]:
    with new_home() as made:
        yield made


@pytest.mark.shows("NFR-4.1")
async def test_a_killed_postgresql_comes_back_with_every_row(home: Home) -> None:
    told: list[str] = []
    async with running(home, told) as parts:
        await keep_row(parts.urls, "killed")
        server = the_process(home, "postgres")
        server.kill()
        await eventually(lambda: any("ended by itself (status -9)" in line for line in told))
        await eventually(lambda: answers(parts.urls))
        assert the_process(home, "postgres") != server
        assert await rows(parts.urls, "killed") == 1


async def test_a_killed_postgresql_with_a_busy_session_comes_back(home: Home) -> None:
    """A busy session would keep the shared memory until its loop ends."""
    async with running(home) as parts:
        busy = asyncio.create_task(ask(parts.urls, "DO $$ BEGIN LOOP END LOOP; END $$"))
        await eventually(lambda: any("DO" in " ".join(each.cmdline()) for each in processes_of(home)))
        the_process(home, "postgres").kill()
        with pytest.raises(psycopg.OperationalError):
            await asyncio.wait_for(busy, PATIENCE_SECONDS)
        await eventually(lambda: answers(parts.urls))


@pytest.mark.shows("issue2-2-crashes")
async def test_a_killed_redis_comes_back_with_every_key(home: Home) -> None:
    async with running(home) as parts:
        async with cache(parts.urls) as keys:
            await keys.set("killed", "value", ex=600)
        server = the_process(home, "valkey-server")
        server.kill()
        await eventually(lambda: redis_answers(parts.urls))
        assert the_process(home, "valkey-server") != server
        async with cache(parts.urls) as keys:
            assert await keys.get("killed") == b"value"
            assert 0 < await keys.ttl("killed") <= 600


async def test_a_part_that_cannot_come_back_yet_is_tried_again(home: Home) -> None:
    told: list[str] = []
    async with running(home, told) as parts:
        aside = home.path / "aside"
        home.postgres_data.rename(aside)
        for each in psutil.process_iter(["cwd"]):
            if each.info["cwd"] == str(aside):
                with suppress(psutil.NoSuchProcess):
                    each.kill()
        await eventually(lambda: any("has gone" in line for line in told))
        aside.rename(home.postgres_data)
        await eventually(lambda: answers(parts.urls))
        assert await ask(parts.urls, "SELECT 1") == [(1,)]


@pytest.mark.shows("issue2-2-crashes")
async def test_parts_of_a_killed_server_end_and_the_next_one_finds_every_row(home: Home) -> None:
    async with hosted(home) as (host, urls):
        await keep_row(urls, "server")
        async with cache(urls) as keys:
            await keys.set("server", "value", ex=600)
        host.kill()
        await eventually(lambda: processes_of(home) == [])
    with pytest.raises(StartupError, match="No agentcore server runs on"):
        attach(home)
    async with running(home) as parts:
        assert await rows(parts.urls, "server") == 1
        async with cache(parts.urls) as keys:
            assert await keys.get("server") == b"value"


async def test_orphans_are_ended_before_the_next_start(home: Home) -> None:
    told: list[str] = []
    async with hosted(home) as (host, urls):
        await keep_row(urls, "orphan")
        for child in psutil.Process(host.pid).children():
            if "agentcore-guard" in child.cmdline():
                child.kill()
        host.kill()
        await asyncio.to_thread(host.wait)
        orphans = [the_process(home, "postgres"), the_process(home, "valkey-server")]
        assert await rows(urls, "orphan") == 1
        async with running(home, told) as parts:
            assert not set(orphans) & set(processes_of(home))
            assert await rows(parts.urls, "orphan") == 1
    assert {line for line in told if "earlier server" in line} == {
        "Ending the PostgreSQL of an earlier server",
        "Ending the Redis of an earlier server",
    }


async def test_an_interrupted_first_start_is_done_again(fresh_home: Home) -> None:
    host = await asyncio.to_thread(start_host, fresh_home)
    try:
        await eventually(lambda: any(fresh_home.run.glob("initdb-*/data/base")))
    finally:
        host.kill()
        await asyncio.to_thread(host.communicate)
    assert not fresh_home.postgres_data.exists()
    async with running(fresh_home) as parts:
        assert list(fresh_home.run.glob("initdb-*")) == []
        assert await ask(parts.urls, "SELECT '[1]'::vector::text") == [("[1]",)]


async def test_a_cancelled_start_leaves_nothing_running(home: Home) -> None:
    for _ in range(5):
        parts = EmbeddedParts(home, postgres=True, redis=True, log=print)
        starting = asyncio.create_task(parts.start())
        begun = partial(begins, home, starting)
        await eventually(begun)
        if starting.cancel():
            break
        await parts.stop()  # it finished before the check
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert processes_of(home) == []
    async with running(home) as again:
        assert await ask(again.urls, "SELECT 1") == [(1,)]


def begins(home: Home, starting: asyncio.Task[object]) -> bool:
    with suppress(psutil.NoSuchProcess):  # exited since it was listed: retry
        return starting.done() or any(each.name() == "postgres" for each in processes_of(home))
    return False


async def test_locks_left_empty_by_a_crash_of_the_machine_are_no_hindrance(home: Home) -> None:
    async with running(home):
        pass
    for lock in (home.postgres_data / "postmaster.pid", home.run / "sockets" / ".s.PGSQL.5432.lock"):
        lock.touch()
        shutil.chown(lock, *owner(home.postgres_data))
    async with running(home) as parts:
        assert await ask(parts.urls, "SELECT 1") == [(1,)]


async def test_locks_whose_process_id_a_stranger_has_by_now_are_no_hindrance(home: Home) -> None:
    async with running(home):
        socket_lock = home.run / "sockets" / ".s.PGSQL.5432.lock"
        left = {place: place.read_text() for place in (home.postgres_data / "postmaster.pid", socket_lock)}
    stranger = await asyncio.to_thread(sleeper, *owner(home.postgres_data))
    try:
        for place, text in left.items():
            place.write_text("\n".join([str(stranger.pid), *text.splitlines()[1:]]) + "\n")
            shutil.chown(place, *owner(home.postgres_data))
        async with running(home) as parts:
            assert await ask(parts.urls, "SELECT 1") == [(1,)]
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def sleeper(uid: int, gid: int) -> subprocess.Popen[bytes]:
    """PostgreSQL ignores a lock file with another user's process id."""
    as_other = {"user": uid, "group": gid, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.Popen(["sleep", "60"], cwd="/", **as_other)  # type: ignore[call-overload,no-any-return]


def owner(path: Path) -> tuple[int, int]:
    return path.stat().st_uid, path.stat().st_gid


async def test_a_failed_start_tells_the_servers_last_words_and_frees_the_home(home: Home) -> None:
    async with running(home):
        pass
    configuration = home.postgres_data / "postgresql.conf"
    kept = configuration.read_text()
    configuration.write_text(kept + "\nnonsense = on\n")
    try:
        with pytest.raises(StartupError, match=r"postgres server ended at its start[\s\S]*\"nonsense\""):
            await EmbeddedParts(home, postgres=True, redis=True, log=print).start()
        assert processes_of(home) == []
    finally:
        configuration.write_text(kept)
    async with running(home) as parts:
        assert await ask(parts.urls, "SELECT 1") == [(1,)]


async def test_a_file_redis_cannot_read_is_set_aside(fresh_home: Home) -> None:
    told: list[str] = []
    only_redis = {"postgres": False, "redis": True}
    async with EmbeddedParts(fresh_home, **only_redis, log=told.append) as parts, cache(parts.urls) as keys:
        await keys.set("lost", "value")
    written = max(fresh_home.redis_data.rglob("*aof"), key=lambda each: each.stat().st_size)
    written.write_bytes(b"*torn" + written.read_bytes())
    async with EmbeddedParts(fresh_home, **only_redis, log=told.append) as parts, cache(parts.urls) as keys:
        assert await keys.get("lost") is None
    assert any("starts empty; the file is kept in" in line for line in told)
    assert len(list(fresh_home.path.glob("redis.broken-*"))) == 1
