"""Installs the wheel in an empty virtual environment with each documented set of extras and runs the
guides."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.acceptance.test_readme import PRINTED_URL, README, blocks
from tests.fixtures.forked_commands import SETTINGS, Done
from tests.fixtures.serving import ROOT, Serving

UV = Path(sys.prefix) / "bin" / "uv"
INSTALL_SECONDS = 600
BASE_MEGABYTES = 40
# Modules that an import of the client may load; import time would depend on the machine.
MOST_MODULES = 600
# Loaded by text analysis, which an import of the client must not load.
UNUSED = {"snowballstemmer"}
HEAVY = {"alembic", "numpy", "onnxruntime", "psycopg", "redis", "sqlalchemy", "starlette", "tiktoken"}
FRAMEWORKS = ("google_adk", "langchain", "langgraph", "mcp", "openai_agents")
INSTALL_MODEL = "agentcore model install"


@dataclass(frozen=True)
class Environment:
    """A virtual environment outside the checkout, and an empty working directory."""

    path: Path
    variables: dict[str, str]

    @property
    def bin(self) -> Path:
        return self.path / "venv" / "bin"

    def run(self, *command: str | Path, **variables: str) -> Done:
        return subprocess.run(
            [str(part) for part in command],
            cwd=self.path,
            env={**self.variables, **variables},
            text=True,
            capture_output=True,
            timeout=INSTALL_SECONDS,
            check=False,
        )

    def python(self, script: str, **variables: str) -> str:
        done = self.run(self.bin / "python", "-c", script, **variables)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def install(self, *requirements: str) -> None:
        # jsonrpcserver is published as source only; everything else as a wheel.
        done = self.run(
            UV,
            "pip",
            "install",
            "--quiet",
            "--python",
            self.bin / "python",
            "--only-binary",
            ":all:",
            "--no-binary",
            "jsonrpcserver",
            "-c",
            self.path / "constraints.txt",
            *requirements,
        )
        assert done.returncode == 0, done.stderr


def constraints() -> str:
    """Returns the locked versions without hashes; the wheel's own metadata selects what is installed."""
    lines = "\n".join((ROOT / "requirements" / f"{name}.txt").read_text() for name in ("lock", "integrations", "model"))
    pins = re.findall(r"^([a-zA-Z0-9._-]+==[^\\\n]+?) *\\?$", lines, re.MULTILINE)
    return "\n".join(dict.fromkeys(pins))


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    # Directly in the temporary directory: the parts' system user cannot read pytest's own directories.
    place = Path(tempfile.mkdtemp(prefix="agentcore-wheel-"))
    place.chmod(0o755)
    yield place
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def wheel(place: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(place)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=INSTALL_SECONDS)
    return next(place.glob("*.whl"))


@pytest.fixture(scope="module")
def environment(place: Path, wheel: Path) -> Callable[[str], Environment]:
    """Returns a factory of environments with the wheel and the given extras."""
    unwanted = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONDONTWRITEBYTECODE", *SETTINGS}
    variables = {name: value for name, value in os.environ.items() if name not in unwanted}
    variables |= {"UV_SYSTEM_CERTS": "1", "UV_PYTHON_DOWNLOADS": "never"}

    def make(extras: str) -> Environment:
        path = place / (re.sub(r"\W+", "-", extras) or "base")
        path.mkdir(mode=0o755)
        home = {"AGENTCORE_HOME": str(path / "home")} if os.geteuid() == 0 else {"HOME": str(path)}
        made = Environment(path, variables | home)
        (path / "constraints.txt").write_text(constraints())
        done = made.run(UV, "venv", "--quiet", "--python", sys.executable, path / "venv")
        assert done.returncode == 0, done.stderr
        made.install(f"{wheel}{extras}")
        return made

    return make


@pytest.fixture(scope="module")
def base(environment: Callable[[str], Environment]) -> Environment:
    return environment("")


@pytest.fixture(scope="module")
def server(environment: Callable[[str], Environment]) -> Environment:
    return environment("[server]")


