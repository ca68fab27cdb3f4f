"""`make demo`: everything of a first visit in one go, and nothing left behind."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

DEMO = Path(__file__).parents[2] / "examples" / "demo.py"


@pytest.fixture
def room() -> Iterator[Path]:
    """Where the demonstration makes its home: pytest's own directory lets no other user in."""
    with tempfile.TemporaryDirectory(prefix="room-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


def test_the_demonstration_finds_every_answer_and_leaves_nothing_behind(room: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(DEMO)], cwd=room, env={**os.environ, "TMPDIR": str(room)},
        capture_output=True, text=True, timeout=120, check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "10 of 10 questions" in done.stdout
    assert "similarity" in done.stdout
    assert "tokens" in done.stdout
    assert list(room.iterdir()) == []
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(room) not in running
