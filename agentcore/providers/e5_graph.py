"""Writes multilingual-e5-small as an ONNX graph with 4-bit weights and 8-bit activations.

`MatMulNBits` at accuracy level 4 quantizes activations block by block, so the vector of a text does not
depend on the other texts of its batch. The word embeddings, four fifths of the weights, stay in their file.
An adapter (LoRA, Hu et al. 2021) adds a low-rank product to dense layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, ValueInfoProto, helper, numpy_helper

from agentcore.providers.bert_graph import CONTRIBUTED, HIDDEN, BertGraph
from agentcore.providers.e5_file import BLOCK_VALUES, E5File, read_arrays, split_blocks

# Hugging Face's names of weights, and the file's.
SHORT_NAMES = (
    ("embeddings.position_embeddings.weight", "emb.pos"), ("embeddings.LayerNorm", "emb.ln"),
    ("embeddings.token_type_embeddings.weight", "emb.type"), ("encoder.layer.", "l"),
    ("attention.self.query", "q"), ("attention.self.key", "k"), ("attention.self.value", "v"),
    ("attention.output.dense", "ao"), ("attention.output.LayerNorm", "aln"),
    ("intermediate.dense", "fi"), ("output.dense", "fo"), ("output.LayerNorm", "oln"),
    (".weight", ".w"), (".bias", ".b"),
)


def write_graph(weights: Path, adapter: bytes = b"") -> bytes:
    """Returns the serialized graph over the published file, with a copy of all but the word embeddings.

    `adapter`: an npz file with matrices `NAME.down` (inputs, rank) and `NAME.up` (rank, outputs) for dense
    layers by their short names, such as `l4.q`; empty: the published model.

    Inputs `words`, float32 (texts, tokens, 384), and `attention_mask`, int64 (texts, tokens); output
    `embedding`, float32 (texts, 384).
    """
    matrices = read_arrays(adapter) if adapter else {}
    return bytes(_E5Graph(E5File(weights), matrices).model().SerializeToString())


def write_pair_graph(weights: Path, adapter: bytes) -> bytes:
    """Returns the serialized graph of a classifier of pairs of texts, each encoded as one sequence.

    `adapter`: as for `write_graph`, and the classifier's `head.0.weight`, `head.0.bias`, `head.1.weight`,
    `head.1.bias`. Inputs `words` and `attention_mask`, and `first_text` and `second_text`, float32
    (pairs, tokens): the share of each token in the mean of its text. Output `relation`, float32 (pairs, 3):
    probabilities.
    """
    matrices = read_arrays(adapter)
    return bytes(_PairGraph(E5File(weights), matrices).model().SerializeToString())


class _E5Graph(BertGraph):
    name = "multilingual-e5-small"
    layers = 12

    def __init__(self, file: E5File, adapter: Mapping[str, NDArray[np.float16]]) -> None:
        super().__init__()
        self._file = file
        self._adapter = adapter

    def words(self) -> tuple[ValueInfoProto, str]:
        words = helper.make_tensor_value_info("words", TensorProto.FLOAT, ["texts", "tokens", HIDDEN])
        return words, words.name

    def weight(self, name: str) -> str:
        values = np.array(self._file.floats(_short(name)))
        shaped = values.reshape(-1, HIDDEN) if "_embeddings" in name else values
        self.initializers[name] = numpy_helper.from_array(shaped, name)
        return name

    def dense(self, rows: str, name: str) -> str:
        bias = self.weight(f"{name}.bias")
        outputs = len(self._file.floats(_short(f"{name}.bias")))
        blocks = self._file.blocks(_short(f"{name}.weight"), HIDDEN)
        width = blocks.shape[0] * HIDDEN // outputs
        scales, codes = split_blocks(blocks.reshape(outputs, -1, blocks.shape[-1]))
        packed, scale = f"{name}.packed", f"{name}.scales"
        self.initializers[packed] = numpy_helper.from_array(codes[..., ::2] | codes[..., 1::2] << 4, packed)
        self.initializers[scale] = numpy_helper.from_array(scales.reshape(-1), scale)
        projected = self.node("MatMulNBits", [rows, packed, scale, "", "", bias], domain=CONTRIBUTED, K=width,
                              N=outputs, bits=4, block_size=BLOCK_VALUES, accuracy_level=4)
        down, up = (f"{_short(name)}.{part}" for part in ("down", "up"))
        if down not in self._adapter:
            return projected
        for each in (down, up):
            self.initializers[each] = numpy_helper.from_array(self._adapter[each].astype(np.float32), each)
        return self.node("Add", [projected, self.node("MatMul", [self.node("MatMul", [rows, down]), up])])


class _PairGraph(_E5Graph):
    name = "multilingual-e5-small-relations"
    output = ("relation", 3)

    def more_inputs(self) -> list[ValueInfoProto]:
        return [helper.make_tensor_value_info(each, TensorProto.FLOAT, ["texts", "tokens"])
                for each in ("first_text", "second_text")]

    def pool(self, hidden: str) -> None:
        first, second = self.integers("first_token", 0), self.integers("second", 1)
        start = self.node("Squeeze", [self.node("Slice", [hidden, first, second, second]), second])
        rows = [self.node("Unsqueeze", [each, second]) for each in ("first_text", "second_text")]
        means = [self.node("Squeeze", [self.node("MatMul", [each, hidden]), second]) for each in rows]
        joined = self.node("Concat", [start, *means], axis=1)
        inner = self.node("Tanh", [self._head(joined, 0)])
        self.node("Softmax", [self._head(inner, 1)], output="relation", axis=1)

    def _head(self, rows: str, number: int) -> str:
        names = [f"head.{number}.{part}" for part in ("weight", "bias")]
        for each in names:
            self.initializers[each] = numpy_helper.from_array(self._adapter[each].astype(np.float32), each)
        return self.node("Gemm", [rows, *names], transB=1)


def _short(name: str) -> str:
    for long, short in SHORT_NAMES:
        name = name.replace(long, short)
    return name
