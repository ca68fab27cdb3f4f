"""The `agentcore` command: each module registers its commands with the application of `app`."""

from __future__ import annotations

from agentcore.cli import data, model, operate, serve, transfer
from agentcore.cli.app import run

__all__ = ["data", "main", "model", "operate", "serve", "transfer"]


def main() -> None:
    """Run the command line; ends the process."""
    run()
