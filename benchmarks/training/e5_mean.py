"""Writes the mean vector that the default embedder subtracts: `python -m benchmarks.training.e5_mean`.

The mean of the passages of benchmarks/data/talks.jsonl, each as "speaker: text". A new mean makes vectors
incomparable with stored ones: rename the model in agentcore/providers/local_models.py then.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from agentcore.memory.encoding import embedding_text
from agentcore.providers import e5
from agentcore.providers.e5_file import HIDDEN
from agentcore.providers.local_models import E5

TALKS = Path(__file__).resolve().parent.parent / "data" / "talks.jsonl"
DECIMALS = 7


def passages() -> list[str]:
    """Returns every turn of the set as it would be embedded."""
    talks = [json.loads(line) for line in TALKS.read_text(encoding="utf-8").splitlines()]
    return [embedding_text(turn["text"], turn.get("speaker")) for talk in talks for turn in talk["memories"]]


def main() -> None:
    """Embeds one text at a time, so that the result is independent of batches, and writes the mean."""
    directory = E5.verified_directory()
    with tempfile.TemporaryDirectory() as scratch:
        graph = e5.e5_graph(e5.GRAPH_WRITER, directory, Path(scratch))
    network = e5.E5Network(directory, graph, np.zeros(HIDDEN, np.float32))
    texts = passages()
    total = sum(network.vectors([network.tokens(text, "document")])[0].astype(float) for text in texts)
    mean = [round(float(each), DECIMALS) for each in np.asarray(total) / len(texts)]
    place = Path(e5.__file__).with_name(e5.MEAN)
    place.write_text(
        json.dumps({"of": "passages of talks.jsonl", "texts": len(texts), "mean": mean}) + "\n", encoding="utf-8"
    )
    print(f"{len(texts)} passages, length of the mean {np.linalg.norm(mean):.4f}: {place.name}")


if __name__ == "__main__":
    main()
