"""jobs list, show, retry, cancel: the background jobs of all agents, for operators."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import typer
from rich.table import Table
from rich.text import Text

from agentcore.cli import options
from agentcore.cli.app import FAILED, SERVICE, examples, group, out, printable, say, show
from agentcore.config import load_settings
from agentcore.errors import AgentCoreError
from agentcore.maintenance.job_queue import JobQueue, JobState
from agentcore.runtime import running_database

ResultT = TypeVar("ResultT")
JobIds = Annotated[list[int], typer.Argument(metavar="JOB...", help="Numbers that list shows.")]

jobs = group("jobs", SERVICE, "agentcore jobs list --state failed", "agentcore jobs retry 17")


@jobs.command("list", epilog=examples(
    "agentcore jobs list", "agentcore jobs list --state failed", "agentcore jobs list --agent me --json"))
@options.with_json
def list_jobs(
    context: typer.Context,
    state: Annotated[JobState | None, typer.Option(help="Only those in this state.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="Only this agent's.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
) -> None:
    """List jobs, the newest first; those that are done are gone.

    A failed job was tried until its attempts were used up.
    """
    rows = _asked(lambda queue: queue.page(state=state, agent_id=agent, limit=limit))
    if options.printed_as_json(context, [_facts(row) for row in rows]):
        return
    if rows:
        show(_table(rows))
    else:
        say("no jobs")


@jobs.command("show", epilog=examples("agentcore jobs show 17"))
@options.with_json
def show_job(
    context: typer.Context,
    job: Annotated[int, typer.Argument(metavar="JOB", help="A number that list shows.")],
) -> None:
    """Show one job and what became of it, with the reason of each failure."""
    found = _asked(lambda queue: queue.get(job))
    story = [{"at": each["at"].isoformat(), "happened": each["happened"]} for each in found["story"]]
    if options.printed_as_json(context, _facts(found) | {"story": story}):
        return
    show(_table([found]))
    for each in story:
        out.print(Text(printable(f"{each['at']}  {each['happened']}")), soft_wrap=True)


@jobs.command(epilog=examples("agentcore jobs retry 17", "agentcore jobs retry 17 18 19"))
@options.with_json
def retry(context: typer.Context, job: JobIds) -> None:
    """Have failed jobs tried again, once for each time it is asked for."""

    async def told(queue: JobQueue, each: int) -> str:
        await queue.retry(each)
        return f"job {each} waits to be tried again"

    _each(context, job, told)


@jobs.command(epilog=examples("agentcore jobs cancel 17"))
@options.with_json
def cancel(context: typer.Context, job: JobIds) -> None:
    """Cancel jobs that wait; one that runs is broken off within seconds.

    What a job has done stays done: each leaves memories whole wherever it
    stops.
    """

    async def told(queue: JobQueue, each: int) -> str:
        state = await queue.cancel(each)
        return f"job {each} is being stopped" if state == "running" else f"job {each} is cancelled"

    _each(context, job, told)


def _asked(question: Callable[[JobQueue], Awaitable[ResultT]]) -> ResultT:
    async def answer() -> ResultT:
        async with running_database(load_settings()) as database:
            queue = JobQueue(database)
            await queue.open()
            return await question(queue)

    return asyncio.run(answer())


def _each(
    context: typer.Context, jobs: Sequence[int], act: Callable[[JobQueue, int], Awaitable[str]]
) -> None:
    """Applies an action to each job and reports the outcomes; ends with 1 if one failed."""

    async def all_of_them(queue: JobQueue) -> list[dict[str, Any]]:
        outcomes: list[dict[str, Any]] = []
        for each in jobs:
            try:
                outcomes.append({"job_id": each, "success": True, "outcome": await act(queue, each)})
            except AgentCoreError as error:
                outcomes.append({"job_id": each, "success": False, "outcome": error.message})
        return outcomes

    outcomes = _asked(all_of_them)
    if not options.printed_as_json(context, outcomes):
        for each in outcomes:
            typer.echo(each["outcome"], err=not each["success"])
    if not all(each["success"] for each in outcomes):
        raise typer.Exit(FAILED)


def _table(rows: Sequence[Mapping[str, Any]]) -> Table:
    table = Table("job", "name", "state", "for", "runs", "enqueued", "not before", "last failure",
                  box=None, pad_edge=False)
    for row in rows:
        ids = " ".join(f"{name}={value}" for name, value in sorted(row["ids"].items()))
        cells = (str(row["job_id"]), row["name"], row["state"], ids, str(row["attempts"]),
                 _told(row["enqueued_at"]), _told(row["not_before"]), row["failure"] or "")
        table.add_row(*(Text(printable(cell)) for cell in cells))
    return table


def _told(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    named = ("job_id", "name", "state", "ids", "attempts", "enqueued_at", "not_before", "failure")
    return {name: value.isoformat() if isinstance(value := row[name], datetime) else value for name in named}
