"""Runs the README's commands and examples as printed, and checks the guides against a running service."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from secrets import token_hex
from urllib.parse import quote, urlsplit
from uuid import uuid4

import httpx
import psycopg
import pytest

from agentcore.memory.api import METHODS
from tests.fixtures.embedded_parts import new_home
from tests.fixtures.forked_commands import Done
from tests.fixtures.services import Services
from tests.fixtures.serving import ROOT, Serving

README = (ROOT / "README.md").read_text()
OPERATIONS = (ROOT / "docs" / "operations.md").read_text()
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
IN_ORDER = re.compile(r"(<!-- not run[^>]*-->\n)?^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTED_URL = "http://127.0.0.1:8080"
COMMAND = f"{shlex.quote(sys.executable)} -m agentcore"
HOME_DATA_TABLE = re.compile(r"^\| `(\w+)/` \|", re.MULTILINE)


def blocks(text: str, language: str, containing: str) -> list[str]:
    """Returns the page's fenced blocks of a language that contain a word."""
    return [body for kind, body in FENCE.findall(text) if kind == language and containing in body]


def run_as_printed(script: str, serving: Serving, agent_id: str, directory: Path) -> Done:
    """Runs shell lines unchanged against the test's service as its agent."""
    lines = (
        script.replace(PRINTED_URL, serving.url)
        .replace(".venv/bin/agentcore", COMMAND)
        .replace("--agent my-agent", f"--agent {agent_id}")
        .replace("another-agent", f"another-{agent_id}")
    )
    return subprocess.run(
        ["bash", "-euo", "pipefail", "-c", lines],
        cwd=directory,
        text=True,
        capture_output=True,
        timeout=120,
        env={**serving.environment, "AGENTCORE_URL": serving.url, "COLUMNS": "200"},
        check=False,
    )


@pytest.fixture
def shell() -> None:
    if shutil.which("curl") is None or shutil.which("bash") is None:
        pytest.skip("the examples are for bash and curl")


@pytest.mark.shows("FR-6.1", "FR-6.2", "FR-6.3", "FR-6.4", "issue2-15-readme")
def test_each_call_by_curl_is_answered_with_a_result(
    shell: None, serving: Serving, agent_id: str, tmp_path: Path
) -> None:
    first, five = blocks(README, "sh", "api/v1/jsonrpc")
    done = run_as_printed(first + five, serving, agent_id, tmp_path)
    assert done.returncode == 0, done.stderr
    stored, interaction, found, context, updated, pruned = (
        json.loads(line)["result"] for line in done.stdout.splitlines()
    )
    assert stored["status"] == interaction["status"] == "stored"
    assert "tea" in found["memories"][0]["content"]
    assert found["memories"][0]["terms"]
    assert "On Friday." in context["context"]
    assert 0 < context["token_count"] <= 500
    assert (updated["success"], updated["version"]) == (True, 2)
    assert (pruned["dry_run"], pruned["pruned_count"], len(pruned["memory_ids"])) == (True, 0, 1)


def test_every_method_is_in_the_table_of_methods() -> None:
    table = README.split("## All methods", 1)[1].split("\n\n", 2)[1]
    assert {f"memory.{name}" for name in re.findall(r"`(\w+)`", table)} == {method.name for method in METHODS}


def test_the_answer_printed_has_the_fields_of_the_real_one(
    shell: None, serving: Serving, agent_id: str, tmp_path: Path
) -> None:
    [printed] = re.findall(r'`(\{"jsonrpc".*?\})`', README, re.DOTALL)
    shape = json.loads(" ".join(printed.split()).replace(", ...", ""))
    done = run_as_printed(blocks(README, "sh", "api/v1/jsonrpc")[0], serving, agent_id, tmp_path)
    answer = json.loads(done.stdout)
    assert list(shape) == list(answer)
    assert shape["result"].items() - {("memory_id", "...")} <= {
        (name, value) for name, value in answer["result"].items() if not isinstance(value, dict | list)
    }


