"""The check for /readyz: one at a time for all callers, with a cached result."""

from __future__ import annotations

import asyncio
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from agentcore.errors import DiskFull
from agentcore.memory.archival import DirectoryArchive
from agentcore.readiness import SharedCheck, State

ROOT = Path(__file__).resolve().parents[2]
CHECK = """
import asyncio, resource, signal, sys
from pathlib import Path
from agentcore.errors import DependencyUnavailable
from agentcore.errors import DiskFull
from agentcore.memory.archival import DirectoryArchive

resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
try:
    asyncio.run(DirectoryArchive(Path(sys.argv[1])).check())
except DependencyUnavailable as failure:
    print(failure.message)
"""


class Counted:
    """A check that counts its runs and can block."""

    def __init__(self) -> None:
        self.made = 0
        self.begun, self.go_on = asyncio.Event(), asyncio.Event()
        self.now = 100.0

    async def __call__(self) -> dict[str, State]:
        self.made += 1
        self.begun.set()
        await self.go_on.wait()
        return {"postgresql": {"ok": True, "number": self.made}}

    def clock(self) -> float:
        return self.now


@pytest.mark.shows("A14-readyz-work")
async def test_callers_share_one_check_and_its_answer_for_a_second() -> None:
    counted = Counted()
    check = SharedCheck(counted, counted.clock)
    asking = [asyncio.create_task(check.answer()) for _ in range(20)]
    impatient = asyncio.create_task(check.answer())
    await counted.begun.wait()
    impatient.cancel()
    counted.go_on.set()
    answers = await asyncio.gather(*asking)
    assert [answer["postgresql"]["number"] for answer in answers] == [1] * 20
    counted.now += 0.9
    assert (await check.answer())["postgresql"]["number"] == 1
    counted.now += 0.2
    assert (await check.answer())["postgresql"]["number"] == 2


@pytest.mark.shows("A14-readyz-writes")
async def test_an_archive_directory_is_ready_only_if_it_takes_a_byte(tmp_path: Path) -> None:
    await DirectoryArchive(tmp_path).check()
    assert await DirectoryArchive(tmp_path).keys("") == []
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 0
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", CHECK, str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "The archive directory cannot be used: File too large.\n", done.stderr


@pytest.fixture
def full(tmp_path: Path) -> Path:
    """An archive whose next copy goes to /dev/full, which fails as a full disk does."""
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / ".one.json.draft").symlink_to("/dev/full")
    return tmp_path


@pytest.mark.shows("issue13-error-causes")
async def test_a_full_disk_of_the_archive_has_its_class(full: Path) -> None:
    with pytest.raises(DiskFull, match="disk is full") as caught:
        await DirectoryArchive(full).write({"agent/one.json": b"x"})
    assert (caught.value.retryable, caught.value.data) == (False, {"cause": "disk_full"})
