"""The cross-encoder in onnxruntime: truncation of pairs, loading, and errors that prevent a start."""

from __future__ import annotations

import asyncio
import math
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentcore.errors import ConfigurationError, DependencyUnavailable
from agentcore.memory.llm import RerankerOptions
from agentcore.providers.cross_encoder import MOST_THREADS, CrossEncoder
from tests.fixtures.cross_encoders import Kind, write_cross_encoder

QUERY = "when does the green ferry leave"
TEXTS = [
    "Nobody knows.",
    "The green ferry does leave at seven.",
    "A ferry is a boat.",
    "the ferry does leave when the tide allows, and the green one too",
    "",
]


def sigmoid(logit: float) -> float:
    return 1 / (1 + math.exp(-logit))


def shared_words(query: str, text: str) -> int:
    """Counts pairs of equal words, each occurrence with every other."""
    plain = text.lower().replace(",", " ,").replace(".", " .").split()
    return sum(word == other for word in query.split() for other in plain)


@asynccontextmanager
async def loaded(directory: Path) -> AsyncIterator[CrossEncoder]:
    encoder = CrossEncoder(RerankerOptions(directory=directory))
    await encoder.open()
    try:
        yield encoder
    finally:
        await encoder.close()


@pytest.mark.parametrize("kind", ["one", "two", "no_types", "int32"])
async def test_a_texts_relevance_is_what_the_graph_makes_of_the_pair(tmp_path: Path, kind: Kind) -> None:
    async with loaded(write_cross_encoder(tmp_path / "shared-words", [QUERY, *TEXTS], kind)) as encoder:
        scores = await encoder.score(QUERY, TEXTS)
        assert encoder.model == "cross_encoder/shared-words"
    assert scores == pytest.approx([sigmoid(shared_words(QUERY, text) - 2) for text in TEXTS], abs=1e-6)
    assert max(range(len(TEXTS)), key=scores.__getitem__) == 3


async def test_a_score_does_not_depend_on_what_else_is_scored(tmp_path: Path) -> None:
    texts = [f"{'the green ferry ' * (n % 7)}leaves {'at last ' * (n % 50)}" for n in range(60)]
    async with loaded(write_cross_encoder(tmp_path, [QUERY, *texts])) as encoder:
        together = await encoder.score(QUERY, texts)
        alone = [(await encoder.score(QUERY, [text]))[0] for text in texts]
    assert together == pytest.approx(alone, abs=1e-6)
    assert len(set(together)) > 3


async def test_what_does_not_fit_the_model_is_cut_and_the_longer_one_first(tmp_path: Path) -> None:
    directory = write_cross_encoder(tmp_path, ["early late filler"], max_tokens=16)
    async with loaded(directory) as encoder:
        scores = await encoder.score(
            "early late", ["early late", "late" + " filler" * 9_000, "filler " * 9_000 + "early late"]
        )
    # [CLS], two [SEP] and the query leave eleven positions for a text.
    assert scores == pytest.approx([sigmoid(0), sigmoid(-1), sigmoid(-2)], abs=1e-6)


async def test_a_graph_may_lie_where_exporters_put_it(tmp_path: Path) -> None:
    directory = write_cross_encoder(tmp_path, [QUERY])
    (directory / "onnx").mkdir()
    (directory / "model.onnx").rename(directory / "onnx" / "model.onnx")
    async with loaded(directory) as encoder:
        assert await encoder.score("green", ["green"]) == pytest.approx([sigmoid(-1)])


@pytest.mark.parametrize("kind", ["three", "pixels"])
async def test_a_graph_that_is_no_cross_encoder_stops_the_start(tmp_path: Path, kind: Kind) -> None:
    encoder = CrossEncoder(RerankerOptions(directory=write_cross_encoder(tmp_path, [QUERY], kind)))
    with pytest.raises(ConfigurationError, match=r"RERANKER_PATH=.* is no cross-encoder"):
        await encoder.open()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("model.onnx", None, "has no model.onnx"),
        ("model.onnx", b"not a graph", "has a model.onnx that onnxruntime cannot load"),
        ("tokenizer.json", None, "has no tokenizer.json"),
        ("tokenizer.json", b"{}", "has a tokenizer.json that cannot be read"),
    ],
)
async def test_a_directory_with_something_wrong_stops_the_start(
    tmp_path: Path, name: str, content: bytes | None, said: str
) -> None:
    directory = write_cross_encoder(tmp_path, [QUERY])
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_bytes(content)
    with pytest.raises(ConfigurationError, match=said):
        await CrossEncoder(RerankerOptions(directory=directory)).open()


