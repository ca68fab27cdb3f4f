"""Runs every example of the documents on a running service and compares the output with the page."""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fixtures.services import Services
from tests.fixtures.serving import ROOT, Serving

PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?^```(?P<language>python|sh)\n(?P<code>.*?)^```$"
    r"(?:\n\n^```output\n(?P<output>.*?)^```$)?",
    re.MULTILINE | re.DOTALL,
)
MOST_NOT_RUN = 20
# Pages whose examples are all run by other tests, with stricter assertions.
OF_OTHER_TESTS = {
    "README.md": "test_readme.py",
    "docs/session-memory.md": "test_session_memory_page.py",
    **{
        f"docs/integrations/{framework}.md": "test_framework_examples.py"
        for framework in ("google_adk", "langchain", "langgraph", "openai_agents")
    },
}
PRINTED_URL = "http://127.0.0.1:8080"
END_OF_BLOCK = "--- end of block ---"
PAGE_SECONDS = 400


@dataclass(frozen=True)
class Block:
    """A fenced block of a page, with its expected output."""

    page: str
    line: int
    language: str
    code: str
    output: str | None
    reason: str | None


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start("code"))
        yield Block(
            str(page.relative_to(ROOT)), line, found["language"], found["code"], found["output"], found["reason"]
        )


BLOCKS = [block for page in PAGES for block in blocks(page)]
RUN = {
    name: [block for block in BLOCKS if block.page == name and block.reason is None]
    for name in dict.fromkeys(block.page for block in BLOCKS)
}


def script(of: list[Block], directory: Path) -> str:
    """Joins the blocks into one script, since later blocks use earlier exports and definitions."""
    lines = []
    for number, block in enumerate(of):
        if block.language == "python":
            (directory / f"block_{number}.py").write_text(block.code)
            lines.append(f".venv/bin/python block_{number}.py\n")
        else:
            lines.append(block.code)
        lines.append(f"echo; echo '{END_OF_BLOCK}'\n")
    return "".join(lines)


def checkout(directory: Path) -> None:
    """Provides the commands of `.venv/bin` and the examples."""
    commands = directory / ".venv" / "bin"
    commands.mkdir(parents=True)
    python = shlex.quote(sys.executable)
    for name, command in (("python", python), ("agentcore", f"{python} -m agentcore")):
        (commands / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (commands / name).chmod(0o755)
    (directory / "examples").symlink_to(ROOT / "examples")


def printed_as_told(output: str, printed: str) -> bool:
    """Checks that the expected lines occur in order; `...` matches any text."""
    lines = iter(printed.splitlines())
    return all(
        any(fnmatch.fnmatchcase(line, pattern) for line in lines)
        for pattern in (
            "*".join(re.sub(r"([][*?])", r"[\1]", part) for part in told.split("...")) for told in output.splitlines()
        )
    )


@pytest.mark.parametrize("page", [name for name, of in RUN.items() if of and name not in OF_OTHER_TESTS])
@pytest.mark.shows("issue6-5-MCP", "issue6-7-examples")
def test_the_examples_of_a_page_run_as_printed(
    page: str, serving: Serving, services: Services, agent_id: str, tmp_path: Path
) -> None:
    if shutil.which("curl") is None or shutil.which("bash") is None:
        pytest.skip("the examples are for bash and curl")
    checkout(tmp_path)
    own = [
        Block(
            **{
                **vars(block),
                "code": block.code.replace(PRINTED_URL, serving.url)
                .replace("my-agent", agent_id)
                .replace("another-agent", f"another-{agent_id}"),
            }
        )
        for block in RUN[page]
    ]
    environment = {
        **serving.environment,
        "AGENTCORE_URL": serving.url,
        "AGENTCORE_TOKEN": serving.token(agent_id),
        "PATH": f"{tmp_path / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "200",
        "REDIS_URL": services.agents_redis_url(),
    }
    lines = script(own, tmp_path)
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        cwd=tmp_path,
        env=environment,
        text=True,
        capture_output=True,
        timeout=PAGE_SECONDS,
        check=False,
    )
    parts = done.stdout.split(END_OF_BLOCK)
    assert done.returncode == 0, f"{page}:{own[len(parts) - 1].line}\n{done.stdout}\n{done.stderr}"
    untrue = [
        f"{page}:{block.line}: {printed}"
        for block, printed in zip(own, parts, strict=False)
        if block.output is not None and not printed_as_told(block.output, printed)
    ]
    assert untrue == []
    answers = [line for line in done.stdout.splitlines() if line.startswith('{"jsonrpc"')]
    assert [answer for answer in answers if '"error"' in answer.partition('"result"')[0]] == []


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.reason], ids=lambda block: block.page)
def test_an_example_that_is_not_run_says_why_and_is_at_least_written_rightly(block: Block) -> None:
    assert block.reason is not None
    assert len(block.reason.split()) > 3
    named = re.findall(r"tests/[\w/]+\.py", block.reason)
    assert [name for name in named if not (ROOT / name).exists()] == []
    if block.language == "python":
        compile(block.code, block.page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    else:
        subprocess.run(["bash", "-n", "-c", block.code], check=True, timeout=60)


@pytest.mark.parametrize("page", OF_OTHER_TESTS)
def test_a_page_left_to_another_test_has_examples_that_it_names(page: str) -> None:
    other = (Path(__file__).parent / OF_OTHER_TESTS[page]).read_text(encoding="utf-8")
    assert RUN[page]
    assert Path(page).name in other or f'"{Path(page).stem}"' in other
    assert all(block.output is None for block in RUN[page])


@pytest.mark.shows("issue6-7-examples")
def test_few_examples_are_not_run() -> None:
    assert 0 < sum(block.reason is not None for block in BLOCKS) <= MOST_NOT_RUN


@pytest.mark.shows("issue6-7-examples")
def test_every_fenced_block_of_code_is_seen() -> None:
    fences = sum(len(re.findall(r"^```(?:python|sh)$", page.read_text(), re.MULTILINE)) for page in PAGES)
    assert len(BLOCKS) == fences
    told = sum(len(re.findall(r"^```output$", page.read_text(), re.MULTILINE)) for page in PAGES)
    assert sum(block.output is not None for block in BLOCKS) == told


def test_an_output_that_is_not_printed_would_be_seen() -> None:
    assert printed_as_told("one\n...two...\n", "zero\none\nand two too\n")
    assert not printed_as_told("two\none\n", "one\ntwo\n")
    assert not printed_as_told("[x]\n", "x\n")
    assert not printed_as_told("one\n", "one more\n")
