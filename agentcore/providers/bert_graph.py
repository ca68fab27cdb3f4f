"""Builds a BERT encoder of hidden size 384 as an ONNX graph: layers, mean pooling, unit length."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

HEADS = 12
HIDDEN = 384
EPSILON = 1e-12
CONTRIBUTED = "com.microsoft"
OPSETS = {"": 17, CONTRIBUTED: 1}
IR_VERSION = 9


class BertGraph(ABC):
    """Input `attention_mask`, int64 (texts, tokens), beside the subclass's; output `embedding`, (texts, 384).

    Weights have the names of Hugging Face's BERT.
    """

    name: ClassVar[str]
    layers: ClassVar[int]
    output: ClassVar[tuple[str, int]] = ("embedding", HIDDEN)

    def __init__(self) -> None:
        self.initializers: dict[str, TensorProto] = {}
        self._nodes: list[NodeProto] = []

    @abstractmethod
    def weight(self, name: str) -> str:
        """Adds a float32 weight to the initializers; returns the name it has there."""

    @abstractmethod
    def words(self) -> tuple[ValueInfoProto, str]:
        """Returns the model's own input, and the value with the word embeddings (texts, tokens, 384)."""

    def more_inputs(self) -> list[ValueInfoProto]:
        """Returns the inputs of the last part, `pool`."""
        return []

    def model(self) -> ModelProto:
        own_input, words = self.words()
        hidden = self._embed(words)
        width = self.integers("width", HIDDEN)
        batch = self.node("Concat", [self.node("Shape", ["attention_mask"]), width], axis=0)
        mask = self.node("Cast", ["attention_mask"], to=TensorProto.INT32)
        for layer in range(self.layers):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, batch, mask)
        self.pool(self.node("Reshape", [hidden, batch]))
        mask_input = helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["texts", "tokens"])
        name, width_ = self.output
        output = helper.make_tensor_value_info(name, TensorProto.FLOAT, ["texts", width_])
        weights = list(self.initializers.values())
        inputs = [own_input, mask_input, *self.more_inputs()]
        graph = helper.make_graph(self._nodes, self.name, inputs, [output], weights)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def dense(self, rows: str, name: str) -> str:
        weight, bias = self.weight(f"{name}.weight"), self.weight(f"{name}.bias")
        return self.node("Gemm", [rows, weight, bias], transB=1)

    def node(self, operator: str, inputs: Sequence[str], *, output: str = "", domain: str = "",
             **attributes: float) -> str:
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
        positions = self.node(
            "Slice", [self.weight("embeddings.position_embeddings.weight"), first, length, first])
        segment = self.node(
            "Slice", [self.weight("embeddings.token_type_embeddings.weight"), first, second, first])
        added = self.node("Add", [words, self.node("Add", [positions, segment])])
        return self._normalize(self.node("Reshape", [added, self._rows()]), "embeddings.LayerNorm")

    def _layer(self, name: str, hidden: str, batch: str, mask: str) -> str:
        heads = [self.node("Reshape", [self.dense(hidden, f"{name}.attention.self.{part}"), batch])
                 for part in ("query", "key", "value")]
        attended = self.node("MultiHeadAttention", [*heads, "", mask], domain=CONTRIBUTED, num_heads=HEADS)
        mixed = self.dense(self.node("Reshape", [attended, self._rows()]), f"{name}.attention.output.dense")
        hidden = self._normalize(self.node("Add", [mixed, hidden]), f"{name}.attention.output.LayerNorm")
        widened = self.node("Gelu", [self.dense(hidden, f"{name}.intermediate.dense")], domain=CONTRIBUTED)
        narrowed = self.dense(widened, f"{name}.output.dense")
        return self._normalize(self.node("Add", [narrowed, hidden]), f"{name}.output.LayerNorm")

    def pool(self, hidden: str) -> None:
        """Adds what leads from the last layer (texts, tokens, 384) to the output."""
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
