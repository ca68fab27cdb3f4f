"""Reads the file of multilingual-e5-small: vocabulary, normalization table and 4-bit weights.

Layout of a 4-bit tensor: blocks of 32 values, 18 bytes each: a float16 scale, then 16 bytes whose low halves
are the first 16 values and whose high halves the other 16; a value is (code - 8) * scale.
"""

from __future__ import annotations

import struct
import threading
from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

HIDDEN = 384
BLOCK_VALUES, BLOCK_BYTES = 32, 18
Floats: TypeAlias = NDArray[np.float32]
Bytes: TypeAlias = NDArray[np.uint8]
# NumPy parses array headers with `ast`, which CPython 3.11 cannot do in two threads at once (SystemError).
_parsing_headers = threading.Lock()


def read_arrays(content: bytes) -> Mapping[str, NDArray[np.float16]]:
    """Returns the arrays of an npz file. Raises ValueError."""
    with _parsing_headers, np.load(BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)


@dataclass(frozen=True)
class Vocabulary:
    """Pieces by text, the log probability of each id, and replacements of characters."""

    ids: dict[str, int]
    scores: array[float]
    normalized: dict[int, str]


class E5File:
    def __init__(self, path: Path) -> None:
        # A base array over the same memory: slicing a memmap takes ten times as long.
        self._bytes: Bytes = np.asarray(np.memmap(path, np.uint8, "r"))
        self._at = 8
        *_, pieces, _, _, _, _, text_bytes = self._unpack("<7if6iQ")
        offsets = self._take(4 * (pieces + 1)).view(np.uint32)
        scores = array("f", self._take(4 * pieces).tobytes())
        texts = _split(self._take(text_bytes), offsets)
        # Control tokens have the score 0: no text may contain them.
        ids = {text: each for each, (text, score) in enumerate(zip(texts, scores, strict=True)) if score < 0}
        entries, _ = self._unpack("<iI")
        self.vocabulary = Vocabulary(ids, scores, dict(self._replacement() for _ in range(entries)))
        self._tensors = dict(self._tensor() for _ in range(*self._unpack("<i")))

    def floats(self, name: str) -> Floats:
        return self._tensors[name].view(np.float32)

    def blocks(self, name: str, width: int) -> Bytes:
        """Returns the blocks of a 4-bit tensor: (rows, width / 32, 18)."""
        return self._tensors[name].reshape(-1, width // BLOCK_VALUES, BLOCK_BYTES)

    def _unpack(self, form: str) -> tuple[Any, ...]:
        return struct.unpack(form, self._take(struct.calcsize(form)).tobytes())

    def _take(self, count: int) -> Bytes:
        start, self._at = self._at, self._at + count
        return self._bytes[start : self._at]

    def _replacement(self) -> tuple[int, str]:
        character, count = self._unpack("<IB")
        return character, self._take(4 * count).tobytes().decode("utf-32-le")

    def _tensor(self) -> tuple[str, Bytes]:
        [name_bytes] = self._unpack("<H")
        name = self._take(name_bytes).tobytes().decode()
        _, _, start, count = self._unpack("<BIQQ")
        return name, self._bytes[start : start + count]


def _split(utf8: Bytes, offsets: NDArray[np.uint32]) -> list[str]:
    text = utf8.tobytes().decode()
    # Number of characters that start before each byte.
    positions = np.concatenate([[0], np.cumsum(utf8 & 0xC0 != 0x80)])[offsets].tolist()
    return [text[start:end] for start, end in pairwise(positions)]


def dequantized(blocks: Bytes) -> Floats:
    """Returns the values of blocks (rows, blocks, 18) as (rows, 32 * blocks)."""
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    packed = blocks[..., 2:]
    codes = np.concatenate([packed & 15, packed >> 4], axis=-1)
    rows: Floats = ((codes.astype(np.float32) - 8) * scales).reshape(len(blocks), -1)
    return rows
