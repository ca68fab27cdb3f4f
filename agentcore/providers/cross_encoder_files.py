"""Which files make up a cross-encoder's directory. Imports nothing: also who has no onnxruntime may look."""

from __future__ import annotations

from pathlib import Path

TOKENIZER = "tokenizer.json"
# Where the usual exporters put the graph.
GRAPHS = ("model.onnx", "onnx/model.onnx")


def graph_in(directory: Path) -> Path | None:
    """The model's graph."""
    return next((directory / name for name in GRAPHS if (directory / name).is_file()), None)


def missing_in(directory: Path) -> list[str]:
    """The names of what is not there."""
    missing = [GRAPHS[0]] if graph_in(directory) is None else []
    return missing if (directory / TOKENIZER).is_file() else [*missing, TOKENIZER]
