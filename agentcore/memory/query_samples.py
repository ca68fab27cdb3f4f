"""Embeds the sample queries that calibrate a model, and caches their vectors per model."""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embeddings import Embedder, Vectors
from agentcore.memory.models import JsonObject
from agentcore.memory.ranking.calibration import OffTopicPrompts, QueryDetector

OFF_TOPIC = "off_topic.jsonl"
HISTORICAL, CURRENT = "historical_queries.jsonl", "current_queries.jsonl"
# The detectors of the local model, trained on more queries (`benchmarks/training/detectors.py`).
FITTED = "detectors_local.npz"
LABELS = ("historical", "current", "about_assistant")

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class QuerySamples:
    """Calibration of one embedding model by sample queries.

    `historical` detects queries about an earlier state, `current` about a state that may have changed,
    `about_assistant` about what the assistant said (only for the local model). None: the vectors do not separate them.
    """

    off_topic: OffTopicPrompts
    historical: QueryDetector | None = None
    current: QueryDetector | None = None
    about_assistant: QueryDetector | None = None


async def query_samples(embedder: Embedder | None, cache_directory: Path) -> QuerySamples | None:
    """Embeds the samples, which takes seconds once per machine; None if that fails."""
    if embedder is None:
        return None
    fitted = fitted_to(embedder.model)
    names = (OFF_TOPIC,) if fitted is not None else (OFF_TOPIC, HISTORICAL, CURRENT)
    data = [files("agentcore.memory").joinpath(name).read_bytes() for name in names]
    key = hashlib.sha256(f"{embedder.model}/{embedder.dimensions}/".encode() + b"".join(data)).hexdigest()
    cached = cache_directory / "models" / f"queries-{key[:32]}.npy"
    prompts, *labeled = (_json_lines(each) for each in data)
    vectors = await _embedded(embedder, [row["text"] for rows in (prompts, *labeled) for row in rows], cached)
    if vectors is None:
        return None
    if fitted is None:
        fitted = _fitted(vectors[len(prompts) :], *labeled)
    return QuerySamples(OffTopicPrompts.of(vectors[: len(prompts)]), **fitted)


def _fitted(
    vectors: Vectors, historical: Sequence[JsonObject], current: Sequence[JsonObject]
) -> dict[str, QueryDetector | None]:
    count = len(historical)
    return {
        "historical": QueryDetector.of(vectors[:count], np.array([row["historical"] for row in historical], bool)),
        "current": QueryDetector.of(vectors[count:], np.array([row["current"] for row in current], bool)),
    }


def fitted_to(model: str) -> dict[str, QueryDetector | None] | None:
    """Returns the packaged detectors by label if they were trained with this model."""
    with files("agentcore.memory").joinpath(FITTED).open("rb") as file, np.load(file) as arrays:
        if str(arrays["model"]) != model:
            return None
        return {
            label: QueryDetector(arrays[f"{label}_weights"].astype(np.float64), float(arrays[f"{label}_bias"]))
            for label in LABELS
        }


def _json_lines(data: bytes) -> list[JsonObject]:
    return [json.loads(line) for line in data.decode().splitlines()]


async def _embedded(embedder: Embedder, texts: Sequence[str], path: Path) -> Vectors | None:
    vectors = _cached(path, (len(texts), embedder.dimensions))
    if vectors is None:
        try:
            vectors = await embedder.embed(texts, "query")
        except DependencyUnavailable as failure:
            logger.warning(
                "the embedder does not respond: until the next start, abstention uses default thresholds, historical "
                "queries are detected by the times that they name, and freshness applies to all queries: %s",
                failure.message,
            )
            return None
        _cache(path, vectors)
    return vectors


def _cached(path: Path, shape: tuple[int, int]) -> Vectors | None:
    try:
        vectors: Vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return vectors if vectors.shape == shape and np.isfinite(vectors).all() else None


def _cache(path: Path, vectors: Vectors) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            whole = Path(scratch) / path.name
            np.save(whole, vectors)
            whole.replace(path)
    except OSError as cause:
        logger.warning("the vectors of the sample queries cannot be cached in %s: %s", path.parent, cause.strerror)
