"""How far an import of one file came, kept in a small file, so that the next run begins there."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path
from typing import Any

from agentcore.errors import AgentCoreError

BEGINNING_BYTES = 65_536


class Position:
    """The last record of a file up to which all is stored. Another file, or one that changed, begins anew.

    Without a file to keep it in it is 0 and stays so.
    """

    def __init__(self, kept: Path | None, file: Path, **how: Any) -> None:
        self._kept = kept
        self._most: float = math.inf
        if kept is None:
            return
        with file.open("rb") as source:
            beginning = hashlib.sha256(source.read(BEGINNING_BYTES)).hexdigest()
        self._of = {"bytes": file.stat().st_size, "beginning": beginning, **how}

    def read(self) -> int:
        """The number of that record; 0 where none is kept of this file. Raises AgentCoreError."""
        if self._kept is None:
            return 0
        try:
            held = json.loads(self._kept.read_bytes())
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as cause:
            raise AgentCoreError(f"Cannot read {self._kept}: it is no state of an import.") from cause
        position = held.get("position") if isinstance(held, dict) else None
        if not isinstance(position, int):
            raise AgentCoreError(f"Cannot read {self._kept}: it is no state of an import.")
        return position if held == {**self._of, "position": position} else 0

    def stay_before(self, number: int) -> None:
        """From this record on the next run reads again, whatever is written."""
        self._most = min(self._most, number - 1)

    def write(self, number: int) -> None:
        """Keep it; whole or not at all."""
        if self._kept is None:
            return
        number = int(min(number, self._most))
        draft = self._kept.with_name(f".{self._kept.name}.part")
        try:
            draft.write_text(json.dumps({**self._of, "position": number}), encoding="utf-8")
            draft.replace(self._kept)
        except OSError as cause:
            raise AgentCoreError(f"Cannot write {self._kept}: {cause.strerror or cause}.") from cause
