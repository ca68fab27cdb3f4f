"""What a search tells of itself: gathered on the way, given out in its receipt."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agentcore.telemetry import Steps


@dataclass(frozen=True)
class Notes:
    """The timer of a call's steps, what was done without, and what was searched."""

    steps: Steps
    degraded: list[str] = field(default_factory=list)
    searched: dict[str, Any] = field(default_factory=dict)
