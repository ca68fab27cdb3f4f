"""Builds multilingual-e5-small, a BERT encoder, as an ONNX graph.

It has 8-bit weights, with a scale per output, and 8-bit activations, with a scale per token, so that a
vector does not depend on its batch. Factors per channel balance both (SmoothQuant, Xiao et al. 2022, arXiv
2211.10438). An adapter is a low-rank product added to dense layers (LoRA, Hu et al. 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from agentcore.providers.e5_file import E5File, dequantized, read_arrays

LAYERS, HEADS = 12, 12
HIDDEN = 384
EPSILON = 1e-12
CONTRIBUTED = "com.microsoft"
OPSETS = {"": 17, CONTRIBUTED: 1}
IR_VERSION = 9
# Codes of 8 bits: from -LEVELS to LEVELS, plus ZERO if unsigned.
LEVELS, ZERO = 127, 128


# Hugging Face's names, and the file's.
SHORT_NAMES = (
    ("embeddings.position_embeddings.weight", "emb.pos"),
    ("embeddings.LayerNorm", "emb.ln"),
    ("embeddings.token_type_embeddings.weight", "emb.type"),
    ("encoder.layer.", "l"),
    ("attention.self.query", "q"),
    ("attention.self.key", "k"),
    ("attention.self.value", "v"),
    ("attention.output.dense", "ao"),
    ("attention.output.LayerNorm", "aln"),
    ("intermediate.dense", "fi"),
    ("output.dense", "fo"),
    ("output.LayerNorm", "oln"),
    (".weight", ".w"),
    (".bias", ".b"),
)


def write_e5_graph(weights: Path, ranges: bytes, layout: bytes, adapter: bytes = b"") -> bytes:
    """Returns the serialized graph over the published file, with a copy of all but the word embeddings.

    `ranges`: an npz file with the largest absolute input of each channel of dense layers, by short names such as
    `l4.q` (also for key and value). `layout`: see `weight_layout`. `adapter`: an npz file with matrices `NAME.down`
    (inputs, rank) and `NAME.up` (rank, outputs). Inputs: `words`, float32 (texts, tokens, 384), and `attention_mask`.
    """
    return bytes(E5Graph(weights, ranges, layout, adapter).model().SerializeToString())


def write_pair_graph(weights: Path, ranges: bytes, layout: bytes, adapter: bytes) -> bytes:
    """Returns the serialized graph of a classifier of pairs of texts, each encoded as one sequence.

    As `write_e5_graph`; `adapter` also contains the classifier's `head.0` and `head.1`. More inputs: `first_text` and
    `second_text`, float32 (pairs, tokens), the share of each token in the mean of its text. Output `relation`, float32
    (pairs, 3): probabilities.
    """
    return bytes(_PairGraph(weights, ranges, layout, adapter).model().SerializeToString())


class E5Graph:
    """The graph of multilingual-e5-small; arguments as for `write_e5_graph`. Weights have Hugging Face's names.

    Inputs: `words`, float32 (texts, tokens, 384), `attention_mask`, int64 (texts, tokens), and the subclass's. Output
    `embedding`, (texts, 384).
    """

    name: ClassVar[str] = "multilingual-e5-small"
    output: ClassVar[tuple[str, int]] = ("embedding", HIDDEN)

    def __init__(self, weights: Path, ranges: bytes, layout: bytes, adapter: bytes) -> None:
        self.initializers: dict[str, TensorProto] = {}
        self._nodes: list[NodeProto] = []
        self._file = E5File(weights)
        self._signed = layout == b"signed"
        self._ranges = read_arrays(ranges) if ranges else {}
        self._adapter = read_arrays(adapter) if adapter else {}
        # Quantized inputs of dense layers, and their scales (tokens, 1).
        self._quantized: dict[str, tuple[str, str]] = {}

    def more_inputs(self) -> list[ValueInfoProto]:
        """Returns further inputs, which `pool` uses."""
        return []

    def model(self) -> ModelProto:
        words = helper.make_tensor_value_info("words", TensorProto.FLOAT, ["texts", "tokens", HIDDEN])
        hidden = self._embed(words.name)
        width = self.integers("width", HIDDEN)
        batch = self.node("Concat", [self.node("Shape", ["attention_mask"]), width], axis=0)
        mask = self.node("Cast", ["attention_mask"], to=TensorProto.INT32)
        for layer in range(LAYERS):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, batch, mask)
        self.pool(self.node("Reshape", [hidden, batch]))
        mask_input = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["texts", "tokens"])
        name, width_ = self.output
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["texts", width_])
        weights = list(self.initializers.values())
        inputs = [words, mask_input, *self.more_inputs()]
        graph = helper.make_graph(self._nodes, self.name, inputs, [output], weights)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def node(
        self,
        operator: str,
        inputs: Sequence[str],
        *,
        output: str = "",
        domain: str = "",
        **attributes: float | Sequence[int],
    ) -> str:
        output = output or f"{operator}.{len(self._nodes)}"
        node = helper.make_node(operator, inputs, [output], domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self._nodes.append(node)
        return output

    def integers(self, name: str, *values: int) -> str:
        self.initializers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def _embed(self, words: str) -> str:
        first, second = self.integers("first", 0), self.integers("second", 1)
        length = self.node("Shape", ["attention_mask"], start=1, end=2)
        positions = self.node("Slice", [self.weight("embeddings.position_embeddings.weight"), first, length, first])
        segment = self.node("Slice", [self.weight("embeddings.token_type_embeddings.weight"), first, second, first])
        added = self.node("Add", [words, self.node("Add", [positions, segment])])
        return self._normalize(self.node("Reshape", [added, self._rows()]), "embeddings.LayerNorm")

    def _layer(self, name: str, hidden: str, batch: str, mask: str) -> str:
        heads = [
            self.node("Reshape", [self.dense(hidden, f"{name}.attention.self.{part}"), batch])
            for part in ("query", "key", "value")
        ]
        attended = self.node("MultiHeadAttention", [*heads, "", mask], domain=CONTRIBUTED, num_heads=HEADS)
        mixed = self.dense(self.node("Reshape", [attended, self._rows()]), f"{name}.attention.output.dense")
        hidden = self._normalize(self.node("Add", [mixed, hidden]), f"{name}.attention.output.LayerNorm")
        widened = self.node("Gelu", [self.dense(hidden, f"{name}.intermediate.dense")], domain=CONTRIBUTED)
        narrowed = self.dense(widened, f"{name}.output.dense")
        return self._normalize(self.node("Add", [narrowed, hidden]), f"{name}.output.LayerNorm")

    def pool(self, hidden: str) -> None:
        """Adds the nodes from the last layer (texts, tokens, 384) to the output."""
        second = self.integers("second", 1)
        mask = self.node("Unsqueeze", [self.node("Cast", ["attention_mask"], to=TensorProto.FLOAT), second])
        total = self.node("Squeeze", [self.node("MatMul", [mask, hidden]), second])
        self.node("LpNormalization", [total], output="embedding", axis=-1, p=2)

    def _normalize(self, rows: str, name: str) -> str:
        # The fused SkipLayerNormalization took eight times as long on the processor.
        scale, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("LayerNormalization", [rows, scale, bias], axis=-1, epsilon=EPSILON)

    def _rows(self) -> str:
        return self.integers("rows", -1, HIDDEN)

    def weight(self, name: str) -> str:
        values = np.array(self._file.floats(_short(name)))
        return self.constant(name, values.reshape(-1, HIDDEN) if "_embeddings" in name else values)

    def constant(self, name: str, values: ArrayLike, dtype: DTypeLike = np.float32) -> str:
        self.initializers[name] = numpy_helper.from_array(np.ascontiguousarray(values, dtype=dtype), name)
        return name

    def dense(self, rows: str, name: str) -> str:
        channels, weights = self.ranges_and_weights(name)
        factors = np.sqrt(self._ranges[channels].astype(np.float32)) if channels in self._ranges else None
        if factors is not None:
            weights = weights * factors
        scales = np.abs(weights).max(axis=1) / LEVELS
        codes = np.rint(weights / scales[:, None]).T
        codes = codes.astype(np.int8) if self._signed else (codes + ZERO).astype(np.uint8)
        activations, activation_scales = self._quantize(rows, channels, factors)
        zeros = [self.constant("zero", ZERO, np.uint8)] + ([] if self._signed else ["zero"])
        product = self.node(
            "MatMulIntegerToFloat",
            [
                activations,
                self.constant(f"{name}.codes", codes, codes.dtype),
                self.constant("one", 1.0),
                self.constant(f"{name}.scales", scales),
                *zeros,
            ],
            domain=CONTRIBUTED,
        )
        return self.node("Add", [self.node("Mul", [product, activation_scales]), self.weight(f"{name}.bias")])

    def ranges_and_weights(self, name: str) -> tuple[str, NDArray[np.float32]]:
        """Returns the name of a dense layer's ranges, and its weights: (outputs, inputs)."""
        short = _short(name)
        outputs = len(self._file.floats(f"{short}.b"))
        weights = dequantized(self._file.blocks(f"{short}.w", HIDDEN)).reshape(outputs, -1)
        if f"{short}.down" in self._adapter:
            down, up = (self._adapter[f"{short}.{part}"].astype(np.float32) for part in ("down", "up"))
            weights = weights + (down @ up).T
        return short.replace(".k", ".q").replace(".v", ".q"), weights

    def _quantize(self, rows: str, channels: str, factors: NDArray[np.float32] | None) -> tuple[str, str]:
        """Returns the rows as 8-bit codes around ZERO, and a scale per row: (tokens, 1)."""
        if rows not in self._quantized:
            smoothed = rows
            if factors is not None:
                smoothed = self.node("Mul", [rows, self.constant(f"{channels}.factors", 1 / factors)])
            largest = self.node("ReduceMax", [self.node("Abs", [smoothed])], axes=[1], keepdims=0)
            largest = self.node("Max", [largest, self.constant("least", np.finfo(np.float32).tiny * LEVELS)])
            scales = self.node("Mul", [largest, self.constant("step", 1 / LEVELS)])
            zeros = self.node("Expand", [self.constant("zeros", [ZERO], np.uint8), self.node("Shape", [scales])])
            codes = self.node("QuantizeLinear", [smoothed, scales, zeros], axis=0)
            self._quantized[rows] = codes, self.node("Unsqueeze", [scales, self.integers("second", 1)])
        return self._quantized[rows]


class _PairGraph(E5Graph):
    name = "multilingual-e5-small-relations"
    output = ("relation", 3)

    def more_inputs(self) -> list[ValueInfoProto]:
        return [
            helper.make_tensor_value_info(each, TensorProto.FLOAT, ["texts", "tokens"])
            for each in ("first_text", "second_text")
        ]

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
            self.constant(each, self._adapter[each])
        return self.node("Gemm", [rows, *names], transB=1)


def _short(name: str) -> str:
    for long, short in SHORT_NAMES:
        name = name.replace(long, short)
    return name
