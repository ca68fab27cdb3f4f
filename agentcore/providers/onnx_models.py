"""Runs models in this process with onnxruntime. Providers import it from here: its configuration always applies."""

from __future__ import annotations

import asyncio
import hashlib
import os
import platform
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from agentcore import registry
from agentcore.errors import ConfigurationError, DependencyUnavailable, StartupError
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind, Vectors
from agentcore.providers.local_models import LOCAL_MODELS, LocalModel, file_sha256

# onnxruntime sends telemetry, unless this is set before its import.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as failures

ONNX_FAILURES: tuple[type[Exception], ...] = (
    failures.EPFail,
    failures.Fail,
    failures.InvalidArgument,
    failures.InvalidGraph,
    failures.InvalidProtobuf,
    failures.NoModel,
    failures.NoSuchFile,
    failures.NotImplemented,
    failures.RuntimeException,
)
Session: TypeAlias = onnxruntime.InferenceSession
Optimization: TypeAlias = onnxruntime.GraphOptimizationLevel


def open_session(graph: bytes | str, level: Optimization, configuration: Mapping[str, str] | None = None) -> Session:
    """Opens a thread-safe session over a graph or its file."""
    options = onnxruntime.SessionOptions()
    # Concurrent calls run on one thread each.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.graph_optimization_level = level
    options.log_severity_level = 3
    for name, value in (configuration or {}).items():
        options.add_session_config_entry(name, value)
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


DIMENSIONS = 384
MAX_TOKENS = 256
# Larger chunks are no faster per token, and delay queries.
CHUNK_TOKENS = 128
BATCH_TEXTS = 16
# Each thread has its own working memory.
MAX_DEFAULT_THREADS = 8

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
TokenIds: TypeAlias = NDArray[np.int64]


class Network(Protocol):
    """A loaded model, used by several threads."""

    def tokens(self, text: str, kind: EmbeddingKind) -> TokenIds:
        """Returns MAX_TOKENS at most."""

    def vectors(self, tokens: Sequence[TokenIds]) -> Vectors:
        """Returns a row of unit length for each text of one chunk."""


@dataclass(frozen=True)
class _Loaded:
    network: Network
    threads: Mapping[EmbeddingKind, ThreadPoolExecutor]


@dataclass(frozen=True)
class _Batch:
    tokens: Sequence[TokenIds]
    chunks: Sequence[Sequence[int]]
    vectors: Vectors


class OnnxEmbedder(ABC):
    """Embeds chunk by chunk in its own threads, so that calls take turns; queries have threads of their own."""

    files: ClassVar[LocalModel]
    distinguishes_queries: ClassVar[bool]

    def __init__(self, options: EmbedderOptions) -> None:
        name = self.files.name
        problems = []
        if options.model_name.rpartition("/")[2] != name:
            known = ", ".join(f"EMBEDDING_MODEL={key} is {each.name}" for key, each in LOCAL_MODELS.items())
            problems.append(f"EMBEDDING_MODEL_NAME={options.model_name}: {known}; unset EMBEDDING_MODEL_NAME.")
        if options.dimensions != DIMENSIONS:
            problems.append(
                f"EMBEDDING_DIMENSIONS={options.dimensions}: {name} makes {DIMENSIONS}; "
                f"set EMBEDDING_DIMENSIONS={DIMENSIONS}."
            )
        if problems:
            raise ConfigurationError(problems)
        self.model = f"local/{name}"
        self.dimensions = DIMENSIONS
        self.batch_size = min(options.batch_size, BATCH_TEXTS)
        self.parallel_requests = options.threads or min(cores(), MAX_DEFAULT_THREADS)
        self._options = options
        self._loaded: _Loaded | None = None

    @abstractmethod
    def _load(self, directory: Path, cache_directory: Path) -> Network: ...

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

    def _open(self) -> Network:
        return self._load(self.files.verified_directory(), self._options.cache_directory)

    async def close(self) -> None:
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            for threads in loaded.threads.values():
                await asyncio.to_thread(threads.shutdown)

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        batch = await self._run(kind, _begin, texts, kind)
        pending = iter(batch.chunks)

        async def work_off() -> None:
            for chunk in pending:
                await self._run(kind, _infer, batch, chunk)

        await asyncio.gather(*(work_off() for _ in range(min(self.parallel_requests, len(batch.chunks)))))
        return batch.vectors

    async def _run(
        self,
        kind: EmbeddingKind,
        work: Callable[Concatenate[Network, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        loaded = self._loaded
        if loaded is None:
            raise DependencyUnavailable("The local embedding model is not loaded.")
        call = partial(work, loaded.network, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(loaded.threads[kind], call)


def _begin(network: Network, texts: Sequence[str], kind: EmbeddingKind) -> _Batch:
    tokens = [network.tokens(text, kind) for text in texts]
    batch = _Batch(
        tokens,
        list(chunks([len(each) for each in tokens], CHUNK_TOKENS)),
        np.empty((len(texts), DIMENSIONS), np.float32),
    )
    if len(batch.chunks) > 1:
        return batch
    _infer(network, batch, batch.chunks[0])
    return replace(batch, chunks=())


def _infer(network: Network, batch: _Batch, chunk: Sequence[int]) -> None:
    batch.vectors[chunk] = network.vectors([batch.tokens[index] for index in chunk])


def padded(tokens: Sequence[TokenIds | Sequence[int]], padding_id: int = 0) -> tuple[TokenIds, TokenIds]:
    """Returns the ids of texts as one array, and the attention mask."""
    input_ids = np.full((len(tokens), max(map(len, tokens))), padding_id, np.int64)
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
