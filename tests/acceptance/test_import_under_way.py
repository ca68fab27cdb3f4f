"""Imports in progress: the terminal's progress bar, and the state after Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
import sys
from contextlib import suppress
from io import FileIO
from pathlib import Path

import pytest

from agentcore.client import MemoryClient
from agentcore.memory.params.memories import CountParams
from tests.fixtures.serving import Serving


def conversation(count: int) -> list[str]:
    return [f"{json.dumps({'text': f'Note {number}: parcel {number * 7919} was sent.'})}\n" for number in range(count)]


@pytest.mark.shows("issue2-13-import")
async def test_an_import_that_is_stopped_by_ctrl_c_says_how_far_it_came(
    serving: Serving, memory: MemoryClient, agent_id: str
) -> None:
    lines = conversation(600)
    stopped = serving.open_cli("import", "-", "--agent", agent_id)
    assert stopped.stdin is not None
    stopped.stdin.write("".join(lines))
    stopped.stdin.flush()
    async with asyncio.timeout(60):
        # By then the first batch is answered; the second may be.
        while (await memory.count(CountParams())).count < 500:
            pass
    stopped.send_signal(signal.SIGINT)
    out, err = stopped.communicate()
    told = re.fullmatch(
        r"agentcore: stopped after line (250|500) by Ctrl-C\. Run the same command again to go on: nothing "
        r"is stored twice\.\n",
        err,
    )
    assert told is not None, (stopped.returncode, out, err)
    assert (stopped.returncode, out) == (130, f"stored {told[1]}, existing 0, reinforced 0, rejected 0, failed 0\n")
    again = serving.cli("import", "-", "--agent", agent_id, said="".join(lines))
    assert again.stdout.startswith("stored 100, existing 500, ")


@pytest.mark.parametrize(("form", "unit"), [((), "line"), (("--from", "mem0"), "record")])
def test_an_import_that_waits_for_input_is_stopped_by_the_first_ctrl_c(
    serving: Serving, agent_id: str, form: tuple[str, ...], unit: str
) -> None:
    waiting = serving.open_cli("import", "-", *form, "--agent", agent_id)
    assert waiting.stdin is not None
    assert waiting.stderr is not None
    waiting.stdin.write("".join([*conversation(250), "{}\n", *conversation(5)]))
    waiting.stdin.flush()
    try:
        # Printed after the first batch; the import then blocks on stdin.
        assert waiting.stderr.readline().startswith(f"{unit} 251: ")
        waiting.send_signal(signal.SIGINT)
        assert waiting.wait(timeout=20) == 130  # its stdin is still open
        assert waiting.stderr.read() == (
            f"agentcore: stopped after {unit} 250 by Ctrl-C. Run the same command again to go on: nothing is "
            "stored twice.\n"
        )
    finally:
        waiting.kill()
        out, _ = waiting.communicate()
    assert out == "stored 250, existing 0, reinforced 0, rejected 0, failed 1\n"


def test_on_a_terminal_an_import_shows_how_far_it_is_and_leaves_nothing_of_it(
    serving: Serving, tmp_path: Path, agent_id: str
) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text("".join(conversation(300)))
    screen, stderr = pty.openpty()
    with os.fdopen(screen, "rb", buffering=0) as shown:
        importing = subprocess.Popen(
            [sys.executable, "-m", "agentcore", "import", str(file), "--agent", agent_id],
            stderr=stderr,
            stdout=subprocess.PIPE,
            text=True,
            env={**serving.environment, "AGENTCORE_URL": serving.url, "TERM": "xterm", "COLUMNS": "100"},
        )
        os.close(stderr)
        said = everything_shown(shown).decode()
    out, _ = importing.communicate()
    assert (importing.returncode, out.split(",")[0]) == (0, "stored 300")
    assert re.search(r"300 lines.*\u2501.*100%", said)
    # The progress bar's line is cleared at the end, and no output follows.
    assert said.rstrip().endswith("\x1b[2K")


def everything_shown(screen: FileIO) -> bytes:
    """Reads a pseudo-terminal to its end, where further reads raise OSError."""
    shown = b""
    with suppress(OSError):
        while part := screen.read(65_536):
            shown += part
    return shown
