"""`agentcore serve --workers`: processes on one socket, their restart, their end, and their metrics."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from agentcore.worker_processes import WORKER_MODULE, merge_metrics
from tests.fixtures.serving import STOP_SECONDS, Serving

ANSWERS = re.compile("a worker process answers calls")
RESTARTED = re.compile("a worker process ended: restarting")


@pytest.fixture
def serving(new_serving: Callable[..., Serving]) -> Iterator[Serving]:
    started = new_serving(LOG_LEVEL="INFO", SHUTDOWN_GRACE_SECONDS="3")
    started.start("--workers", "2")
    started.await_listening()
    started.until(ANSWERS)
    yield started
    started.process.poll()


def worker_of(serving: Serving) -> psutil.Process:
    children = psutil.Process(serving.process.pid).children()
    return next(each for each in children if WORKER_MODULE in each.cmdline())


def mode_of(directory: Path) -> int | None:
    return directory.stat().st_mode & 0o777 if directory.exists() else None


async def stored_by(serving: Serving, agent_id: str, content: str) -> None:
    async with serving.client(agent_id) as memory:
        await memory.store(content)


def stores_in(serving: Serving) -> float:
    text = httpx.get(f"{serving.url}/metrics").text
    found = re.search(r'^agentcore_requests_total\{method="memory.store",outcome="ok"\} (\S+)$', text, re.MULTILINE)
    return 0.0 if found is None else float(found[1])


@pytest.mark.shows("issue16-2-workers")
async def test_each_process_answers_calls_and_returns_the_metrics_of_all(serving: Serving, agent_id: str) -> None:
    service, worker = psutil.Process(serving.process.pid), worker_of(serving)
    directory = Path(worker.cmdline()[-1])
    assert mode_of(directory) == 0o700
    for number, suspended in enumerate((service, worker)):
        suspended.suspend()
        try:
            await stored_by(serving, agent_id, f"Note {number}.")
        finally:
            suspended.resume()
    assert [stores_in(serving) for _ in range(4)] == [2.0] * 4
    async with serving.client(agent_id) as memory:
        assert (await memory.count()).count == 2
    assert serving.stop() == 0
    assert not worker.is_running()
    assert mode_of(directory) is None
    assert serving.left_over() == []


@pytest.mark.shows("issue16-2-workers")
async def test_a_process_that_was_killed_is_restarted(serving: Serving, agent_id: str) -> None:
    killed = worker_of(serving)
    killed.kill()
    serving.until(RESTARTED)
    serving.until(ANSWERS)
    assert worker_of(serving).pid != killed.pid
    await stored_by(serving, agent_id, "Note.")
    assert stores_in(serving) == 1.0
    assert serving.stop(by=signal.SIGINT) == 0


@pytest.mark.shows("issue16-2-workers")
async def test_no_process_outlives_a_service_that_was_killed(serving: Serving) -> None:
    worker = worker_of(serving)
    serving.process.kill()
    serving.process.wait(STOP_SECONDS)
    worker.wait(STOP_SECONDS)
    deadline = time.monotonic() + STOP_SECONDS
    while serving.left_over():
        assert time.monotonic() < deadline, serving.left_over()


def test_more_processes_than_the_embedded_postgresql_has_connections_for_are_refused(
    new_serving: Callable[..., Serving],
) -> None:
    done = new_serving().cli("serve", "--port", "0", "--workers", "9")
    assert done.returncode == 1
    assert "start at most 7, or lower DATABASE_POOL_SIZE" in done.stderr


def test_several_processes_with_a_vector_store_in_a_directory_are_refused(
    new_serving: Callable[..., Serving], tmp_path: Path
) -> None:
    serving = new_serving(VECTOR_STORE="qdrant", VECTOR_STORE_URL=str(tmp_path / "vectors"))
    done = serving.cli("serve", "--port", "0", "--workers", "2")
    assert done.returncode == 1
    assert "one process alone can open it" in done.stderr


def test_samples_are_summed_and_the_earliest_creation_is_kept() -> None:
    text = (
        "# HELP calls_total Calls.\n# TYPE calls_total counter\n"
        'calls_total{{method="store"}} {count}\n'
        "# HELP calls_created Calls.\n# TYPE calls_created gauge\ncalls_created {created}\n"
    )
    found = merge_metrics([text.format(count=2, created=50).encode(), text.format(count=3, created=40).encode(), b""])
    lines = [line for line in found.decode().splitlines() if not line.startswith("#")]
    assert lines == ['calls_total{method="store"} 5.0', "calls_created 40.0"]
