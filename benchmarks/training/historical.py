"""Fits the discriminant of historical queries for the local model, to all questions of the streams.

Takes a minute. Writes `agentcore/memory/historical_local.npz`. For other models the service fits it to a
sample at its start.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from agentcore import assembly
from agentcore.memory import query_samples
from agentcore.memory.ranking.calibration import HistoricalQueries, Labels, Vectors
from benchmarks.service import bench_settings
from benchmarks.training.held_out import HELD_OUT, STREAMS

BATCH = 64
# Less than for the small sample.
SHRINKAGE = 0.1
TO = Path(query_samples.__file__).with_name(query_samples.FITTED)


def questions(*, held_out: bool) -> Iterator[tuple[str, bool]]:
    """Yields the questions of the streams, and whether each is about an earlier state."""
    for path in sorted(STREAMS.glob("*.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if row["type"] == "question" and (row["stream"] in HELD_OUT) == held_out:
                yield row["text"], row["kind"] == "past"


async def embedded(texts: list[str]) -> tuple[str, Vectors]:
    """Returns the name of the local model, and the vectors of the queries."""
    with tempfile.TemporaryDirectory() as home:
        embedder = assembly.make_embedder(bench_settings(Path(home)))
        assert embedder is not None
        await embedder.open()
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        return embedder.model, np.vstack([await embedder.embed(batch, "query") for batch in batches])


def main() -> None:
    """Fits, judges on the held-out streams, and writes the discriminant."""
    learned, held_out = ([*questions(held_out=each)] for each in (False, True))
    model, vectors = asyncio.run(embedded([text for text, _ in (*learned, *held_out)]))
    labels: Labels = np.array([historical for _, historical in (*learned, *held_out)])
    count = len(learned)
    fitted = HistoricalQueries.of(vectors[:count], labels[:count], SHRINKAGE)
    assert fitted is not None
    scores, historical = fitted.scores(vectors[count:]), labels[count:]
    above = (scores[historical][:, None] > scores[~historical][None]).mean()
    print(f"{count} queries, {labels[:count].sum()} historical; held out: {len(scores)}, AUC {above:.3f}")
    np.savez(TO, model=model, weights=fitted.weights.astype(np.float32), bias=fitted.bias)


if __name__ == "__main__":
    main()
