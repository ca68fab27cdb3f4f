"""Writes the largest value of each channel that enters a dense layer: `python -m benchmarks.training.e5_ranges`.

Over the messages of the six learning lives, as the default embedder quantizes them without such ranges. Its 8-bit
activations use them. Compares both graphs with the published weights: cosines of 8-bit and exact vectors.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from agentcore.providers import e5
from agentcore.providers.bert_graphs import E5Graph
from agentcore.providers.e5 import Optimization, open_session, weight_layout
from agentcore.providers.e5_file import HIDDEN, E5File, dequantized
from agentcore.providers.local_models import E5

LIVES = Path(__file__).resolve().parent.parent / "data" / "lives" / "learning"
TEXTS, SEED = 240, 20_261_127


class _Recorded(E5Graph):
    """The graph whose inputs of dense layers are outputs; in float32 if `exact`."""

    def __init__(self, *arguments: Any, exact: bool = False) -> None:
        super().__init__(*arguments)
        self.inputs: dict[str, str] = {}
        self._exact = exact

    def dense(self, rows: str, name: str) -> str:
        channels, weights = self.ranges_and_weights(name)
        self.inputs[channels] = rows
        if not self._exact:
            return super().dense(rows, name)
        return self.node("Gemm", [rows, self.constant(f"{name}.exact", weights), self.weight(f"{name}.bias")], transB=1)


class Model:
    """A graph with its inputs of dense layers by name."""

    def __init__(self, ranges: bytes, *, exact: bool = False) -> None:
        directory = E5.verified_directory()
        graph = _Recorded(directory / e5.WEIGHTS, ranges, weight_layout(), e5.shipped(e5.ADAPTER), exact=exact)
        model = graph.model()
        for name in graph.inputs.values():
            model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))
        self.names = list(graph.inputs)
        self._words = E5File(directory / e5.WEIGHTS).blocks("emb.word", HIDDEN)
        self._session = open_session(model.SerializeToString(), Optimization.ORT_ENABLE_BASIC)

    def run(self, ids: Any) -> list[Any]:
        """Returns the vector, then the inputs of the dense layers."""
        words = dequantized(self._words[ids])[None]
        return list(self._session.run(None, {"words": words, "attention_mask": np.ones((1, len(ids)), np.int64)}))


def texts() -> list[str]:
    """Returns TEXTS random messages."""
    lines = [line for path in sorted(LIVES.glob("*.jsonl")) for line in path.read_text(encoding="utf-8").splitlines()]
    found = [each["text"] for each in map(json.loads, lines) if each["type"] == "message"]
    return random.Random(SEED).sample(found, TEXTS)


def main() -> None:
    """Writes the ranges of the first two thirds of the texts; prints the cosines of the others."""
    tokenizer = e5.UnigramTokenizer(E5File(E5.verified_directory() / e5.WEIGHTS).vocabulary)
    tokens = [np.array(tokenizer.encode(f"passage: {text}"), np.int64) for text in texts()]
    measured, others = tokens[: TEXTS * 2 // 3], tokens[TEXTS * 2 // 3 :]
    plain = Model(b"")
    largest: dict[str, Any] = {}
    for ids in measured:
        for name, rows in zip(plain.names, plain.run(ids)[1:], strict=True):
            largest[name] = np.maximum(largest.get(name, 1e-3), np.abs(rows.reshape(-1, rows.shape[-1])).max(axis=0))
    place = Path(e5.__file__).with_name(e5.RANGES)
    np.savez_compressed(place, **{name: values.astype(np.float16) for name, values in largest.items()})
    exact, mean = Model(b"", exact=True), e5._mean()
    for name, model in (("without ranges", plain), ("with ranges", Model(place.read_bytes()))):
        pairs = [(model.run(ids)[0][0] - mean, exact.run(ids)[0][0] - mean) for ids in others]
        cosines = [float(one @ other / np.linalg.norm(one) / np.linalg.norm(other)) for one, other in pairs]
        print(f"{name}: mean cosine {np.mean(cosines):.5f}, least {min(cosines):.5f}")


if __name__ == "__main__":
    main()
