"""`make demo`: completes all steps, prints correct counts and leaves no files or processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from agentcore.cli.demo import summary

DATA = Path(__file__).parents[2] / "agentcore" / "cli" / "demo_data"


@pytest.fixture(scope="module")
def room() -> Iterator[Path]:
    """Returns a home's parent directory; pytest's own directories are closed to other users."""
    with tempfile.TemporaryDirectory(prefix="room-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


@pytest.fixture(scope="module")
def done(room: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agentcore", "demo", "--json"],
        cwd=room,
        timeout=300,
        check=False,
        env={**os.environ, "TMPDIR": str(room), "PYTHONPATH": str(DATA.parents[2])},
        capture_output=True,
        text=True,
    )


@pytest.mark.shows("issue2-15-demo", "B7")
def test_a_question_counts_only_where_a_current_answer_is_shown(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    texts = [json.loads(line)["text"] for line in (DATA / "conversation.jsonl").read_text().splitlines()]
    questions = json.loads((DATA / "questions.json").read_text())
    results = json.loads(done.stdout)
    assert len(results) == len(questions) == 10
    for asked, result in zip(questions, results, strict=True):
        current = {texts[line - 1] for line in asked["current"]}
        assert len(result["shown"]) == 3
        assert result["current_shown"] is bool(current & {*result["shown"]})


@pytest.mark.shows("issue2-15-demo")
def test_the_demonstration_leaves_nothing_behind(room: Path, done: subprocess.CompletedProcess[str]) -> None:
    assert "imported a conversation of 364 lines" in done.stderr
    assert list(room.iterdir()) == []
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert str(room) not in running


@pytest.mark.parametrize(
    ("shown", "printed"),
    [
        ([True, True], "2 of 2 questions: a current answer is among the 3 memories shown."),
        ([True, False], "1 of 2 questions: a current answer is among the 3 memories shown.\nmissed: Q1"),
    ],
    ids=["all", "missed"],
)
@pytest.mark.shows("B7")
def test_the_count_is_the_number_found_and_names_what_was_missed(shown: list[bool], printed: str) -> None:
    results = [{"question": f"Q{number}", "current_shown": each} for number, each in enumerate(shown)]
    assert summary(results) == printed
