"""A cross-encoder in onnxruntime, from a directory with an ONNX file of sequence classification and its tokenizer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray
from tokenizers import Encoding, Tokenizer

from agentcore.errors import ConfigurationError, DependencyUnavailable
from agentcore.memory.llm import RerankerOptions
from agentcore.providers.local_models import TOKENIZER, graph_in, missing_in
from agentcore.providers.onnx_models import ONNX_FAILURES, Optimization, Session, chunks, cores, open_session, padded

# Keys of the model's maximum input length, by file.
LENGTHS = {"config.json": "max_position_embeddings", "tokenizer_config.json": "model_max_length"}
MAX_TOKENS = 512
# As fast per token as larger chunks.
CHUNK_TOKENS = 256
MOST_THREADS = 8
# Of a query and of a text: far more than MAX_TOKENS tokens of ordinary text.
HEAD_CHARACTERS = 8_192
PADDING = ("[PAD]", "<pad>")
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
NUMBERS: Mapping[str, DTypeLike] = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
UNFIT: tuple[type[Exception], ...] = (*ONNX_FAILURES, ValueError)

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


@dataclass(frozen=True)
class _Model:
    """Session and tokenizer are thread-safe."""

    tokenizer: Tokenizer
    padding_id: int
    session: Session
    inputs: Mapping[str, DTypeLike]
    threads: ThreadPoolExecutor


class CrossEncoder:
    """Scores pairs in its own threads, one core each, a chunk at a time."""

    def __init__(self, options: RerankerOptions) -> None:
        if options.directory is None:
            raise ConfigurationError(["RERANKER=cross_encoder needs RERANKER_PATH."])
        self._directory = options.directory
        self.model = f"cross_encoder/{options.model_name or self._directory.name}"
        self._model: _Model | None = None

    async def open(self) -> None:
        """Raises ConfigurationError if the model is missing or invalid."""
        if self._model is None:
            self._model = await asyncio.to_thread(_load, self._directory)

    async def close(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            await asyncio.to_thread(model.threads.shutdown)

    async def score(self, query: str, texts: Sequence[str]) -> Sequence[float]:
        """Returns relevance scores, 0 to 1. Truncates the longer text of a pair until both fit the model."""
        if not texts:
            return []
        pairs = await self._run(_encoded, query, texts)
        scores = np.empty(len(texts), np.float64)
        waiting = chunks([len(pair.ids) for pair in pairs], CHUNK_TOKENS)

        async def work_off() -> None:
            for chunk in waiting:
                scores[chunk] = await self._run(_inferred, [pairs[index] for index in chunk])

        await asyncio.gather(*(work_off() for _ in range(_thread_count())))
        return [float(score) for score in scores]

    async def _run(
        self,
        work: Callable[Concatenate[_Model, Arguments], Result],
        *arguments: Arguments.args,
        **named: Arguments.kwargs,
    ) -> Result:
        model = self._model
        if model is None:
            raise DependencyUnavailable("The cross-encoder is not loaded.")
        call = partial(work, model, *arguments, **named)
        try:
            return await asyncio.get_running_loop().run_in_executor(model.threads, call)
        except ONNX_FAILURES as cause:
            raise DependencyUnavailable("The cross-encoder cannot read these texts.") from cause


def _thread_count() -> int:
    return min(cores(), MOST_THREADS)


def _encoded(model: _Model, query: str, texts: Sequence[str]) -> list[Encoding]:
    head = query[:HEAD_CHARACTERS]
    return model.tokenizer.encode_batch([(head, text[:HEAD_CHARACTERS]) for text in texts])


def _inferred(model: _Model, pairs: Sequence[Encoding]) -> NDArray[np.float64]:
    """Returns each pair's relevance: the sigmoid of its logit, or the second of two by softmax. Raises ValueError."""
    input_ids, mask = padded([pair.ids for pair in pairs], model.padding_id)
    token_types, _ = padded([pair.type_ids for pair in pairs])
    given = {"input_ids": input_ids, "attention_mask": mask, "token_type_ids": token_types}
    feed = {name: given[name].astype(kind) for name, kind in model.inputs.items()}
    logits = np.asarray(model.session.run(None, feed)[0], np.float64).reshape(len(pairs), -1)
    if logits.shape[1] not in (1, 2):
        raise ValueError(f"{logits.shape[1]} logits a pair")
    # With two logits, the softmax of the second is the sigmoid of their difference.
    margin = logits[:, -1] if logits.shape[1] == 1 else logits[:, 1] - logits[:, 0]
    shares: NDArray[np.float64] = 0.5 * (1.0 + np.tanh(0.5 * margin))
    return shares


# --- loading -----------------------------------------------------------------------------------------------


def _load(directory: Path) -> _Model:
    graph, missing = graph_in(directory), missing_in(directory)
    if graph is None or missing:
        raise _wrong(directory, f"has no {' and no '.join(missing)}")
    tokenizer, padding_id = _tokenizer(directory)
    try:
        session = open_session(str(graph), Optimization.ORT_ENABLE_ALL)
    except ONNX_FAILURES as cause:
        raise _wrong(directory, f"has a {graph.name} that onnxruntime cannot load") from cause
    kinds = {each.name: each.type for each in session.get_inputs()}
    if "input_ids" not in kinds or not set(kinds) <= set(INPUTS) or not set(kinds.values()) <= set(NUMBERS):
        raise _wrong(directory, f"is no cross-encoder: it takes {', '.join(sorted(kinds))}")
    model = _Model(
        tokenizer,
        padding_id,
        session,
        {name: NUMBERS[kind] for name, kind in kinds.items()},
        ThreadPoolExecutor(_thread_count(), "rerank"),
    )
    try:
        _inferred(model, _encoded(model, "a query", ["a text", "another, longer text"]))
    except UNFIT as cause:
        model.threads.shutdown()
        raise _wrong(directory, "is no cross-encoder: a pair gives neither one logit nor two") from cause
    return model


def _tokenizer(directory: Path) -> tuple[Tokenizer, int]:
    try:
        tokenizer = Tokenizer.from_buffer((directory / TOKENIZER).read_bytes())
    except (OSError, ValueError) as cause:
        raise _wrong(directory, f"has a {TOKENIZER} that cannot be read") from cause
    padding = tokenizer.padding
    known = (tokenizer.token_to_id(token) for token in PADDING)
    padding_id = padding["pad_id"] if padding else next((found for found in known if found is not None), 0)
    tokenizer.no_padding()
    tokenizer.enable_truncation(_max_tokens(directory), strategy="longest_first")
    return tokenizer, padding_id


def _max_tokens(directory: Path) -> int:
    lengths = [MAX_TOKENS]
    for name, key in LENGTHS.items():
        try:
            told = json.loads((directory / name).read_bytes()).get(key)
        except (OSError, ValueError, AttributeError):
            continue
        if isinstance(told, int) and told > 0:
            lengths.append(told)
    return min(lengths)


def _wrong(directory: Path, what: str) -> ConfigurationError:
    return ConfigurationError(
        [
            f"RERANKER_PATH={directory} {what}: it must be a directory with a cross-encoder's model.onnx and "
            f"tokenizer.json; or set RERANKER=none."
        ]
    )