@pytest.mark.shows("issue2-15-readme")
def test_the_python_example_runs(serving: Serving, agent_id: str, tmp_path: Path) -> None:
    [example] = blocks(README, "python", "MemoryClient")
    (tmp_path / "example.py").write_text(example)
    service = {"AGENTCORE_URL": serving.url, "AGENTCORE_TOKEN": serving.token(agent_id)}
    environment = {**serving.environment, **service}
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env=environment,
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found, _, context = done.stdout.partition("Quoted records of the past")
    assert "The spare key is in the blue tin" in found
    assert "In the shed." in context
    assert "## Current Task Context" in done.stdout


@pytest.mark.shows("B5")
def test_the_readme_says_how_to_run_its_python() -> None:
    first = README.index("```python")
    assert ".venv/bin/python example.py" in README[README.index("## From Python") : first]
    assert len(README.splitlines()) < 200


@pytest.mark.shows("issue6-2-same-code")
def test_the_example_of_an_agent_runs(serving: Serving, agent_id: str, tmp_path: Path) -> None:
    [example] = blocks(README, "python", "MemoryEnabledAgent")
    (tmp_path / "example.py").write_text(example)
    service = {"AGENTCORE_URL": serving.url, "AGENTCORE_TOKEN": serving.token(agent_id)}
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env={**serving.environment, **service},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "African Grey parrots.\n"


def test_the_example_of_an_agent_without_a_service_warns_that_nothing_was_stored(tmp_path: Path) -> None:
    [example] = blocks(README, "python", "MemoryEnabledAgent")
    (tmp_path / "example.py").write_text(example)
    nowhere = {"AGENTCORE_URL": "http://127.0.0.1:9", "AGENTCORE_TOKEN": "t.o.k"}
    done = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        env={**os.environ, **nowhere},
        text=True,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "Noted.\n")
    [_, stored, *_] = done.stderr.splitlines()
    assert "nothing was confirmed as stored: No service answers at http://127.0.0.1:9" in stored
    assert "start `agentcore serve` there" in stored
    assert "AGENTCORE_URL" in stored


def test_the_readme_exports_the_variables_before_the_examples_that_read_them() -> None:
    body = README.partition(f"export AGENTCORE_URL={PRINTED_URL}\n")
    assert "AGENTCORE_URL/" not in body[0]
    assert PRINTED_URL not in body[2]
    assert README.index("export AGENTCORE_HOME=") < README.index("export AGENTCORE_TOKEN=")


