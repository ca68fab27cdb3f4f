"""`python -m benchmarks` lists the benchmarks; `python -m benchmarks NAME [options]` runs one."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

# As the command line does (`agentcore/cli/__init__.py`): a service runs in this process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
NOT_BENCHMARKS = {
    "__init__",
    "__main__",
    "ablated_parts",
    "contexts",
    "corpus",
    "evidence",
    "labelled",
    "ledger",
    "logistic",
    "measures",
    "replicated_servers",
    "service",
    "tasks",
}


def names() -> list[str]:
    return sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem not in NOT_BENCHMARKS)


def main() -> int:
    """Lists the benchmarks, or runs the named one."""
    if len(sys.argv) < 2 or sys.argv[1] in {"-h", "--help"}:
        print("make bench ARGS='NAME [options]', each with --help:\n")
        for name in names():
            described = importlib.import_module(f"benchmarks.{name}").__doc__ or ""
            print(f"  {name:<22} {described.strip().splitlines()[0]}")
        return 0
    name = sys.argv[1].replace("-", "_")
    if name not in names():
        print(f"no benchmark is named {sys.argv[1]}; there are: {', '.join(names())}", file=sys.stderr)
        return 2
    sys.argv = [f"benchmarks {name}", *sys.argv[2:]]
    return int(importlib.import_module(f"benchmarks.{name}").main() or 0)


if __name__ == "__main__":
    sys.exit(main())
