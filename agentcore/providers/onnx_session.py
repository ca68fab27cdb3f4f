"""Configures onnxruntime: no telemetry, and one thread for each call.

Every provider imports the library from here, so that this configuration always applies.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

# Since 1.29 onnxruntime sends telemetry on sessions and models, unless this is set before its import.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as failures

ONNX_FAILURES: tuple[type[Exception], ...] = (
    failures.EPFail, failures.Fail, failures.InvalidArgument, failures.InvalidGraph, failures.InvalidProtobuf,
    failures.NoModel, failures.NoSuchFile, failures.NotImplemented, failures.RuntimeException)
Session: TypeAlias = onnxruntime.InferenceSession
Optimization: TypeAlias = onnxruntime.GraphOptimizationLevel


def open_session(
    graph: bytes | str, level: Optimization, configuration: Mapping[str, str] | None = None
) -> Session:
    """Opens a thread-safe session over a graph or its file."""
    options = onnxruntime.SessionOptions()
    # Concurrent calls run on one thread each: threads within a call would block each other.
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
    """Returns the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