async def test_a_directory_that_is_not_there_is_told_with_what_it_should_hold(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"has no model.onnx and no tokenizer.json: it must be"):
        await CrossEncoder(RerankerOptions(directory=tmp_path / "nowhere")).open()
    with pytest.raises(ConfigurationError, match="needs RERANKER_PATH"):
        CrossEncoder(RerankerOptions())


@pytest.mark.parametrize("told", [b"{broken", b"[]", b'{"max_position_embeddings": "many"}'])
async def test_a_file_that_tells_no_length_is_passed_over(tmp_path: Path, told: bytes) -> None:
    directory = write_cross_encoder(tmp_path, [QUERY])
    (directory / "config.json").write_bytes(told)
    async with loaded(directory) as encoder:
        assert await encoder.score("green", ["green"]) == pytest.approx([sigmoid(-1)])


class Counting:
    """A session that signals its first run and counts all runs."""

    def __init__(self, session: Any) -> None:
        self.session, self.runs, self.begun = session, 0, asyncio.Event()
        self.loop = asyncio.get_running_loop()

    def run(self, *arguments: Any) -> Any:
        self.runs += 1
        self.loop.call_soon_threadsafe(self.begun.set)
        return self.session.run(*arguments)


async def test_broken_off_it_begins_nothing_more_and_can_be_asked_again(tmp_path: Path) -> None:
    texts = ["the green ferry " * 60] * 200
    async with loaded(write_cross_encoder(tmp_path, [QUERY])) as encoder:
        assert encoder._model is not None
        counting = Counting(encoder._model.session)
        encoder._model = replace(encoder._model, session=counting)
        asked = asyncio.create_task(encoder.score(QUERY, texts))
        await counting.begun.wait()
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        begun = counting.runs
        assert await encoder.score(QUERY, ["green"]) == pytest.approx([sigmoid(-1)])
        assert begun <= counting.runs - 1 <= 2 * MOST_THREADS


async def test_what_the_graph_fails_at_while_it_runs_is_an_unavailable_reranker(tmp_path: Path) -> None:
    async with loaded(write_cross_encoder(tmp_path, [QUERY])) as encoder:
        assert encoder._model is not None
        encoder._model = replace(encoder._model, inputs=dict.fromkeys(encoder._model.inputs, np.float32))
        with pytest.raises(DependencyUnavailable, match="cannot read these texts"):
            await encoder.score(QUERY, TEXTS)


async def test_closed_it_is_unavailable(tmp_path: Path) -> None:
    async with loaded(write_cross_encoder(tmp_path, [QUERY])) as encoder:
        pass
    with pytest.raises(DependencyUnavailable, match="not loaded"):
        await encoder.score(QUERY, TEXTS)


READS_ONCE = """
import asyncio, pathlib, sys
from agentcore.memory.llm import RerankerOptions
from agentcore.providers.cross_encoder import CrossEncoder
async def read():
    encoder = CrossEncoder(RerankerOptions(directory=pathlib.Path(sys.argv[1])))
    await encoder.open()
    await encoder.score("a private question", ["a private thought"])
    await encoder.close()
asyncio.run(read())
"""
REPORTS_NOTHING = {"ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "CI", "TF_BUILD", "GITHUB_ACTIONS"}


def test_the_library_below_leaves_no_trace_to_report(tmp_path: Path) -> None:
    directory, place = write_cross_encoder(tmp_path / "model", [QUERY]), tmp_path / "place"
    place.mkdir()
    environment = {name: value for name, value in os.environ.items() if name not in REPORTS_NOTHING}
    places = dict.fromkeys(("TMPDIR", "HOME", "XDG_CACHE_HOME"), str(place))
    command = [sys.executable, "-c", READS_ONCE, str(directory)]
    subprocess.run(command, env={**environment, **places}, check=True)
    assert list(place.iterdir()) == []
