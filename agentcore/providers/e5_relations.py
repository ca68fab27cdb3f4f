"""Classifies pairs of messages: does the later one change what the earlier one states, or repeat it?

A cross-encoder: the layers of multilingual-e5-small with an adapter of their own, see
`benchmarks/training/relations.md`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from agentcore.providers.e5 import END, START, WEIGHTS, UnigramTokenizer
from agentcore.providers.e5_file import HIDDEN, E5File, dequantized, read_arrays
from agentcore.providers.local_models import E5
from agentcore.providers.onnx_embedder import cached_graph, padded
from agentcore.providers.onnx_session import Optimization, open_session

ADAPTER = "e5_relations.npz"
WRITER = "agentcore.providers.bert_graphs:write_pair_graph"
# Of each text; what follows is not read.
MAX_TOKENS = 64
BATCH = 8
CHANGES = 0


class LocalRelations:
    """Runs in one thread of its own. Loads at the first use: 30 MB, a second at most."""

    def __init__(self, cache_directory: Path) -> None:
        self._cache_directory = cache_directory
        self._thread = ThreadPoolExecutor(1, "relations")
        self._network: _Network | None = None

    async def changes(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Returns for each pair (earlier, later) the probability that the later text changes the earlier one.

        Raises StartupError if the model's files are missing or damaged.
        """
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._changes, list(pairs))

    def close(self) -> None:
        """Ends the thread once it is idle."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _changes(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        if self._network is None:
            self._network = _Network(self._cache_directory)
        return self._network.probabilities(pairs)[:, CHANGES]


class _Network:
    def __init__(self, cache_directory: Path) -> None:
        directory = E5.verified_directory()
        adapter = files("agentcore.providers").joinpath(ADAPTER).read_bytes()
        graph = cached_graph(E5, WRITER, directory / WEIGHTS, cache_directory, adapter)
        file = E5File(directory / WEIGHTS)
        self._tokenizer = UnigramTokenizer(file.vocabulary)
        self._words = file.blocks("emb.word", HIDDEN)
        self._session = open_session(graph, Optimization.ORT_ENABLE_BASIC)
        self._segment: NDArray[np.float32] = read_arrays(adapter)["segment"].astype(np.float32)

    def probabilities(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Returns a row for each pair: changes, repeats, neither."""
        tokens = [self._tokens(*pair) for pair in pairs]
        order = sorted(range(len(pairs)), key=lambda each: len(tokens[each][0]))
        found = np.empty((len(pairs), 3), np.float32)
        for start in range(0, len(order), BATCH):
            chunk = order[start : start + BATCH]
            found[chunk] = self._run([tokens[each] for each in chunk])
        return found

    def _tokens(self, earlier: str, later: str) -> tuple[NDArray[np.int64], int]:
        first, second = (self._tokenizer.encode(text)[1:-1][:MAX_TOKENS] for text in (earlier, later))
        return np.array([START, *first, END, END, *second, END], np.int64), len(first) + 2

    def _run(self, tokens: Sequence[tuple[NDArray[np.int64], int]]) -> NDArray[np.float32]:
        _, mask = padded([ids for ids, _ in tokens])
        words = np.zeros((*mask.shape, HIDDEN), np.float32)
        words[mask == 1] = dequantized(self._words[np.concatenate([ids for ids, _ in tokens])])
        shares = np.zeros((2, *mask.shape), np.float32)
        for row, (ids, split) in enumerate(tokens):
            words[row, split : len(ids)] += self._segment
            shares[0, row, :split] = 1 / split
            shares[1, row, split : len(ids)] = 1 / (len(ids) - split)
        inputs = {"words": words, "attention_mask": mask, "first_text": shares[0], "second_text": shares[1]}
        return np.asarray(self._session.run(None, inputs)[0])
