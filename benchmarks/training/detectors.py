"""Fits the detectors of historical queries and of queries about the assistant, for the local model.

The first on all questions of the streams, the second on `assistant_queries.jsonl` with these questions as
negatives. Takes a minute. Writes `agentcore/memory/detectors_local.npz`. For other models the service fits them
to samples at its start.
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
from agentcore.memory.ranking.calibration import Labels, QueryDetector, Vectors
from benchmarks.service import bench_settings
from benchmarks.training.held_out import HELD_OUT, STREAMS

BATCH = 64
# Less than for the small samples.
SHRINKAGE = 0.1
PACKAGE = Path(query_samples.__file__).parent
# Every fifth pair of a query about the assistant and its counterpart is held out.
HELD_OUT_PAIR = 5


def questions(*, held_out: bool) -> Iterator[tuple[str, bool]]:
    """Yields the questions of the streams, and whether each is about an earlier state."""
    for path in sorted(STREAMS.glob("*.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if row["type"] == "question" and (row["stream"] in HELD_OUT) == held_out:
                yield row["text"], row["kind"] == "past"


def assistant_queries(*, held_out: bool) -> Iterator[tuple[str, bool]]:
    """Yields the sample queries about the assistant and their counterparts, with their labels."""
    rows = (PACKAGE / query_samples.ABOUT_ASSISTANT).read_text(encoding="utf-8").splitlines()
    for number, row in enumerate(map(json.loads, rows)):
        if (number // 2 % HELD_OUT_PAIR == 0) == held_out:
            yield row["text"], row["about_assistant"]


async def embedded(texts: list[str]) -> tuple[str, Vectors]:
    """Returns the name of the local model, and the vectors of the queries."""
    with tempfile.TemporaryDirectory() as home:
        embedder = assembly.make_embedder(bench_settings(Path(home)))
        assert embedder is not None
        await embedder.open()
        batches = [texts[start : start + BATCH] for start in range(0, len(texts), BATCH)]
        return embedder.model, np.vstack([await embedder.embed(batch, "query") for batch in batches])


def fitted(name: str, learned: list[tuple[str, bool]], held_out: list[tuple[str, bool]]) -> tuple[str, QueryDetector]:
    """Returns the model and a detector; prints how it separates the held-out queries."""
    model, vectors = asyncio.run(embedded([text for text, _ in (*learned, *held_out)]))
    labels: Labels = np.array([label for _, label in (*learned, *held_out)])
    count = len(learned)
    detector = QueryDetector.of(vectors[:count], labels[:count], SHRINKAGE)
    assert detector is not None
    scores, truth = detector.scores(vectors[count:]), labels[count:]
    above = (scores[truth][:, None] > scores[~truth][None]).mean()
    likely = scores > 0
    print(
        f"{name}: {count} queries, {labels[:count].sum()} of this kind; held out: {len(scores)}, AUC {above:.3f}, "
        f"detected {(likely & truth).sum()} of {truth.sum()}, others {(likely & ~truth).sum()} of {(~truth).sum()}"
    )
    return model, detector


def main() -> None:
    """Fits both, judges them on the held-out queries, and writes them."""
    learned, held_out = ([*questions(held_out=each)] for each in (False, True))
    model, historical = fitted("historical", learned, held_out)
    of_assistant, of_assistant_held_out = (
        [*assistant_queries(held_out=each), *((text, False) for text, _ in others)]
        for each, others in ((False, learned), (True, held_out))
    )
    _, about_assistant = fitted("about_assistant", of_assistant, of_assistant_held_out)
    np.savez(
        PACKAGE / query_samples.FITTED,
        model=np.str_(model),
        historical_weights=historical.weights.astype(np.float32),
        historical_bias=historical.bias,
        about_assistant_weights=about_assistant.weights.astype(np.float32),
        about_assistant_bias=about_assistant.bias,
    )


if __name__ == "__main__":
    main()
