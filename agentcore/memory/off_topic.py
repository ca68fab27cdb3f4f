"""Embeds the sample of off-topic prompts, and caches its vectors for each model."""

from __future__ import annotations

import hashlib
import json
import logging
import tempfile
from importlib.resources import files
from pathlib import Path

import numpy as np

from agentcore.errors import DependencyUnavailable
from agentcore.memory.embeddings import Embedder, Vectors
from agentcore.memory.ranking.off_topic import OffTopicPrompts

PROMPTS = "off_topic.jsonl"

logger = logging.getLogger(__name__)


async def off_topic_prompts(embedder: Embedder | None, cache_directory: Path) -> OffTopicPrompts | None:
    """Returns the sample in vectors of this embedder; None if there is none, or it does not answer.

    The first time on a machine it is embedded, which takes seconds with a local model.
    """
    if embedder is None:
        return None
    data = files("agentcore.memory").joinpath(PROMPTS).read_bytes()
    key = hashlib.sha256(f"{embedder.model}/{embedder.dimensions}/".encode() + data).hexdigest()
    cached = cache_directory / "models" / f"off-topic-{key[:32]}.npy"
    texts = [json.loads(line)["text"] for line in data.decode().splitlines()]
    vectors = _cached(cached, (len(texts), embedder.dimensions))
    if vectors is None:
        try:
            vectors = await embedder.embed(texts, "query")
        except DependencyUnavailable as failure:
            logger.warning("the embedder does not answer; searches abstain worse until the next start: %s",
                           failure.message)
            return None
        _keep(cached, vectors)
    return OffTopicPrompts.of(vectors)


def _cached(path: Path, shape: tuple[int, int]) -> Vectors | None:
    try:
        vectors: Vectors = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return vectors if vectors.shape == shape and np.isfinite(vectors).all() else None


def _keep(path: Path, vectors: Vectors) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
            whole = Path(scratch) / path.name
            np.save(whole, vectors)
            whole.replace(path)
    except OSError as cause:
        logger.warning("the vectors of the off-topic prompts cannot be cached in %s: %s",
                       path.parent, cause.strerror)