@dataclass
class Installed(Serving):
    """`agentcore serve` from an installed wheel, in an empty directory."""

    path: Path = Path()

    def start(self, *options: str) -> None:
        self.process = subprocess.Popen(
            [self.path / "venv" / "bin" / "agentcore", "serve", "--port", "0", *options],
            cwd=self.path,
            env=self.environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self.listen()


# --- the client --------------------------------------------------------------------------------------------


@pytest.mark.shows("B4")
def test_the_base_install_is_the_client_and_small(base: Environment) -> None:
    [packages] = base.path.glob("venv/lib/python*/site-packages")
    size = sum(file.stat().st_size for file in packages.rglob("*") if file.is_file())
    assert size < BASE_MEGABYTES * 1e6
    assert not HEAVY & {path.name for path in packages.iterdir()}


@pytest.mark.shows("B4")
def test_the_client_imports_few_modules_and_none_of_the_services_packages(base: Environment) -> None:
    script = (
        "import json, sys; import agentcore; light = len(sys.modules)\n"
        "from agentcore import MemoryClient, SyncMemoryClient, MemoryEnabledAgent, open_memory, StoreParams\n"
        "print(json.dumps([light, StoreParams.__pydantic_complete__, sorted(sys.modules)]))"
    )
    light, schema_is_built, modules = json.loads(base.python(script))
    assert light < 120
    assert len(modules) < MOST_MODULES
    assert not (HEAVY | UNUSED) & {name.partition(".")[0] for name in modules}
    assert not schema_is_built


@pytest.mark.shows("issue13-missing-extra")
def test_the_base_install_names_the_extra_that_commands_and_open_memory_need(base: Environment) -> None:
    script = (
        "import asyncio\nfrom agentcore import ConfigurationError, open_memory\n"
        "async def main():\n    async with open_memory(agent_id='me'):\n        pass\n"
        "try:\n    asyncio.run(main())\nexcept ConfigurationError as error:\n    print(error)"
    )
    assert "pip install 'agentcore-memory[server]'" in base.python(script)
    for command in ((), ("serve",), ("retrieve", "tea"), ("--help",)):
        done = base.run(base.bin / "agentcore", *command)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("agentcore: ")
        assert "pip install 'agentcore-memory[server]'" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.shows("B4")
def test_the_client_of_the_readme_runs_in_the_base_install(base: Environment, server_running: Installed) -> None:
    for language, word in (("python", "MemoryClient"), ("python", "MemoryEnabledAgent")):
        [example] = blocks(README, language, word)
        token = {"AGENTCORE_TOKEN": server_running.token(f"base-{word}"), "AGENTCORE_URL": server_running.url}
        said = base.python(example.replace(PRINTED_URL, server_running.url), **token)
        assert ("in the blue tin" if word == "MemoryClient" else "African Grey") in said


@pytest.mark.shows("issue13-extras")
def test_each_integration_imports_over_the_base_install(environment: Callable[[str], Environment]) -> None:
    extras = environment("[a2a,google-adk,langchain,langgraph,mcp,openai-agents]")
    script = "".join(f"import agentcore.integrations.{name}\n" for name in FRAMEWORKS)
    modules = json.loads(
        extras.python(
            f"{script}import a2a, agentcore.integrations.own_loop, agentcore.client\n"
            "import json, sys; print(json.dumps(list(sys.modules)))"
        )
    )
    assert HEAVY & {name.partition(".")[0] for name in modules} <= {"starlette"}  # the frameworks' own


# --- the service -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server_running(server: Environment) -> Iterator[Installed]:
    """Starts the wheel's `[server]` service in an empty directory without settings."""
    without_model = server.run(server.bin / "agentcore", "serve", "--port", "0")
    assert without_model.returncode == 1
    assert INSTALL_MODEL in without_model.stderr, without_model.stderr
    assert "needs the package" not in without_model.stderr
    uv_on_the_path = {"PATH": f"{UV.parent}:{os.environ['PATH']}"}
    installed = server.run(server.bin / "agentcore", *INSTALL_MODEL.split()[1:], **uv_on_the_path)
    assert installed.returncode == 0, installed.stderr
    variables = dict(server.variables)
    service = Installed(server.path / "home", variables, path=server.path)
    service.start()
    service.await_listening()
    yield service
    assert service.stop() == 0
    assert service.left_over() == []


@pytest.mark.shows("B1")
def test_the_service_of_the_wheel_stores_and_finds_by_meaning(server: Environment, server_running: Installed) -> None:
    token = {"AGENTCORE_TOKEN": server_running.token("me"), "AGENTCORE_URL": server_running.url}
    stored = server.run(server.bin / "agentcore", "store", "Ada prefers tea, never coffee", **token)
    assert stored.returncode == 0, stored.stderr
    found = server.run(server.bin / "agentcore", "retrieve", "what does Ada drink?", **token)
    assert "Ada prefers tea" in found.stdout, found.stderr
    doctor = server.run(server.bin / "agentcore", "doctor", **token)
    assert doctor.returncode == 0, doctor.stdout


@pytest.mark.shows("B2")
def test_mcp_answers_without_another_extra(server_running: Installed) -> None:
    headers = {"Authorization": f"Bearer {server_running.token('me')}", "Accept": "application/json, text/event-stream"}
    listed = httpx.post(
        f"{server_running.url}/mcp",
        headers=headers,
        trust_env=False,
        timeout=60,
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
    )
    assert listed.status_code == 200, listed.text
    assert "recall_memory" in listed.text


@pytest.mark.shows("issue13-extras")
def test_a_memory_in_the_process_needs_no_service(server: Environment, server_running: Installed) -> None:
    script = (
        "import asyncio\nfrom agentcore import open_memory\n"
        "async def main():\n    async with open_memory(agent_id='own') as memory:\n"
        "        await memory.store('The spare key is in the blue tin', user_id='anna')\n"
        "        found = await memory.retrieve('where is the key?', k=1)\n"
        "        print(found.memories[0].content)\nasyncio.run(main())"
    )
    alone = {"AGENTCORE_HOME": str(server.path / "alone")}
    assert server.python(script, **alone) == "The spare key is in the blue tin\n"


@pytest.mark.shows("issue13-extras")
def test_with_all_extras_every_provider_can_be_chosen(
    server: Environment, server_running: Installed, wheel: Path
) -> None:
    server.install(f"{wheel}[all]")  # after the service started without the other extras
    script = (
        "from agentcore.assembly import check_choices\nfrom agentcore.config import load_settings\n"
        "from agentcore.memory.archival import ARCHIVES\nfrom agentcore.registry import resolve\n"
        "resolve('s3', ARCHIVES, kind='archive')\n"
        "for model in ('local', 'openai', 'cohere', 'hashing'):\n"
        "    check_choices(load_settings(embedding_model=model, openai_api_key='k', cohere_api_key='k',\n"
        "                                llm_model='m', query_rewriter='openai'))\n"
        "    print(model)"
    )
    assert server.python(script).split() == ["local", "openai", "cohere", "hashing"]
