"""The prompts, a file each: what models are told to do. Nothing that users say ever becomes part of one.

The first line of a file holds its version, which is raised whenever the text changes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_VERSION = re.compile(r"\A<!-- version (\d+) -->\n")


@dataclass(frozen=True)
class Prompt:
    """A prompt and what it is called where it is told of: "fact_judge@1"."""

    label: str
    text: str


@cache
def load_prompt(name: str) -> Prompt:
    """The prompt of that name."""
    said = (Path(__file__).parent / f"{name}.md").read_text(encoding="utf-8")
    _, version, text = _VERSION.split(said, maxsplit=1)
    return Prompt(f"{name}@{version}", text.strip())
