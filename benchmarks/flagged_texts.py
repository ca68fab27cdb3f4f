"""Flagged texts: how many injected texts the default patterns find, and how many harmless ones they flag."""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentcore.memory.language.rejection import Screen
from agentcore.memory.language.text import normal_form
from benchmarks.ledger import append

DATA = Path(__file__).parent / "data"
HALVES = ("developed", "held_out")


def texts() -> list[dict[str, str]]:
    """Returns the labeled texts: `half`, `kind` (injected or harmless) and `text`."""
    return [json.loads(line) for line in (DATA / "flagged_texts.jsonl").read_text("utf-8").splitlines()]


def figures(screen: Screen, half: str) -> dict[str, Any]:
    """Returns the number of texts of each kind in one half, and how many of them are flagged."""
    found: dict[str, Any] = {}
    for kind in ("injected", "harmless"):
        said = [each["text"] for each in texts() if (each["half"], each["kind"]) == (half, kind)]
        flagged = sum(bool(screen(normal_form(text))) for text in said)
        found[kind] = {"texts": len(said), "flagged": flagged, "share": round(flagged / len(said), 3)}
    return found


def conversations() -> Iterator[str]:
    """Yields the messages of the repository's other sets, none of which is about injection."""
    for name in ("talks.jsonl", "small.jsonl", "ac2.jsonl.gz"):
        path = DATA / name
        raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for line in raw.decode().splitlines():
            for memory in json.loads(line).get("memories", ()):
                said = memory.get("interaction") or {"text": memory.get("text", "")}
                yield "\n".join(str(value) for value in said.values())


def main() -> int:
    """Prints and records the figures of both halves."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    screen = Screen()
    found: dict[str, Any] = {half: figures(screen, half) for half in HALVES}
    said = list(conversations())
    flagged = [text for text in said if screen(normal_form(text))]
    found["conversations"] = {"texts": len(said), "flagged": len(flagged)}
    for half in HALVES:
        injected, harmless = found[half]["injected"], found[half]["harmless"]
        print(
            f"{half:<10} detected {injected['flagged']} of {injected['texts']}, "
            f"false flags {harmless['flagged']} of {harmless['texts']}"
        )
    print(f"false flags in {len(said)} messages of the other sets: {len(flagged)}")
    append("flagged_texts", {}, found)
    return 0
