"""Counts tokens as tiktoken does, exactly, from tables that `bpe-openai` carries. Never uses the network."""

from __future__ import annotations

import gzip
import hashlib
import re
import tempfile
from binascii import a2b_base64
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import tiktoken
from tiktoken.model import encoding_name_for_model

from agentcore.errors import ConfigurationError, StartupError

__all__ = ["DEFAULT_ENCODING", "ENCODINGS", "TokenCounter", "TokenCounters", "encoding_for_model"]

DEFAULT_ENCODING = "o200k_base"
CARRIER = "bpe_openai"

# Tiktoken's regular expressions overflow on a run of white space somewhere above 300,000 characters.
MAX_WHITE_RUN = 100_000
# How many characters of a text are first looked at for each token it may keep; a token has 4 to 5 on average.
CHARACTERS_PER_TOKEN = 8
# How far back a cut looks for the start of the word it falls into.
MAX_WORD_CHARACTERS = 40

_WHITE_RUN = re.compile(r"\s+")


@dataclass(frozen=True)
class _Table:
    url: str
    sha256: str
    pattern: str


_TABLES = {
    "o200k_base": _Table(
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        "|".join([
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
            r"\p{N}{1,3}", r" ?[^\s\p{L}\p{N}]+[\r\n/]*", r"\s*[\r\n]+", r"\s+(?!\S)", r"\s+",
        ])),
    "cl100k_base": _Table(
        "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|"
        r"\s++$|\s*[\r\n]|\s+(?!\S)|\s"),
}


ENCODINGS = tuple(sorted(_TABLES))


def encoding_for_model(model: str) -> str | None:
    """The encoding a model counts in; None for one that is unknown or has no table here."""
    try:
        name = encoding_name_for_model(model)
    except KeyError:
        return None
    return name if name in _TABLES else None


class TokenCounter:
    """Counts and cuts text in one encoding. The tables are unpacked below `cache_directory` once."""

    def __init__(self, cache_directory: Path, encoding: str = DEFAULT_ENCODING) -> None:
        if encoding not in _TABLES:
            raise ConfigurationError([
                f"TOKEN_ENCODING: there is no offline table for {encoding!r}; "
                f"choose {' or '.join(sorted(_TABLES))}."])
        self.encoding = encoding
        self._cache_directory = cache_directory
        self._loaded: tiktoken.Encoding | None = None

    def load(self) -> None:
        """Read the tables now, which takes up to a second; else the first count does.

        Raises StartupError where they are missing or damaged.
        """
        self._encoding()

    def count(self, text: str) -> int:
        """How many tokens `text` has. Special tokens in it, like <|endoftext|>, count as the text they are.

        Exact, but for runs of more than MAX_WHITE_RUN white-space characters, which tiktoken cannot count.
        """
        return sum(len(tokens) for tokens in self._encode(text))

    def truncate(self, text: str, limit: int) -> str:
        """The longest start of `text` of at most `limit` tokens, ended between words where one is near."""
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
            # A start is split into tokens in its own way; rarely into more than the whole text's were.
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
    """A counter for each encoding, made when it is first asked for; the tables below `cache_directory`.

    `default` is the encoding of a caller who names none.
    """

    def __init__(self, cache_directory: Path, default: str = DEFAULT_ENCODING) -> None:
        self.default = default
        self._cache_directory = cache_directory
        self._made: dict[str, TokenCounter] = {}

    def of(self, encoding: str) -> TokenCounter:
        """The counter of this encoding; raises ConfigurationError where it has no table here."""
        if encoding not in self._made:
            self._made[encoding] = TokenCounter(self._cache_directory, encoding)
        return self._made[encoding]


def _breaks(text: str) -> Iterator[int]:
    """Yields where to split a text so that no part has a long run of white space, which is slow to encode."""
    if len(text) > MAX_WHITE_RUN:
        for run in _WHITE_RUN.finditer(text):
            yield from range(run.start() + MAX_WHITE_RUN, run.end(), MAX_WHITE_RUN)
    yield len(text)


def _between_words(text: str, length: int) -> str:
    if not 0 < length < len(text) or not text[length - 1:length + 1].isalnum():
        return text[:length]
    start = length
    while start > 0 and length - start <= MAX_WORD_CHARACTERS and text[start - 1].isalnum():
        start -= 1
    near = start > 0 and length - start <= MAX_WORD_CHARACTERS
    return text[:start].rstrip() if near else text[:length]


# --- tables ------------------------------------------------------------------------------------------------


def _load(name: str, cache_directory: Path) -> tiktoken.Encoding:
    """Makes the encoding of the table; `tiktoken.get_encoding` would take twice the time to read it."""
    fields = _table(name, cache_directory / "tiktoken").split()
    # Lines of a token and its rank; the ranks of both tables count from 0.
    ranks = {token: rank for rank, token in enumerate(map(a2b_base64, fields[::2]))}
    encoding = tiktoken.Encoding(
        name, pat_str=_TABLES[name].pattern, mergeable_ranks=ranks, special_tokens={})
    # Counting has a table of its own: this copy, 24 MB, would only serve pickling.
    encoding._mergeable_ranks = {}
    return encoding


def _table(name: str, directory: Path) -> bytes:
    """Returns the verified table, unpacked into `directory` once. Raises StartupError."""
    table = _TABLES[name]
    unpacked = directory / hashlib.sha1(table.url.encode(), usedforsecurity=False).hexdigest()
    if unpacked.is_file() and _sha256(ranks := unpacked.read_bytes()) == table.sha256:
        return ranks
    ranks = _carried(name)
    if _sha256(ranks) != table.sha256:
        raise StartupError(f"The token table of {name} is damaged: install the package bpe-openai again.")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as whole:
            whole.write(ranks)
        Path(whole.name).replace(unpacked)
    except OSError as cause:
        raise StartupError(
            f"The token table of {name} cannot be written to {directory}: {cause.strerror}.") from cause
    return ranks


def _carried(name: str) -> bytes:
    # The package itself is not imported: its native library is large and not needed.
    found = find_spec(CARRIER)
    for place in (found.submodule_search_locations if found else None) or ():
        packed = Path(place) / "data" / f"{name}.tiktoken.gz"
        if packed.is_file():
            try:
                return gzip.decompress(packed.read_bytes())
            except (OSError, EOFError) as cause:
                raise StartupError(
                    f"The token table of {name} is damaged: install the package bpe-openai again.") from cause
    raise StartupError(f"The token table of {name} is missing: install the package bpe-openai.")


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
