"""Fits the detectors of historical queries, of queries about a current state and about the assistant.

For the local model. The first is trained on all questions of the streams; the second on those about changed
facts, with those about the past, about other things, and the questions of `talks` and `ac2`, which are about
events; the third on `benchmarks/data/assistant_queries.jsonl`, with the questions of the streams as negatives.
Takes some minutes. Writes `agentcore/memory/detectors_local.npz`. For other models the service fits the first two
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
from benchmarks.labelled import conversations
from benchmarks.service import bench_settings
from benchmarks.training.held_out import HELD_OUT, STREAMS

BATCH = 64
# Less than for the small samples.
SHRINKAGE = 0.1
PACKAGE = Path(query_samples.__file__).parent
# Every fifth pair of a query about the assistant and its counterpart is held out, and every fifth event.
HELD_OUT_PAIR = 5
DATA = STREAMS.parent
EVENTS = (DATA / "talks.jsonl", DATA / "ac2.jsonl.gz")


def questions(*, held_out: bool) -> Iterator[tuple[str, str]]:
    """Yields the questions of the streams, and the kind of each."""
    for path in sorted(STREAMS.glob("*.jsonl")):
        for row in map(json.loads, path.read_text(encoding="utf-8").splitlines()):
            if row["type"] == "question" and (row["stream"] in HELD_OUT) == held_out:
                yield row["text"], row["kind"]


def assistant_queries(*, held_out: bool) -> Iterator[tuple[str, bool]]:
    """Yields the sample queries about the assistant and their counterparts, with their labels."""
    rows = (DATA / "assistant_queries.jsonl").read_text(encoding="utf-8").splitlines()
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


def _past(held_out: bool) -> Iterator[tuple[str, bool]]:
    yield from ((text, kind == "past") for text, kind in questions(held_out=held_out))


def _current(held_out: bool) -> Iterator[tuple[str, bool]]:
    """Yields questions, and whether each is about a current state.

    Questions about unchanged facts are left out: they are phrased like those about changed ones.
    """
    known = {"changed", "past", "other"}
    yield from ((text, kind == "changed") for text, kind in questions(held_out=held_out) if kind in known)
    events = [each["text"] for path in EVENTS for talk in conversations(path) for each in talk.answerable()]
    yield from ((text, False) for number, text in enumerate(events) if (number % HELD_OUT_PAIR == 0) == held_out)


def _of_assistant(held_out: bool) -> Iterator[tuple[str, bool]]:
    yield from assistant_queries(held_out=held_out)
    yield from ((text, False) for text, _ in questions(held_out=held_out))


def main() -> None:
    """Fits all, judges them on the held-out queries, and writes them."""
    past, current, of_assistant = (
        [[*each(held_out)] for held_out in (False, True)] for each in (_past, _current, _of_assistant)
    )
    model, historical = fitted("historical", *past)
    _, about_state = fitted("current", *current)
    _, about_assistant = fitted("about_assistant", *of_assistant)
    np.savez(
        PACKAGE / query_samples.FITTED,
        model=np.str_(model),
        historical_weights=historical.weights.astype(np.float32),
        historical_bias=historical.bias,
        current_weights=about_state.weights.astype(np.float32),
        current_bias=about_state.bias,
        about_assistant_weights=about_assistant.weights.astype(np.float32),
        about_assistant_bias=about_assistant.bias,
    )


if __name__ == "__main__":
    main()
