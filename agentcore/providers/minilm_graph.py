"""Writes all-MiniLM-L6-v2 as an ONNX graph.

The graph contains no weights. It refers to the published safetensors file, which onnxruntime maps into
memory: nothing is copied to disk, and rows of the vocabulary that no text uses take no memory.
"""

from __future__ import annotations

import json
from pathlib import Path

from onnx import TensorProto, ValueInfoProto, helper

from agentcore.providers.bert_graph import BertGraph


def write_graph(weights: Path) -> bytes:
    """Returns the serialized graph over this safetensors file; onnxruntime must be told its directory.

    Inputs `input_ids` and `attention_mask`, int64 (texts, tokens); output `embedding`, float32 (texts, 384).
    """
    return bytes(_MiniLmGraph(weights).model().SerializeToString())


class _MiniLmGraph(BertGraph):
    name = "all-MiniLM-L6-v2"
    layers = 6

    def __init__(self, weights: Path) -> None:
        super().__init__()
        self._file_name = weights.name
        with weights.open("rb") as file:
            header_bytes = int.from_bytes(file.read(8), "little")
            self._entries = json.loads(file.read(header_bytes))
        self._data_start = 8 + header_bytes

    def words(self) -> tuple[ValueInfoProto, str]:
        input_ids = helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["texts", "tokens"])
        return input_ids, self.node(
            "Gather", [self.weight("embeddings.word_embeddings.weight"), "input_ids"])

    def weight(self, name: str) -> str:
        entry = self._entries[name]
        start, end = entry["data_offsets"]
        tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=entry["shape"],
                             data_location=TensorProto.EXTERNAL)
        for key, value in (("location", self._file_name), ("offset", self._data_start + start),
                           ("length", end - start)):
            tensor.external_data.add(key=key, value=str(value))
        self.initializers[name] = tensor
        return name