def test_the_commands_run(shell: None, serving: Serving, agent_id: str, tmp_path: Path) -> None:
    [commands] = blocks(README, "sh", "agentcore store")
    [token] = re.findall(r"^export AGENTCORE_TOKEN=.*\n", README, re.MULTILINE)
    done = run_as_printed(token + commands, serving, agent_id, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("The key rotates on Mondays") == 2
    [memory] = map(json.loads, (tmp_path / "memories.jsonl").read_text().splitlines())
    assert memory["tags"] == ["ops"]
    assert "stored 1, " in done.stdout
    assert '"verified": true' in done.stdout


def test_a_new_user_follows_the_page_in_order(
    shell: None, new_serving: Callable[..., Serving], agent_id: str, tmp_path: Path
) -> None:
    serving = new_serving()  # a backup covers the whole home, and other tests damage archived copies
    serving.start()
    serving.await_listening()
    script = ""
    for number, (mark, kind, body) in enumerate(IN_ORDER.findall(README)):
        if not mark:
            file = f"example{number}.py"
            script += body if kind == "sh" else f"cat > {file} <<'END'\n{body}END\n.venv/bin/python {file}\n"
    script = script.replace(".venv/bin/python", shlex.quote(sys.executable))
    with new_home() as home:
        shutil.rmtree(home.path, ignore_errors=True)
        script = re.sub(r"(?<=AGENTCORE_HOME=)\S+-copy", str(home.path), script)
        done = run_as_printed(script, serving, agent_id, tmp_path)
        assert done.returncode == 0, done.stderr
        assert "restored: " in done.stderr
    tool = next(json.loads(line) for line in done.stdout.splitlines() if '"isError"' in line)
    assert "blue tin" in tool["result"]["content"][0]["text"]
    assert "African Grey parrots." in done.stdout
    assert serving.stop() == 0


def test_every_target_of_make_that_is_named_exists() -> None:
    guides = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {
        target for guide in guides for target in re.findall(r"(?:`|^)make ([a-z-]+)\b", guide.read_text(), re.MULTILINE)
    }
    assert {"serve", "test", "check", "bench"} <= named
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named - there == set()


# --- docs/operations.md ------------------------------------------------------------------------------------


async def test_every_metric_of_the_operators_guide_is_exposed_and_every_one_exposed_is_in_the_guide(
    serving: Serving, agent_id: str
) -> None:
    async with serving.client(agent_id) as memory:
        await memory.retrieve_memories("tea")
    async with httpx.AsyncClient(trust_env=False) as http:
        exposed = (await http.get(f"{serving.url}/metrics")).text
    families = set(re.findall(r"^# TYPE (agentcore_\w+) ", exposed, re.MULTILINE))
    told = set(re.findall(r"^\| `(agentcore_\w+)` \|", OPERATIONS, re.MULTILINE))
    assert told == {name for name in families if not name.endswith("_created")}


@pytest.mark.shows("issue2-14-health")
async def test_every_part_of_readiness_is_in_the_operators_guide(serving: Serving) -> None:
    async with httpx.AsyncClient(trust_env=False) as http:
        parts = (await http.get(f"{serving.url}/readyz")).json()["parts"]
    assert {name for name in parts if f"`{name}`" not in OPERATIONS} == set()


def test_what_lies_in_the_home_is_in_the_operators_guide(serving: Serving) -> None:
    told = set(HOME_DATA_TABLE.findall(OPERATIONS))
    assert told
    assert {path.name for path in serving.home.iterdir()} - told == set()


@pytest.fixture
def database(services: Services) -> Iterator[dict[str, str]]:
    """Creates the guide's database objects under unique names, and drops them after the test."""
    names = {
        "agentcore_owner": f"owner_{uuid4().hex}",
        "agentcore_login": f"login_{uuid4().hex}",
        "memory": f"memory_{uuid4().hex}",
    }
    yield names
    with psycopg.connect(services.superuser_url(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {names['memory']}")
        for role in ("agentcore_owner", "agentcore_login"):
            connection.execute(f"DROP ROLE IF EXISTS {names[role]}")


@pytest.mark.shows("issue2-2-external")
def test_a_database_set_up_as_the_guide_says_is_migrated_and_served(
    services: Services, database: dict[str, str], serving: Serving
) -> None:
    [before, after] = blocks(OPERATIONS, "sql", "agentcore_owner")[0].split("\\connect memory\n")
    owner, name, password = database["agentcore_owner"], database["memory"], "a-password"
    login = database["agentcore_login"]
    before = before.replace("agentcore_owner", owner).replace("agentcore_login", login)
    before = before.replace("DATABASE memory", f"DATABASE {name}").replace("'...'", f"'{password}'")
    urls = [services.superuser_url(), services.superuser_url().replace("/postgres?", f"/{name}?")]
    for text, url in zip([before, after], urls, strict=True):
        with psycopg.connect(url, autocommit=True) as connection:
            for statement in filter(None, (piece.strip() for piece in text.split(";"))):
                try:
                    connection.execute(statement.encode())
                except psycopg.errors.DuplicateObject:
                    assert re.match("CREATE ROLE agentcore_(service|bound)", statement)
    query = urlsplit(services.database_url).query
    external = {
        "DATABASE_URL": f"postgresql://{owner}:{quote(password)}@/{name}?{query}",
        "DATABASE_SERVICE_URL": f"postgresql://{login}:{quote(password)}@/{name}?{query}",
        "REDIS_URL": services.redis_url,
        "JWT_SECRET_KEY": token_hex(32),
        "AGENTCORE_HOME": os.devnull,
        "MEMORY_ARCHIVAL_ENABLED": "false",
    }
    migrated = serving.cli("migrate", **external)
    assert migrated.returncode == 0, migrated.stderr
    outside = Serving(serving.home, {**serving.environment, **external})
    outside.start()
    outside.await_listening()
    try:
        stored = outside.cli("store", "Ada keeps bees", "--agent", "beekeeper", **external)
        found = outside.cli("retrieve", "who keeps bees?", "--agent", "beekeeper", **external)
        assert (stored.returncode, found.returncode) == (0, 0), stored.stderr + found.stderr
        assert "Ada keeps bees" in found.stdout
    finally:
        assert outside.stop() == 0
