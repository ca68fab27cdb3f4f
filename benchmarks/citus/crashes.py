"""Kills the coordinator while transactions write to a worker and enqueue a job: no row without its job, no job without
its row.

    python -m benchmarks.citus.crashes TARGET_DIR [--crashes 10]
"""

from __future__ import annotations

import argparse
import asyncio
import json
from contextlib import suppress
from itertools import count
from pathlib import Path

import psycopg

from agentcore import migration
from benchmarks import ledger
from benchmarks.citus.cluster import Cluster, cluster

WRITERS = 8
SECONDS = 0.4


async def _write(url: str, agent_id: str, written: list[str], numbers: count[int]) -> None:
    settings = json.dumps({"agentcore.agent_id": agent_id})
    with suppress(psycopg.Error):
        async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
            while True:
                task_id = f"{agent_id}-{next(numbers)}"
                async with connection.transaction():
                    await connection.execute("SELECT set_for_transaction(%s::json)", [settings])
                    await connection.execute(
                        "INSERT INTO completed_tasks (agent_id, task_id, completed_at) VALUES (%s, %s, now())",
                        [agent_id, task_id],
                    )
                    await connection.execute(
                        "SELECT enqueue_job(%s, 'probe', jsonb_build_object('task', %s::text), %s, NULL)",
                        [agent_id, task_id, task_id],
                    )
                written.append(task_id)


async def _crash(running: Cluster, written: list[str], numbers: count[int]) -> None:
    url = running.coordinator.url("agentcore_service")
    writers = [asyncio.create_task(_write(url, f"agent-{each}", written, numbers)) for each in range(WRITERS)]
    await asyncio.sleep(SECONDS)
    await running.coordinator.kill()
    await asyncio.gather(*writers)
    await running.launch(running.coordinator)


async def run(installation: Path, crashes: int) -> dict[str, int]:
    """Returns how many transactions were acknowledged, and what is missing."""
    async with cluster(installation) as running:
        migration.upgrade(running.url, distribute=True)
        written: list[str] = []
        numbers = count()
        recovered = 0
        for _ in range(crashes):
            await _crash(running, written, numbers)
            with psycopg.connect(running.superuser_url, autocommit=True) as connection:
                recovered += connection.execute("SELECT recover_prepared_transactions()").fetchall()[0][0]
        with psycopg.connect(running.url) as connection:
            rows = {task for (task,) in connection.execute("SELECT task_id FROM completed_tasks")}
            jobs = {task for (task,) in connection.execute("SELECT args ->> 'task' FROM procrastinate_jobs")}
        return {
            "crashes": crashes,
            "acknowledged": len(written),
            "prepared transactions recovered": recovered,
            "rows without a job": len(rows - jobs),
            "jobs without a row": len(jobs - rows),
            "acknowledged but lost": len(set(written) - rows),
        }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("installation", type=Path)
    parser.add_argument("--crashes", type=int, default=10)
    arguments = parser.parse_args()
    figures = asyncio.run(run(arguments.installation, arguments.crashes))
    ledger.append("citus_crashes", {"writers": WRITERS}, figures)
    print(json.dumps(figures, indent=2))
    if any(figures[name] for name in ("rows without a job", "jobs without a row", "acknowledged but lost")):
        raise SystemExit(1)
