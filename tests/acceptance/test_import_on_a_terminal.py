"""An import that a person watches: how far it is, what an interruption leaves, what is no import at all."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.acceptance.test_import_from import EXPORTS
from tests.fixtures.serving import COMMAND_SECONDS, Serving

LINES = 2_000
SHOWN = re.compile(rb"(\d+) lines .*?(\d+)%")


@contextmanager
def terminal(serving: Serving, *command: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A command whose messages go to a terminal, and that terminal's other end."""
    ours, its = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "agentcore", *command], cwd=serving.home.parent, text=True, stderr=its,
        stdout=subprocess.PIPE, env={
            **serving.environment, "AGENTCORE_URL": serving.url, "COLUMNS": "100", "TERM": "xterm"})
    os.close(its)
    try:
        yield process, ours
    finally:
        process.kill()
        process.communicate()
        os.close(ours)


def read(end: int) -> bytes:
    """What is written next; nothing once the other end is closed."""
    try:
        return os.read(end, 65_536)
    except OSError:
        return b""


@pytest.fixture
def conversation(tmp_path: Path) -> Path:
    file = tmp_path / "conversation.jsonl"
    file.write_text("".join(
        json.dumps({"text": f"Reading {n} of the meter in the cellar was {n * 37}."}) + "\n"
        for n in range(LINES)))
    return file


def test_an_import_shows_how_far_it_is_and_interrupted_says_how_to_go_on(
    serving: Serving, agent_id: str, conversation: Path
) -> None:
    command = ("import", str(conversation), "--agent", agent_id)
    with terminal(serving, *command) as (process, end):
        seen = b""
        while not any(int(found[1]) > 250 for found in SHOWN.finditer(seen)):
            more = read(end)
            assert more, seen
            seen += more
        process.send_signal(signal.SIGINT)
        while more := read(end):
            seen += more
        said, _ = process.communicate(timeout=COMMAND_SECONDS)
        assert process.returncode == 130
    [told] = re.findall(r"interrupted after line (\d+)\. Run the same command again", seen.decode())
    assert 250 <= int(told) < LINES
    assert said.startswith(f"stored {told}, existing 0,")
    again = serving.cli(*command)
    stored, existing = re.findall(r"stored (\d+), existing (\d+)", again.stdout)[0]
    assert (int(stored) + int(existing), again.returncode) == (LINES, 0)
    assert int(existing) >= int(told)


def test_what_is_no_jsonl_is_refused_with_the_forms_there_are(
    serving: Serving, agent_id: str, tmp_path: Path
) -> None:
    archive = tmp_path / "export.zip"
    with ZipFile(archive, "w") as packed:
        packed.write(EXPORTS / "chatgpt.json", "conversations.json")
    for file in (archive, EXPORTS / "chatgpt.json", EXPORTS / "kagent.json"):
        refused = serving.cli("import", str(file), "--agent", agent_id)
        assert refused.returncode == 2
        said = " ".join(refused.stderr.replace("\u2502", " ").split())
        assert "is no JSONL" in said
        assert "--from: chatgpt, claude, kagent, langgraph, mem0" in said


def test_a_file_of_another_system_than_was_said_is_told(serving: Serving, agent_id: str) -> None:
    done = serving.cli("import", "--from", "claude", str(EXPORTS / "chatgpt.json"), "--agent", agent_id)
    assert done.returncode == 1
    assert "is what claude exports: is it of another system? Known: chatgpt, claude, kagent" in done.stderr
