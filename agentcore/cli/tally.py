"""What became of the lines of an import, counted by outcome and by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import typer

from agentcore.errors import JsonRpcErrorCode
from agentcore.memory.params.memories import StoreResult

OUTCOMES = ("stored", "existing", "reinforced", "rejected", "failed")
PLACES_A_REASON = 1_000


@dataclass
class Tally:
    """What became of the lines so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    # By reason: where in the file, the first of them.
    places: dict[str, list[str]] = field(default_factory=dict)
    aliases: int = 0
    last_line: int = 0

    def count(self, result: StoreResult) -> None:
        # The key says that this very line was stored before, if under another parent or by an older version.
        again = result.code == JsonRpcErrorCode.CONFLICT
        self.outcomes["existing" if again else result.status] += 1
        if result.status == "rejected" and not again:
            self.reasons[result.reason or "no reason given"] += 1

    def leave_out(self, reason: str, place: str) -> None:
        """Something of the file that no memory is made of."""
        self.left_out[reason] += 1
        self._note(reason, place)

    def fail(self, number: int, problem: str) -> None:
        """Something of the file that was meant to be a memory and could not be one."""
        self.failures[problem] += 1
        self._note(problem, f"record {number}")

    def _note(self, reason: str, place: str) -> None:
        places = self.places.setdefault(reason, [])
        if len(places) < PLACES_A_REASON:
            places.append(place)

    def report(self) -> None:
        typer.echo(", ".join(f"{name} {self.outcomes[name]}" for name in OUTCOMES))
        if self.aliases:
            typer.echo(f"  aliases set {self.aliases}")
        for reason, count in self.reasons.most_common():
            typer.echo(f"  rejected {count}: {reason}")
        for reason, count in self.left_out.most_common():
            typer.echo(f"  left out {count}: {reason}")

    def as_json(self) -> Mapping[str, Any]:
        """The same for a file, with the places; no text of a memory."""
        return {
            **{name: self.outcomes[name] for name in OUTCOMES},
            "left_out": dict(self.left_out.most_common()),
            "rejected_because": dict(self.reasons.most_common()),
            "failed_because": dict(self.failures.most_common()),
            "places": self.places,
        }
