"""Writes all-MiniLM-L6-v2 as an ONNX graph: six BERT layers, mean pooling, unit length.

The graph holds no weights. It points into the published safetensors file, which onnxruntime maps into memory,
so that nothing is copied to disk and rows of the vocabulary that no text uses take no memory.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from onnx import ModelProto, NodeProto, TensorProto, helper

LAYERS = 6
HEADS = 12
HIDDEN = 384
EPSILON = 1e-12
CONTRIBUTED = "com.microsoft"
OPSETS = {"": 17, CONTRIBUTED: 1}
IR_VERSION = 9


def write_graph(weights: Path) -> bytes:
    """The serialised graph over this safetensors file; onnxruntime must be told the directory it lies in.

    Inputs `input_ids` and `attention_mask`, int64 (texts, tokens); output `embedding`, float32 (texts, 384).
    """
    return bytes(_Writer(weights).model().SerializeToString())


class _Writer:
    def __init__(self, weights: Path) -> None:
        self._file_name = weights.name
        with weights.open("rb") as file:
            header_bytes = int.from_bytes(file.read(8), "little")
            self._entries = json.loads(file.read(header_bytes))
        self._data_start = 8 + header_bytes
        self._initializers: dict[str, TensorProto] = {}
        self._nodes: list[NodeProto] = []

    def model(self) -> ModelProto:
        hidden = self._embed_tokens()
        width = self._integers("width", HIDDEN)
        batch = self._node("Concat", [self._node("Shape", ["input_ids"]), width], axis=0)
        mask = self._node("Cast", ["attention_mask"], to=TensorProto.INT32)
        for layer in range(LAYERS):
            hidden = self._layer(f"encoder.layer.{layer}", hidden, batch, mask)
        self._pool(self._node("Reshape", [hidden, batch]))
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
                  for name in ("input_ids", "attention_mask")]
        output = helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["texts", HIDDEN])
        weights = list(self._initializers.values())
        graph = helper.make_graph(self._nodes, "all-MiniLM-L6-v2", inputs, [output], weights)
        opsets = [helper.make_opsetid(domain, version) for domain, version in OPSETS.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)

    def _embed_tokens(self) -> str:
        words = self._node("Gather", [self._weight("embeddings.word_embeddings.weight"), "input_ids"])
        first, second = self._integers("first", 0), self._integers("second", 1)
        length = self._node("Shape", ["input_ids"], start=1, end=2)
        positions = self._node(
            "Slice", [self._weight("embeddings.position_embeddings.weight"), first, length, first])
        segment = self._node(
            "Slice", [self._weight("embeddings.token_type_embeddings.weight"), first, second, first])
        added = self._node("Add", [words, self._node("Add", [positions, segment])])
        return self._node("Reshape", [self._normalise(added, "embeddings.LayerNorm"), self._rows()])

    def _layer(self, name: str, hidden: str, batch: str, mask: str) -> str:
        heads = [self._node("Reshape", [self._dense(hidden, f"{name}.attention.self.{part}"), batch])
                 for part in ("query", "key", "value")]
        attended = self._node("MultiHeadAttention", [*heads, "", mask], domain=CONTRIBUTED, num_heads=HEADS)
        mixed = self._dense(self._node("Reshape", [attended, self._rows()]), f"{name}.attention.output.dense")
        hidden = self._normalise(self._node("Add", [mixed, hidden]), f"{name}.attention.output.LayerNorm")
        widened = self._node("Gelu", [self._dense(hidden, f"{name}.intermediate.dense")], domain=CONTRIBUTED)
        narrowed = self._dense(widened, f"{name}.output.dense")
        return self._normalise(self._node("Add", [narrowed, hidden]), f"{name}.output.LayerNorm")

    def _pool(self, hidden: str) -> None:
        second = self._integers("second", 1)
        mask = self._node("Unsqueeze", [self._node("Cast", ["attention_mask"], to=TensorProto.FLOAT), second])
        total = self._node("Squeeze", [self._node("MatMul", [mask, hidden]), second])
        self._node("LpNormalization", [total], output="embedding", axis=-1, p=2)

    def _dense(self, rows: str, name: str) -> str:
        weight, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._node("Gemm", [rows, weight, bias], transB=1)

    def _normalise(self, rows: str, name: str) -> str:
        # Not the fused SkipLayerNormalization: onnxruntime's took eight times as long on the processor.
        scale, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._node("LayerNormalization", [rows, scale, bias], axis=-1, epsilon=EPSILON)

    def _node(self, operator: str, inputs: Sequence[str], *, output: str = "", domain: str = "",
              **attributes: float) -> str:
        output = output or f"{operator}.{len(self._nodes)}"
        node = helper.make_node(operator, inputs, [output], domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self._nodes.append(node)
        return output

    def _rows(self) -> str:
        return self._integers("rows", -1, HIDDEN)

    def _integers(self, name: str, *values: int) -> str:
        self._initializers[name] = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
        return name

    def _weight(self, name: str) -> str:
        entry = self._entries[name]
        start, end = entry["data_offsets"]
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=entry["shape"],
                             data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self._file_name), ("offset", self._data_start + start),
                           ("length", end - start)):
            tensor.external_data.add(key=key, value=str(value))
        self._initializers[name] = tensor
        return name
