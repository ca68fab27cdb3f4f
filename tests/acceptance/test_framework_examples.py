"""The framework examples and guides, run across a service restart without an API key."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fixtures.serving import ROOT, START_SECONDS, Serving

EXAMPLES, GUIDES = ROOT / "examples", ROOT / "docs" / "integrations"
FRAMEWORKS = ("google_adk", "langgraph", "openai_agents", "langchain")
# The setup that each example needs, and the extra that provides it.
NEEDED = {
    "google_adk": ("google.adk", "google-adk"),
    "langgraph": ("langgraph", "langgraph"),
    "openai_agents": ("agents", "openai-agents"),
    "langchain": ("langchain_core", "langchain"),
}
PARROTS = "I love African Grey parrots"
HAWAII = "My budget for the Hawaii trip is $10,000"
QUESTIONS = ("What bird did I like?", "What's my budget for the Hawaii trip?")
OTHERS = ("The tax office wants the papers by June.", "Bruno plays cello on Sundays.")


def run(serving: Serving, *command: str, **environment: str) -> list[str]:
    """Returns the lines on stdout; only a Redis circuit message is allowed on stderr."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=serving.home.parent,
        text=True,
        capture_output=True,
        env={**serving.environment, **environment},
        timeout=120,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if not line.startswith("redis: circuit ")]
    assert (done.returncode, said) == (0, [])
    return done.stdout.splitlines()


def said(serving: Serving, framework: str, *words: str, **environment: str) -> list[str]:
    """Returns the example's answer to each input."""
    return run(serving, str(EXAMPLES / f"{framework}_agent.py"), *words, **environment)[1::2]


def remembers(answers: list[str]) -> bool:
    return answers == [f"You told me: {PARROTS}", f"You told me: {HAWAII}"]


@pytest.fixture(scope="module")
def home(new_serving: Callable[..., Serving]) -> Serving:
    """A home with the local embedding model and no running service."""
    return new_serving(EMBEDDING_MODEL="local")


@pytest.fixture(scope="module")
def restarting(new_serving: Callable[..., Serving]) -> Iterator[Serving]:
    """A service with the local embedding model and a fixed port across restarts."""
    serving = new_serving(EMBEDDING_MODEL="local")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    serving.start("--port", str(port))
    serving.await_listening()
    yield serving
    assert serving.stop() == 0


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.shows("issue6-shows-restart-frameworks")
def test_what_one_session_was_told_the_next_answers_from_a_memory_of_its_own(home: Serving, framework: str) -> None:
    told = said(home, framework, *OTHERS, PARROTS, HAWAII, "What is my name?")
    assert told[:4] == ["Noted."] * 4
    assert remembers(said(home, framework, *QUESTIONS))
    assert home.left_over() == []


@pytest.mark.shows("issue6-shows-restart-frameworks")
def test_what_one_session_was_told_the_next_answers_after_the_service_was_restarted(restarting: Serving) -> None:
    serving = restarting
    own = {
        framework: {"AGENTCORE_URL": serving.url, "AGENTCORE_TOKEN": serving.token(framework)}
        for framework in FRAMEWORKS
    }
    for framework in FRAMEWORKS:
        assert said(serving, framework, *OTHERS, PARROTS, HAWAII, **own[framework]) == ["Noted."] * 4
    assert serving.stop() == 0
    while serving.said.get(timeout=START_SECONDS):
        pass
    serving.start("--port", serving.url.rpartition(":")[2])
    serving.await_listening()
    for framework in FRAMEWORKS:
        assert remembers(said(serving, framework, *QUESTIONS, **own[framework])), framework


def blocks(framework: str) -> list[str]:
    text = (GUIDES / f"{framework}.md").read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("framework", FRAMEWORKS)
@pytest.mark.shows("issue6-shows-lines")
def test_the_lines_of_the_guide_run_as_they_stand_and_are_as_many_as_it_says(
    home: Serving, framework: str, tmp_path: Path
) -> None:
    guide = (GUIDES / f"{framework}.md").read_text(encoding="utf-8")
    first, *_ = blocks(framework)
    marked = [line for line in first.splitlines() if line.endswith("# memory")]
    assert {line for line in first.splitlines() if "agentcore" in line} <= set(marked)
    assert f"**{len(marked)} lines**" in guide
    for number, block in enumerate(blocks(framework)):
        script = tmp_path / f"block_{number}.py"
        script.write_text(block, encoding="utf-8")
        assert PARROTS in "\n".join(run(home, str(script))), block


@pytest.mark.shows("issue6-shows-lines")
def test_the_lines_of_the_agents_page_are_as_many_as_it_says() -> None:
    """test_documentation_examples runs them with the rest of the page."""
    page = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")
    marked = [
        (said, [line for line in block.splitlines() if line.endswith("# memory")], block)
        for said, block in re.findall(
            r"\*\*(\d+) lines\*\* give.*?^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL
        )
    ]
    assert [(int(said), len(lines)) for said, lines, _ in marked] == [(6, 6), (8, 8)]
    for _, lines, block in marked:
        assert {line for line in block.splitlines() if "agentcore" in line} <= set(lines)


@pytest.mark.shows("issue6-2-beside-a-service")
def test_the_lines_of_the_guides_run_beside_the_service_of_the_quickstart(restarting: Serving, tmp_path: Path) -> None:
    for framework in FRAMEWORKS:
        script = tmp_path / f"{framework}_block.py"
        script.write_text(blocks(framework)[0], encoding="utf-8")
        assert PARROTS in "\n".join(run(restarting, str(script))), framework
    assert remembers(said(restarting, "langchain", PARROTS, HAWAII, *QUESTIONS)[2:])
    # The agent's token opens the same memory at the service.
    asked = {"AGENTCORE_URL": restarting.url, "AGENTCORE_TOKEN": restarting.token("my-agent")}
    assert PARROTS in restarting.cli("retrieve", "What bird did I like?", **asked).stdout


@pytest.mark.shows("issue6-5-extras")
def test_without_its_package_an_integration_says_what_to_install(home: Serving) -> None:
    script = (
        "import importlib, sys\n"
        f"for framework, (package, _) in {NEEDED!r}.items():\n"
        "    sys.modules[package] = None\n"
        "    try:\n        importlib.import_module(f'agentcore.integrations.{framework}')\n"
        "    except ModuleNotFoundError as missing:\n        print(missing)"
    )
    for line, (package, extra) in zip(run(home, "-c", script), NEEDED.values(), strict=True):
        assert line.startswith(f"This integration needs {extra}, which is not installed (there is no module")
        assert f" {package}" in line
        assert line.endswith(f"): pip install 'agentcore-memory[{extra}]'.")


@pytest.mark.shows("issue6-5-extras")
def test_the_service_needs_none_of_the_frameworks(home: Serving) -> None:
    script = "import sys, agentcore.cli, agentcore.server, agentcore.agents.tools; print(*sys.modules)"
    [loaded] = run(home, "-c", script)
    assert set(loaded.split()) & {package for package, _ in NEEDED.values()} == set()
