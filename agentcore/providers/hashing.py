"""Embeddings by feature hashing, in any dimension, for tests and load runs.

Words and their character trigrams are hashed to signed positions (Weinberger et al., "Feature Hashing for Large Scale
Multitask Learning", 2009).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind, Vectors
from agentcore.memory.language.text import normalize

# Weights of a word and of a trigram, each with either sign.
WEIGHTS = np.array([-2.0, 2.0, -1.0, 1.0])
CHUNK_TEXTS = 64

_WORD = re.compile(r"\w+")


class HashingEmbedder:
    distinguishes_queries = False
    parallel_requests = 1

    def __init__(self, options: EmbedderOptions) -> None:
        self.dimensions = options.dimensions
        self.model = f"hashing/words-trigrams@{options.dimensions}"
        self.batch_size = options.batch_size

    async def open(self) -> None:
        """No model to load."""

    async def close(self) -> None:
        """No resources to close."""

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        rows = np.empty((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), CHUNK_TEXTS):
            chunk = texts[start : start + CHUNK_TEXTS]
            rows[start : start + CHUNK_TEXTS] = await asyncio.to_thread(_embed, chunk, self.dimensions)
        return rows


def _embed(texts: Sequence[str], dimensions: int) -> Vectors:
    # Without words, the whole text counts as one.
    folded = [normalize("NFKC", text).casefold() for text in texts]
    words = [_WORD.findall(text) or [f"\0{text}"] for text in folded]
    features = [_features(word, dimensions) for each in words for word in each]
    owners = np.repeat(np.arange(len(texts)), [len(each) for each in words])
    rows = np.repeat(owners, [len(each) for each in features])
    codes = np.concatenate(features)
    flat = np.bincount(
        rows * dimensions + codes // len(WEIGHTS), WEIGHTS[codes % len(WEIGHTS)], minlength=len(texts) * dimensions
    )
    vectors = flat.reshape(len(texts), dimensions)
    lengths = np.linalg.norm(vectors, axis=1)
    # Opposite signs may cancel out, most likely with few dimensions.
    for row in np.flatnonzero(lengths == 0).tolist():
        vectors[row, _digest(texts[row]) % dimensions] = 1.0
        lengths[row] = 1.0
    unit: Vectors = (vectors / lengths[:, np.newaxis]).astype(np.float32)
    return unit


@lru_cache(maxsize=65_536)
def _features(word: str, dimensions: int) -> NDArray[np.int64]:
    bounded = f"<{word}>"
    trigrams = [f"#{bounded[start : start + 3]}" for start in range(len(bounded) - 2)]
    digests = [_digest(feature) for feature in (word, *trigrams)]
    codes = np.array([digest % dimensions * len(WEIGHTS) + (digest >> 63) for digest in digests], np.int64)
    codes[1:] += 2
    return codes


def _digest(feature: str) -> int:
    return int.from_bytes(blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
