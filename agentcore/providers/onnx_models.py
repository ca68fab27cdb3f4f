"""onnxruntime in this process. Providers import it from here: its configuration always applies."""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from agentcore import registry
from agentcore.errors import StartupError
from agentcore.providers.local_models import LocalModel, file_sha256

# onnxruntime sends telemetry, unless this is set before its import.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime

Session: TypeAlias = onnxruntime.InferenceSession
Optimization: TypeAlias = onnxruntime.GraphOptimizationLevel


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


TokenIds: TypeAlias = NDArray[np.int64]


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
