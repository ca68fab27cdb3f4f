"""Background jobs for operators: CLI commands and metrics beside a running service."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import httpx
import psycopg
import pytest

from agentcore.embedded import Home, attach
from tests.fixtures.serving import Serving


def connected(serving: Serving) -> psycopg.Connection[tuple[Any, ...]]:
    url = attach(Home(serving.home)).database_url
    assert url is not None
    return psycopg.connect(url)


def ask_for_a_job(serving: Serving, ids: str, *, attempts: int = 0, not_before: str = "now()") -> int:
    with connected(serving) as connection:
        connection.execute("SELECT set_config('agentcore.agent_id', 'ada', true)")
        connection.execute(
            f"SELECT enqueue_job('ada', 'prune_layer', %s::jsonb, %s, {not_before})".encode(), (ids, ids)
        )
        row = connection.execute(
            "UPDATE procrastinate_jobs SET attempts = %s WHERE id = (SELECT max(id) FROM procrastinate_jobs) "
            "RETURNING id",
            (attempts,),
        ).fetchone()
    assert row is not None
    return int(row[0])


def jobs(serving: Serving, *options: str) -> list[Mapping[str, Any]]:
    done = serving.cli("jobs", "list", "--json", *options)
    assert done.returncode == 0, done.stderr
    listed: list[Mapping[str, Any]] = json.loads(done.stdout)
    return listed


def until(happened: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if happened():
            return True
    return False


@pytest.fixture
def failed(serving: Serving) -> Iterator[int]:
    job = ask_for_a_job(serving, '{"no_layer": 1}', attempts=19)
    assert until(lambda: job in {each["job_id"] for each in jobs(serving, "--state", "failed")})
    yield job
    with connected(serving) as connection:
        connection.execute("DELETE FROM procrastinate_jobs")


@pytest.mark.shows("issue4-9-operators")
def test_a_job_that_failed_is_listed_explained_and_tried_again(serving: Serving, failed: int) -> None:
    shown = serving.cli("jobs", "show", str(failed)).stdout
    row = rf"^{failed}\tprune_layer\tfailed\tagent_id=ada no_layer=1\t20\t.*TypeError"
    assert re.search(row, shown, re.MULTILINE)
    assert [line.split()[-1] for line in shown.splitlines()[-4:]] == ["deferred", "started", "TypeError", "failed"]
    checked = serving.cli("doctor")
    assert checked.returncode == 1
    assert re.search(r"WRONG\s+jobs\s+\d+ failed", checked.stdout)

    done = serving.cli("jobs", "retry", str(failed), "999999")
    assert done.returncode == 1
    assert done.stdout == f"job {failed} waits to be tried again\n"
    assert "no job 999999" in done.stderr
    assert until(lambda: len(story(serving, failed)) > 6)
    assert story(serving, failed)[4:] == ["retried", "started", "TypeError", "failed"]


def story(serving: Serving, job: int) -> list[str]:
    shown = json.loads(serving.cli("jobs", "show", str(job), "--json").stdout)
    return [each["happened"] for each in shown["story"]]


@pytest.mark.shows("issue4-9-operators")
def test_a_job_that_waits_is_cancelled(serving: Serving) -> None:
    job = ask_for_a_job(serving, '{"layer": "semantic"}', not_before="now() + interval '1 hour'")
    assert [each["job_id"] for each in jobs(serving, "--state", "scheduled", "--agent", "ada")] == [job]
    assert jobs(serving, "--state", "scheduled", "--agent", "nobody") == []
    assert serving.cli("jobs", "cancel", str(job)).stdout == f"job {job} is cancelled\n"
    done = serving.cli("jobs", "cancel", str(job))
    assert done.returncode == 1
    assert f"Job {job} is cancelled: only one that waits or runs is cancelled." in done.stderr


def test_the_metrics_count_jobs_by_state_and_their_runs_by_outcome(serving: Serving, failed: int) -> None:
    def told() -> bool:
        metrics = httpx.get(f"{serving.url}/metrics").text
        return bool(re.search(r'^agentcore_jobs\{state="failed"\} [1-9]', metrics, re.MULTILINE)) and bool(
            re.search(r'^agentcore_jobs_ended_total\{job="prune_layer",outcome="failed"\} [1-9]', metrics, re.MULTILINE)
        )

    assert until(told)
