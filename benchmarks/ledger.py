"""The ledger: the figures of every run, with its machine and commit."""

from __future__ import annotations

import json
import math
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LEDGER = Path(__file__).parent / "results" / "ledger.jsonl"


def machine() -> dict[str, Any]:
    model = next((line.partition(":")[2].strip() for line in _cpu_lines() if line.startswith("model name")), "")
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cpu": model or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory_gib, 1),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def _cpu_lines() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def commit() -> str:
    """Returns the current commit, marked if files differ from it."""

    def git(*arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1]
        )
        return done.stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "agentcore", "benchmarks/*.py")
    return (git("rev-parse", "--short", "HEAD") or "unknown") + ("+changes" if changed else "")


def append(benchmark: str, options: dict[str, Any], figures: dict[str, Any]) -> None:
    """Appends one run as a line of JSON."""
    entry = {
        "benchmark": benchmark,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": machine(),
        "options": options,
        "figures": figures,
    }
    LEDGER.parent.mkdir(exist_ok=True)
    with LEDGER.open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")
    print(f"added to {LEDGER.relative_to(Path.cwd()) if LEDGER.is_relative_to(Path.cwd()) else LEDGER.name}")


def percentiles(values_ms: list[float]) -> dict[str, float]:
    """p50, p95 and p99 in milliseconds, by nearest rank."""
    ordered = sorted(values_ms)

    def at(share: float) -> float:
        return round(ordered[math.ceil(share * len(ordered)) - 1], 2)

    return {"p50": at(0.50), "p95": at(0.95), "p99": at(0.99)}
