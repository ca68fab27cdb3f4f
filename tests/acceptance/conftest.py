"""One service, started as a user starts it, for the whole run; each test has an agent of its own."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from agentcore.client import MemoryClient
from tests.fixtures.forked_commands import ForkedCommands
from tests.fixtures.serving import Serving, clean_environment


@pytest.fixture(scope="session")
def commands() -> Iterator[ForkedCommands]:
    """What forks the commands of the run."""
    forking = ForkedCommands()
    yield forking
    forking.close()


@pytest.fixture(scope="session")
def new_serving(commands: ForkedCommands) -> Iterator[Callable[..., Serving]]:
    """Makes services that are not started yet; what a test leaves running is ended."""
    # In the temporary directory itself: pytest's own directories are closed to the system user of the parts.
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
    """The service of the run."""
    started = new_serving()
    started.start()
    started.await_listening()
    yield started
    assert started.stop() == 0
    assert started.left_over() == []


@pytest.fixture
def agent_id() -> str:
    """An agent nobody else is."""
    return f"agent-{uuid.uuid4()}"


@pytest.fixture
async def memory(serving: Serving, agent_id: str) -> AsyncIterator[MemoryClient]:
    """The memory of this test's agent, over HTTP."""
    async with serving.client(agent_id) as client:
        yield client
