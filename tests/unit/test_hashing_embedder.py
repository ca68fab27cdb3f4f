"""Hashing embeddings: deterministic, and similar for texts with common words."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from agentcore.memory.embeddings import EmbedderOptions
from agentcore.providers.hashing import HashingEmbedder


def embedder(dimensions: int = 384) -> HashingEmbedder:
    return HashingEmbedder(EmbedderOptions("hashing", dimensions, Path("unused")))


async def similarity(first: str, second: str, dimensions: int = 384) -> float:
    vectors = await embedder(dimensions).embed([first, second], "document")
    return float(vectors[0] @ vectors[1])


async def test_vectors_are_the_same_on_every_machine() -> None:
    vectors = await embedder(8).embed(["Alice deployed the cluster"], "document")
    expected = [[0.0, 0.179605, -0.359211, 0.0, 0.359211, 0.538816, -0.538816, 0.359211]]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 64, 384, 1_536, 16_000])
async def test_any_number_of_dimensions_will_do(dimensions: int) -> None:
    vectors = await embedder(dimensions).embed(["one text", "", "!?", "and \u4e2d\u6587 \U0001f600"], "query")
    assert vectors.shape == (4, dimensions)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


async def test_a_text_whose_features_cancel_out_still_has_a_direction() -> None:
    vectors = await embedder(1).embed([f"word{number}" for number in range(200)], "document")
    assert set(vectors.ravel().tolist()) == {-1.0, 1.0}


async def test_shared_words_make_texts_similar() -> None:
    asked = "When did Alice deploy the Postgres cluster?"
    assert await similarity(asked, "Alice deployed the Postgres cluster on Friday") > 0.5
    assert await similarity(asked, "Soup needs salt, pepper and patience") < 0.2


async def test_word_forms_are_nearer_than_other_words() -> None:
    assert await similarity("deploy", "deployment") > await similarity("deploy", "vegetable") + 0.3


@pytest.mark.parametrize(
    ("first", "second"), [("Postgres CLUSTER", "postgres cluster"), ("\ufb01ne", "fine"), ("one, two!", "one two")]
)
async def test_case_form_and_punctuation_do_not_count(first: str, second: str) -> None:
    assert await similarity(first, second) == pytest.approx(1.0, abs=1e-6)


async def test_texts_without_words_are_told_apart() -> None:
    assert await similarity("!?", "...", dimensions=16_000) < 0.5


async def test_names_of_different_dimensions_differ() -> None:
    assert embedder(64).model != embedder(128).model


async def test_many_texts_come_back_in_their_order() -> None:
    texts = [f"memory number {number}" for number in range(300)]
    together = await embedder(64).embed(texts, "document")
    for index in (0, 63, 64, 299):
        alone = await embedder(64).embed([texts[index]], "document")
        np.testing.assert_array_equal(together[index], alone[0])
