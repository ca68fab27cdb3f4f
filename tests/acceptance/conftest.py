"""Runs one service for the whole run, started as a user starts it; each test has its own agent."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from agentcore.client import MemoryClient
from tests.fixtures.forked_commands import Done, ForkedCommands
from tests.fixtures.serving import Serving, clean_environment


@pytest.fixture(scope="session")
def commands() -> Iterator[ForkedCommands]:
    """Starts the process that forks the commands of the run."""
    forking = ForkedCommands()
    yield forking
    forking.close()


@pytest.fixture(scope="session")
def new_serving(commands: ForkedCommands) -> Iterator[Callable[..., Serving]]:
    """Returns a factory of services that are not started yet; running ones are stopped after the test."""
    # Directly in the temporary directory: the parts' system user cannot read pytest's own directories.
    place = Path(tempfile.mkdtemp(prefix="agentcore-acceptance-"))
    place.chmod(0o755)
    made: list[Serving] = []

    def make(**environment: str) -> Serving:
        home = place / f"home-{len(made)}"
        made.append(Serving(home, clean_environment(home, **environment), commands))
        return made[-1]

    yield make
    for serving in made:
        if hasattr(serving, "process") and serving.process.poll() is None:
            serving.process.kill()
            serving.process.wait()
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def serving(new_serving: Callable[..., Serving]) -> Iterator[Serving]:
    """The running service, shared by the run."""
    started = new_serving()
    started.start()
    started.await_listening()
    yield started
    assert started.stop() == 0
    assert started.left_over() == []


@pytest.fixture
def agent_id() -> str:
    """Returns a unique agent id."""
    return f"agent-{uuid.uuid4()}"


@pytest.fixture
def run(serving: Serving, agent_id: str) -> Callable[..., Done]:
    """Returns a runner of commands for this test's agent."""
    return lambda *arguments, **more: serving.cli(*arguments, "--agent", agent_id, **more)


@pytest.fixture
async def memory(serving: Serving, agent_id: str) -> AsyncIterator[MemoryClient]:
    """Opens an HTTP client for this test's agent."""
    async with serving.client(agent_id) as client:
        yield client
