"""Counts tokens exactly as tiktoken does, from tables of the package `bpe-openai`. Never uses the network."""

from __future__ import annotations

import gzip
import hashlib
import os
import re
import tempfile
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import tiktoken
from tiktoken.model import encoding_name_for_model

from agentcore.errors import ConfigurationError, StartupError

DEFAULT_ENCODING = "o200k_base"
CARRIER = "bpe_openai"

# Tiktoken's regular expressions overflow on white-space runs above some 300,000 characters.
MAX_WHITE_RUN = 100_000
# Characters first encoded per token of the limit; a token has 4 to 5 on average.
CHARACTERS_PER_TOKEN = 8
# How far back `truncate` searches for the start of the word at the cut.
MAX_WORD_CHARACTERS = 40

_WHITE_RUN = re.compile(r"\s+")
_ENVIRONMENT = threading.Lock()
_DAMAGED = "The token table of {} is damaged: install the package bpe-openai again."


_URL = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
# SHA-256 of each table.
_TABLES = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
ENCODINGS = tuple(_TABLES)


def encoding_for_model(model: str) -> str | None:
    """Returns the encoding of a model; None if the model is unknown or its table is not available."""
    try:
        name = encoding_name_for_model(model)
    except KeyError:
        return None
    return name if name in _TABLES else None


class TokenCounter:
    """Counts and truncates text in one encoding. Tables are unpacked below `cache_directory` once."""

    def __init__(self, cache_directory: Path, encoding: str = DEFAULT_ENCODING) -> None:
        if encoding not in _TABLES:
            raise ConfigurationError(
                [f"TOKEN_ENCODING: there is no offline table for {encoding!r}; choose {' or '.join(ENCODINGS)}."]
            )
        self.encoding = encoding
        self._cache_directory = cache_directory
        self._loaded: tiktoken.Encoding | None = None

    def load(self) -> None:
        """Loads the tables, which takes up to a second. Raises StartupError if they are missing or damaged."""
        self._encoding()

    def count(self, text: str) -> int:
        """Returns the number of tokens; special tokens count as text. White-space runs are approximated."""
        return sum(len(tokens) for tokens in self._encode(text))

    def truncate(self, text: str, limit: int) -> str:
        """Returns the longest prefix of at most `limit` tokens, cut between words if a boundary is near."""
        if limit <= 0:
            return ""
        window = limit * CHARACTERS_PER_TOKEN
        while True:
            tokens = [token for piece in self._encode(text[:window]) for token in piece]
            if len(tokens) > limit:
                break
            if window >= len(text):
                return text
            window *= 4
        kept = self._encoding().decode_bytes(tokens[:limit]).decode("utf-8", "ignore")
        kept = _between_words(text, len(kept))
        while self.count(kept) > limit:
            # A prefix is tokenized differently; rarely into more tokens than it has in the whole text.
            kept = kept[:-1]
        return kept

    def _encoding(self) -> tiktoken.Encoding:
        if self._loaded is None:
            self._loaded = _load(self.encoding, self._cache_directory)
        return self._loaded

    def _encode(self, text: str) -> Iterator[list[int]]:
        encode = self._encoding().encode_ordinary
        start = 0
        for end in _breaks(text):
            yield encode(text[start:end])
            start = end


class TokenCounters:
    """Counters by encoding, created on first use. `default`: the encoding of callers that name none."""

    def __init__(self, cache_directory: Path, default: str = DEFAULT_ENCODING) -> None:
        self.default = default
        self._cache_directory = cache_directory
        self._made: dict[str, TokenCounter] = {}

    def of(self, encoding: str) -> TokenCounter:
        """Returns the counter of an encoding. Raises ConfigurationError if its table is not available."""
        if encoding not in self._made:
            self._made[encoding] = TokenCounter(self._cache_directory, encoding)
        return self._made[encoding]


def _breaks(text: str) -> Iterator[int]:
    """Yields split positions that bound white-space runs, which are slow to encode."""
    if len(text) > MAX_WHITE_RUN:
        for run in _WHITE_RUN.finditer(text):
            yield from range(run.start() + MAX_WHITE_RUN, run.end(), MAX_WHITE_RUN)
    yield len(text)


def _between_words(text: str, length: int) -> str:
    if not 0 < length < len(text) or not text[length - 1 : length + 1].isalnum():
        return text[:length]
    start = length
    while start > 0 and length - start <= MAX_WORD_CHARACTERS and text[start - 1].isalnum():
        start -= 1
    near = start > 0 and length - start <= MAX_WORD_CHARACTERS
    return text[:start].rstrip() if near else text[:length]


def _load(name: str, cache_directory: Path) -> tiktoken.Encoding:
    directory = cache_directory / "tiktoken"
    _unpack(name, directory)
    # Tiktoken reads its directory only from the environment, and downloads missing tables.
    with _ENVIRONMENT:
        before = os.environ.get("TIKTOKEN_CACHE_DIR")
        os.environ["TIKTOKEN_CACHE_DIR"] = str(directory)
        try:
            encoding = tiktoken.get_encoding(name)
        finally:
            if before is None:
                del os.environ["TIKTOKEN_CACHE_DIR"]
            else:
                os.environ["TIKTOKEN_CACHE_DIR"] = before
    # Encoding does not use this copy, 24 MB; it only serves pickling.
    encoding._mergeable_ranks = {}
    return encoding


def _unpack(name: str, directory: Path) -> None:
    unpacked = directory / hashlib.sha1(_URL.format(name).encode(), usedforsecurity=False).hexdigest()
    if unpacked.is_file() and _is_whole(name, unpacked.read_bytes()):
        return
    try:
        ranks = gzip.decompress(_carried(name).read_bytes())
    except (OSError, EOFError) as cause:
        raise StartupError(_DAMAGED.format(name)) from cause
    if not _is_whole(name, ranks):
        raise StartupError(_DAMAGED.format(name))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as whole:
            whole.write(ranks)
        Path(whole.name).replace(unpacked)
    except OSError as cause:
        raise StartupError(f"The token table of {name} cannot be written to {directory}: {cause.strerror}.") from cause


def _carried(name: str) -> Path:
    # The package is not imported: its native library is large and not needed.
    found = find_spec(CARRIER)
    for place in (found.submodule_search_locations if found else None) or ():
        packed = Path(place) / "data" / f"{name}.tiktoken.gz"
        if packed.is_file():
            return packed
    raise StartupError(f"The token table of {name} is missing: install the package bpe-openai.")


def _is_whole(name: str, ranks: bytes) -> bool:
    return hashlib.sha256(ranks).hexdigest() == _TABLES[name]
