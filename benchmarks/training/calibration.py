"""Fits the calibration of changes (`agentcore/memory/deriving/relating.py`) on the held-out streams.

Logistic regression over the log odds of the classifier and the excess of the cosine, with the pairs of each
message and its nearest earlier ones of the same speaker. Takes minutes, without torch.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agentcore import assembly
from agentcore.memory.deriving.relating import COMPARED, MIN_SIMILARITY
from agentcore.memory.encoding import embedding_text
from agentcore.memory.query_samples import query_samples
from agentcore.memory.ranking.calibration import OffTopicPrompts
from benchmarks.logistic import Floats, logistic_regression
from benchmarks.service import bench_settings
from benchmarks.training.held_out import HELD_OUT, STREAMS


async def features() -> tuple[Floats, NDArray[np.bool_], OffTopicPrompts]:
    """Returns log odds and excess of each pair, (n, 2), whether it is a change, (n,), and the prompts."""
    with tempfile.TemporaryDirectory() as home:
        settings = bench_settings(Path(home))
        embedder, classifier = assembly.make_embedder(settings), assembly.make_relations(settings)
        assert embedder is not None
        assert classifier is not None
        await embedder.open()
        samples = await query_samples(embedder, Path(home))
        assert samples is not None
        rows, labels = [], []
        for messages in _streams().values():
            texts = [embedding_text(each["text"], each["speaker"]) for each in messages]
            vectors = await embedder.embed(texts, "document")
            pairs = [pair for number in range(len(messages)) for pair in _nearest(messages, vectors, number)]
            scores = await classifier.changes([(texts[old], texts[new]) for old, new in pairs])
            for (old, new), score in zip(pairs, np.clip(scores, 1e-4, 1 - 1e-4), strict=True):
                excess = (vectors[old] @ vectors[new] - samples.off_topic.typical) / samples.off_topic.spread
                rows.append((np.log(score / (1 - score)), excess))
                labels.append(messages[old]["id"] in messages[new]["changes"])
        return np.array(rows, np.float64), np.array(labels), samples.off_topic


def _streams() -> dict[str, list[dict[str, Any]]]:
    found = defaultdict(list)
    for path in sorted(STREAMS.glob("*.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if row["type"] == "message" and row["stream"] in HELD_OUT:
                found[row["stream"]].append(row)
    return found


def _nearest(messages: list[dict[str, Any]], vectors: Any, number: int) -> list[tuple[int, int]]:
    speaker = messages[number]["speaker"]
    near = [
        (float(vectors[old] @ vectors[number]), old) for old in range(number) if messages[old]["speaker"] == speaker
    ]
    best = sorted(near, reverse=True)[:COMPARED]
    return [(old, number) for cosine, old in best if cosine >= MIN_SIMILARITY]


def main() -> None:
    """Prints the constants, and the precision of the pairs from a probability on."""
    rows, labels, prompts = asyncio.run(features())
    bias, *weights = logistic_regression(rows, labels)
    print(f"{len(rows)} pairs, {labels.mean():.3f} changes")
    print(f"typical {prompts.typical:.3f}, spread {prompts.spread:.4f}")
    print("log odds {:.3f}, excess {:.3f}, bias {:.3f}".format(*weights, bias))
    probabilities = 1 / (1 + np.exp(-(rows @ np.array(weights) + bias)))
    for least in (0.05, 0.2, 0.4, 0.6):
        kept = probabilities >= least
        print(
            f"from {least}: {kept.sum()} pairs, precision {labels[kept].mean():.2f}, "
            f"recall {labels[kept].sum() / labels.sum():.2f}"
        )


if __name__ == "__main__":
    main()
