"""Finds injected instructions: the patterns by which a memory is flagged. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from agentcore.memory.language.text import INVISIBLE

_DEFAULT = Path(__file__).with_name("screening.json")


class Screen:
    """Names the patterns of injected instructions that a text matches.

    `changes`: patterns by name that add to `screening.json` or replace one; an empty one removes it.
    Raises ValueError for a pattern that is no regular expression.
    """

    def __init__(self, changes: Mapping[str, str] | None = None) -> None:
        self._patterns = dict(_default_patterns())
        for name, pattern in (changes or {}).items():
            try:
                self._patterns[name] = re.compile(pattern)
            except re.error as cause:
                raise ValueError(f"{name} is no regular expression: {cause}") from cause
            if not pattern:
                del self._patterns[name]

    def __call__(self, normalized: str) -> list[str]:
        """Returns the names of the patterns that a text in normal form matches."""
        seen = INVISIBLE.sub("", normalized)
        return [name for name, pattern in self._patterns.items() if pattern.search(seen)]


@cache
def _default_patterns() -> Mapping[str, re.Pattern[str]]:
    given: Mapping[str, list[str]] = json.loads(_DEFAULT.read_text(encoding="utf-8"))
    return {name: re.compile("|".join(alternatives)) for name, alternatives in given.items()}
