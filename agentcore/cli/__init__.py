"""The `agentcore` command: each module registers its commands with the application of `app`."""

from __future__ import annotations

import sys
from importlib import import_module

from agentcore.cli.app import run

__all__ = ["main"]

MODULES = {
    "agentcore.cli.serve": ("serve", "worker"),
    "agentcore.cli.token": ("token",),
    "agentcore.cli.operate": ("migrate", "doctor"),
    "agentcore.cli.model": ("model",),
    "agentcore.cli.data": ("store", "retrieve", "context", "list", "prune"),
    "agentcore.cli.transfer": ("import", "export"),
}


def main() -> None:
    """Run the command line; ends the process."""
    typed = sys.argv[1] if len(sys.argv) > 1 else ""
    # The service's own modules take a second to load: commands that only speak to it need not wait for them.
    named = [module for module, commands in MODULES.items() if typed in commands]
    for module in named or MODULES:
        import_module(module)
    run()
