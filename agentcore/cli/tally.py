"""What became of the lines of an import, counted by outcome and by reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import typer

from agentcore.errors import JsonRpcErrorCode
from agentcore.memory.params import StoreResult


@dataclass
class Tally:
    """What became of the lines so far."""

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    aliases: int = 0
    last_line: int = 0

    def count(self, result: StoreResult) -> None:
        # The key says that this very line was stored before, if under another parent or by an older version.
        again = result.code == JsonRpcErrorCode.CONFLICT
        self.outcomes["existing" if again else result.status] += 1
        if result.status == "rejected" and not again:
            self.reasons[result.reason or "no reason given"] += 1

    def report(self) -> None:
        names = ("stored", "existing", "reinforced", "rejected", "failed")
        typer.echo(", ".join(f"{name} {self.outcomes[name]}" for name in names))
        if self.aliases:
            typer.echo(f"  aliases set {self.aliases}")
        for reason, count in self.reasons.most_common():
            typer.echo(f"  rejected {count}: {reason}")
