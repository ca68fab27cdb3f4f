"""index, jobs, reembed: the background work of a running service, for operators."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import psycopg
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from agentcore.assembly import make_embedder, make_external_vectors, make_index_policy
from agentcore.cli import options
from agentcore.cli.app import FAILED, MISUSED, app, counted, err, fail, group, out, printable, say, show
from agentcore.config import Settings, load_settings
from agentcore.database import Connection
from agentcore.errors import AgentCoreError, ConfigurationError
from agentcore.maintenance.index_keeper import (
    MIN_ROWS,
    IndexKeeper,
    IndexPlan,
    PartitionState,
    Tell,
    rebuild_plan,
    tune_plan,
)
from agentcore.maintenance.job_queue import JobQueue
from agentcore.maintenance.reembedding import SETTLE_SECONDS, Reembedding
from agentcore.maintenance.reembedding import Tell as TellStep
from agentcore.memory.embeddings import BatchingEmbedder
from agentcore.memory.params.jobs import JobState
from agentcore.memory.parts import CALLER_VECTORS
from agentcore.memory.rows.vector_index import VectorIndex
from agentcore.memory.rows.vector_rows import KnownModel, model_in_force
from agentcore.model_watch import settings_in_force
from agentcore.runtime import running_database

POLL_SECONDS = 1.0
Planner = Callable[[PartitionState, str], IndexPlan | None]

Partition = Annotated[
    str | None, typer.Argument(metavar="[PARTITION]", help="A table that status names, as memories_p07. Default: all.")
]

INDEX_HEADER = (
    Column("partition", min_width=12),
    *("model", "kind", "rows at build", "rows now", "lists / probes", "recall", "age", "MB"),
)
indexes = group("index", "agentcore index status", "agentcore index rebuild memories_p07")


@indexes.command("status", "agentcore index status", "agentcore index status --json")
@options.with_json
def status(context: typer.Context) -> None:
    """List the partitions that contain memories or passages, each with its vector indexes.

    Rows are estimates. Recall is the measured share of the exact 50 nearest.
    """
    _report(context, asyncio.run(_states()))


@indexes.command("tune", "agentcore index tune", "agentcore index tune memories_p07")
@options.with_json
def tune(context: typer.Context, partition: Partition = None) -> None:
    """Measure recall now, and choose the search width from it.

    The service does so by itself after each build and as a partition grows.
    """
    _report(context, asyncio.run(_work(partition, tune_plan, "has an index to measure")))


@indexes.command("rebuild", "agentcore index rebuild", "VECTOR_INDEX=hnsw agentcore index rebuild memories_p07")
@options.with_json
def rebuild(context: typer.Context, partition: Partition = None) -> None:
    """Rebuild the indexes, of the kind of VECTOR_INDEX, and measure them. Old ones serve until then.

    With a vector store beside PostgreSQL and without PARTITION: fill it from PostgreSQL, and delete what PostgreSQL
    does not have. After an interruption the same command resumes.
    """
    if partition is None and (filled := asyncio.run(_fill_vector_store())) is not None:
        if not options.printed_as_json(context, filled):
            say(f"{counted(filled['passed_on'], 'vector', 'vectors')} passed on, {filled['removed']} unknown removed")
        return
    needed = f"has {MIN_ROWS} rows, from which on there is an index"
    _report(context, asyncio.run(_work(partition, _rebuild_if_large, needed)))


async def _fill_vector_store() -> dict[str, int] | None:
    """Returns None without a vector store beside PostgreSQL."""
    settings = load_settings()
    async with running_database(settings) as database:
        external = make_external_vectors(settings, database)
        if external is None:
            return None
        if settings.vector_store_url is None:
            raise ConfigurationError(["A store without VECTOR_STORE_URL is filled at each start: restart the service."])
        progress = _progress()
        bar = progress.add_task("filling", total=None)

        def report(step: str, done: int, total: int) -> None:
            progress.update(bar, description=step, completed=done, total=total or None)

        try:
            with progress:
                return await external.rebuild(report)
        finally:
            await external.close()


def _rebuild_if_large(state: PartitionState, model: str) -> IndexPlan | None:
    return rebuild_plan(state, model) if state.rows >= MIN_ROWS or tune_plan(state, model) else None


@asynccontextmanager
async def _keeper(tell: Tell) -> AsyncIterator[tuple[IndexKeeper, str]]:
    settings = load_settings()
    async with running_database(settings) as database:
        settings = settings_in_force(settings, await model_in_force(database))
        embedder = make_embedder(settings)
        model = CALLER_VECTORS if embedder is None else embedder.model
        yield (
            IndexKeeper(
                database,
                model,
                settings.embedding_dimensions,
                make_index_policy(settings),
                exact_search_limit=settings.exact_search_limit,
                tell=tell,
            ),
            model,
        )


async def _states() -> list[PartitionState]:
    async with _keeper(lambda partition, step: None) as (keeper, _):
        return await keeper.states()


async def _work(partition: str | None, planner: Planner, needed: str) -> list[PartitionState]:
    progress = _progress()
    bar = progress.add_task("waiting for the index keeper", total=None)

    def tell(name: str, step: str) -> None:
        progress.update(bar, description=f"{name}: {step}")

    async with _keeper(tell) as (keeper, model):
        chosen = _chosen(await keeper.states(), partition, lambda state: planner(state, model), needed)
        if chosen:
            with progress:
                async with _alone(keeper) as connection:
                    progress.update(bar, total=len(chosen), completed=0)
                    for state, todo in chosen:
                        await _carried_out(keeper, connection, state, todo)
                        progress.advance(bar)
        return await keeper.states()


async def _carried_out(keeper: IndexKeeper, connection: Connection, state: PartitionState, todo: IndexPlan) -> None:
    try:
        await keeper.carry_out(connection, state, todo)
    except psycopg.Error as error:
        fail(f"{state.partition}: {str(error).splitlines()[0]}")


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=err)


@asynccontextmanager
async def _alone(keeper: IndexKeeper) -> AsyncIterator[Connection]:
    while True:
        async with keeper.alone() as connection:
            if connection is not None:
                yield connection
                return
        await asyncio.sleep(POLL_SECONDS)


def _chosen(
    states: Sequence[PartitionState],
    partition: str | None,
    planned: Callable[[PartitionState], IndexPlan | None],
    needed: str,
) -> list[tuple[PartitionState, IndexPlan]]:
    named = [state for state in states if partition in (None, state.partition)]
    if not named:
        fail(f"no partition is named {partition}: `agentcore index status` lists them", MISUSED)
    plans = [(state, planned(state)) for state in named]
    chosen = [(state, todo) for state, todo in plans if todo is not None]
    if not chosen:
        say(f"nothing to do: {'no partition' if partition is None else f'{partition} is none that'} {needed}")
    return chosen


def _report(context: typer.Context, states: Sequence[PartitionState]) -> None:
    filled = [state for state in states if state.rows or state.indexes or state.half_made]
    if options.printed_as_json(context, [_index_facts(state) for state in filled]):
        return
    if filled:
        show(INDEX_HEADER, _index_rows(filled))
    else:
        say("no memories yet")


def _index_rows(states: Sequence[PartitionState]) -> Iterator[Sequence[str]]:
    for state in states:
        for found in state.indexes or (None,):
            yield state.partition, *_cells(state, found)
        for name in state.half_made:
            yield state.partition, f"{name}: in the making, or left half made"


def _cells(state: PartitionState, found: VectorIndex | None) -> tuple[str, ...]:
    if found is None:
        return "-", "none: exact", "-", str(state.rows), *("-",) * 4
    words = "{} / {}" if found.kind == "ivfflat" else "m {} / ef {}"
    recall = "-" if found.recall is None else f"{found.recall:.3f}"
    return (
        found.model,
        found.kind,
        str(found.built_rows),
        str(state.rows),
        words.format(found.shape, found.reach),
        recall,
        _span(max(0.0, time.time() - found.built_at)),
        f"{found.bytes / 2**20:.1f}",
    )


def _index_facts(state: PartitionState) -> dict[str, Any]:
    return {
        "partition": state.partition,
        "rows": state.rows,
        "half_made": list(state.half_made),
        "indexes": [
            {
                "name": found.name,
                "model": found.model,
                "kind": found.kind,
                "rows_at_build": found.built_rows,
                "lists" if found.kind == "ivfflat" else "m": found.shape,
                "probes" if found.kind == "ivfflat" else "ef_search": found.reach,
                "recall_at_50": found.recall,
                "measured_at": found.measured_at,
                "measured_rows": found.measured_rows,
                "built_at": found.built_at,
                "bytes": found.bytes,
            }
            for found in state.indexes
        ],
    }


ResultT = TypeVar("ResultT")
JOB_HEADER = ("job", "name", "state", "for", "runs", "enqueued", "not before", "last failure")
JobIds = Annotated[list[int], typer.Argument(metavar="JOB...", help="Numbers that list shows.")]

jobs = group("jobs", "agentcore jobs list --state failed", "agentcore jobs retry 17")


@jobs.command(
    "list", "agentcore jobs list", "agentcore jobs list --state failed", "agentcore jobs list --agent me --json"
)
@options.with_json
def list_jobs(
    context: typer.Context,
    state: Annotated[JobState | None, typer.Option(help="Only those in this state.")] = None,
    agent: Annotated[str | None, typer.Option("--agent", metavar="ID", help="Only this agent's.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
) -> None:
    """List jobs, the newest first; completed ones are removed."""
    rows = _asked(lambda queue: queue.page(state=state, agent_id=agent, limit=limit))
    if options.printed_as_json(context, [_job_facts(row) for row in rows]):
        return
    if rows:
        show(JOB_HEADER, map(_job_row, rows))
    else:
        say("no jobs")


@jobs.command("show", "agentcore jobs show 17")
@options.with_json
def show_job(
    context: typer.Context, job: Annotated[int, typer.Argument(metavar="JOB", help="A number that list shows.")]
) -> None:
    """Show one job and its events, with the reason of each failure."""
    found = _asked(lambda queue: queue.get(job))
    story = [{"at": each["at"].isoformat(), "happened": each["happened"]} for each in found["story"]]
    if options.printed_as_json(context, _job_facts(found) | {"story": story}):
        return
    show(JOB_HEADER, [_job_row(found)])
    for each in story:
        out.print(Text(printable(f"{each['at']}  {each['happened']}")), soft_wrap=True)


@jobs.command("retry", "agentcore jobs retry 17", "agentcore jobs retry 17 18 19")
@options.with_json
def retry(context: typer.Context, job: JobIds) -> None:
    """Retry failed jobs, once each."""

    async def told(queue: JobQueue, each: int) -> str:
        await queue.retry(each)
        return f"job {each} waits to be tried again"

    _each(context, job, told)


@jobs.command("cancel", "agentcore jobs cancel 17")
@options.with_json
def cancel(context: typer.Context, job: JobIds) -> None:
    """Cancel pending jobs; a running one is interrupted within seconds, and leaves memories whole."""

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


def _each(context: typer.Context, jobs: Sequence[int], act: Callable[[JobQueue, int], Awaitable[str]]) -> None:

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


def _job_row(row: Mapping[str, Any]) -> Sequence[str]:
    ids = " ".join(f"{name}={value}" for name, value in sorted(row["ids"].items()))
    times = (_shown(row["enqueued_at"]), _shown(row["not_before"]))
    return str(row["job_id"]), row["name"], row["state"], ids, str(row["attempts"]), *times, row["failure"] or ""


def _shown(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _job_facts(row: Mapping[str, Any]) -> dict[str, Any]:
    named = ("job_id", "name", "state", "ids", "attempts", "enqueued_at", "not_before", "failure")
    return {name: value.isoformat() if isinstance(value := row[name], datetime) else value for name in named}


# Without embedding: writing a vector, moving it into place, and indexing it, on two cores.
WRITING_SECONDS_A_MEMORY = 0.002


@app.command(
    "reembed",
    "agentcore reembed --model hashing --dimensions 768 --dry-run",
    "agentcore reembed --model openai --name text-embedding-3-large --dimensions 1024",
)
@options.with_json
def reembed(
    context: typer.Context,
    model: Annotated[str, typer.Option(help="As EMBEDDING_MODEL: local, openai, cohere ...")],
    name: Annotated[str | None, typer.Option(help="As EMBEDDING_MODEL_NAME. Default: its own.")] = None,
    dimensions: Annotated[int, typer.Option(min=1, max=16_000, help="As EMBEDDING_DIMENSIONS.")] = 384,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many and how long, no more.")] = False,
) -> None:
    """Embed all memories again with another model, while the service runs.

    Searches use the old vectors until all new ones are indexed; then running
    processes use the new model. After an interruption the same command resumes.
    """
    if model == "none":
        fail("--model none makes no vectors: pass another model", MISUSED)
    settings = load_settings().model_copy(
        update={"embedding_model": model, "embedding_model_name": name, "embedding_dimensions": dimensions}
    )
    asyncio.run(_estimate(context, settings) if dry_run else _reembed_all(context, settings))


async def _estimate(context: typer.Context, settings: Settings) -> None:
    async with _reembedding(settings, lambda step, done, total: None) as (work, target):
        extent = await work.extent()
        each = await work.seconds_a_memory() + WRITING_SECONDS_A_MEMORY
    left = (extent.to_embed + extent.passages_to_embed) * each + SETTLE_SECONDS
    told = {
        "memories": extent.memories,
        "to_embed": extent.to_embed,
        "model": target.model,
        "seconds": left,
        "passages_to_embed": extent.passages_to_embed,
    }
    if options.printed_as_json(context, told):
        return
    passages = counted(extent.passages_to_embed, "passage", "passages")
    also = f" and {passages} of long memories" if extent.passages_to_embed else ""
    say(
        f"{counted(extent.to_embed, 'memory', 'memories')} of {extent.memories}{also} would be embedded by "
        f"{target.model}, in about {_span(left)}; nothing was changed"
    )


async def _reembed_all(context: typer.Context, settings: Settings) -> None:
    progress = _progress()
    bar = progress.add_task("looking", total=None)

    def report(step: str, done: int, total: int) -> None:
        progress.update(bar, description=step, completed=done, total=total or None)

    async with _reembedding(settings, report) as (work, target):
        try:
            with progress:
                await work.run()
        except psycopg.Error as error:
            fail(f"{str(error).splitlines()[0]}; progress is kept: repeat the command to continue")
        extent = await work.extent()
    if options.printed_as_json(context, {"memories": extent.memories, "to_embed": 0, "model": target.model}):
        return
    say(
        f"all {counted(extent.memories, 'memory', 'memories')} are searched by vectors of {target.model}; "
        f"running processes use it already. For their next start set {target.sentence()}"
    )


@asynccontextmanager
async def _reembedding(settings: Settings, tell: TellStep) -> AsyncIterator[tuple[Reembedding, KnownModel]]:
    provider = make_embedder(settings)
    if provider is None:
        fail("no model was named", MISUSED)
    embedder = BatchingEmbedder(provider)
    if embedder.dimensions != settings.embedding_dimensions:
        fail(f"{embedder.model} makes vectors of {embedder.dimensions}: --dimensions {embedder.dimensions}", MISUSED)
    target = KnownModel(
        embedder.model,
        settings.embedding_model,
        settings.embedding_model_name,
        settings.embedding_dimensions,
        "filling",
    )
    async with running_database(settings) as database:
        await embedder.open()
        try:
            yield (
                Reembedding(
                    database,
                    embedder,
                    target,
                    make_index_policy(settings),
                    exact_search_limit=settings.exact_search_limit,
                    tell=tell,
                ),
                target,
            )
        finally:
            await embedder.close()


def _span(seconds: float) -> str:
    units = ((86_400, "d"), (3_600, "h"), (60, "min"))
    size, unit = next(((size, unit) for size, unit in units if seconds >= 2 * size), (1, "s"))
    return f"{seconds / size:.0f} {unit}"
