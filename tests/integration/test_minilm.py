"""all-MiniLM-L6-v2: vectors compared with a second implementation."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from agentcore.memory.embeddings import EmbedderOptions
from agentcore.providers.local_models import MINILM
from agentcore.providers.minilm import MiniLmEmbedder, token_ids

SENTENCES = [
    "When did Alice deploy the Postgres cluster?",
    "a",
    "The weather in Paris is nice today, said nobody in November.",
    "Ünïcödé, \u4e2d\u6587 and \U0001f600 emoji; tabs\tand\nlines.",
    "ERROR 2024-01-01 db.pool: timeout after 30s (retry=3)",
    "memory " * 40,
    "word " * 2_000,
]


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("minilm")


@pytest.fixture
async def embedder(cache: Path) -> AsyncIterator[MiniLmEmbedder]:
    local = MiniLmEmbedder(EmbedderOptions(MINILM.name, 384, cache))
    await local.open()
    yield local
    await local.close()


# --- vectors -----------------------------------------------------------------------------------------------


class Reference:
    """BERT as in its paper, in numpy with 64-bit floats, one text at a time."""

    def __init__(self, directory: Path) -> None:
        loaded = load_file(directory / "model.safetensors")
        self.weights = {name: value.astype(np.float64) for name, value in loaded.items()}
        self.tokenizer = Tokenizer.from_file(str(directory / "tokenizer.json"))
        self.tokenizer.enable_truncation(256)
        self.tokenizer.no_padding()

    def embed(self, text: str) -> NDArray[np.float64]:
        ids = self.tokenizer.encode(text).ids
        words, positions, kinds = (
            self.weights[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type")
        )
        hidden = self.norm("embeddings.LayerNorm", words[ids] + positions[: len(ids)] + kinds[0])
        for layer in range(6):
            hidden = self.layer(f"encoder.layer.{layer}", hidden)
        mean: NDArray[np.float64] = hidden.mean(axis=0)
        unit: NDArray[np.float64] = mean / np.linalg.norm(mean)
        return unit

    def layer(self, name: str, hidden: NDArray[np.float64]) -> NDArray[np.float64]:
        context = np.empty_like(hidden)
        query, key, value = (self.linear(f"{name}.attention.self.{part}", hidden) for part in ("query", "key", "value"))
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
        deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
        scaled: NDArray[np.float64] = centred / deviation * self.weights[f"{name}.weight"]
        return scaled + self.weights[f"{name}.bias"]


async def test_vectors_are_those_of_the_reference(embedder: MiniLmEmbedder) -> None:
    reference = Reference(MINILM.verified_directory())
    vectors = await embedder.embed(SENTENCES, "document")
    expected = np.array([reference.embed(text) for text in SENTENCES])
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


async def test_meaning_counts_and_not_words(embedder: MiniLmEmbedder) -> None:
    asked, near, far = await embedder.embed(
        ["How do I get my money back?", "Our refund policy", "The money supply of medieval Venice"], "query"
    )
    assert asked @ near > asked @ far + 0.1


@pytest.mark.parametrize(
    "long",
    ["word " * 50_000, "x" * 50_000, "\u4e2d" * 50_000, " " * 50_000 + "end", ("y" * 9_000 + " ") * 4, "a-" * 30_000],
)
def test_a_long_text_is_cut_where_the_reference_cuts_it(long: str) -> None:
    reference = Reference(MINILM.verified_directory())
    assert token_ids(reference.tokenizer, long).tolist() == reference.tokenizer.encode(long).ids
