"""The streams for validation, one of each file. Calibration and ranking formula were chosen on them."""

from __future__ import annotations

from pathlib import Path

STREAMS = Path(__file__).resolve().parent.parent / "data" / "streams"
HELD_OUT = frozenset(
    ("a03", "b04", "c02", "d05", "e06", "f07", "g03", "h09", "i05", "j04", "k06", "l08", "m05", "n05", "o05", "p05")
)
