"""The `agentcore` command: each module registers its commands with the application of `app`."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from importlib import import_module

__all__ = ["INTERRUPTED", "main"]

INTERRUPTED = 130
MODULES = {
    "agentcore.cli.serve": ("serve", "worker"),
    "agentcore.cli.token": ("token", "rotate-secret"),
    "agentcore.cli.mcp": ("mcp",),
    "agentcore.cli.operate": ("migrate", "doctor"),
    "agentcore.cli.index": ("index",),
    "agentcore.cli.jobs": ("jobs",),
    "agentcore.cli.reembed": ("reembed",),
    "agentcore.cli.model": ("model",),
    "agentcore.cli.purge": ("purge",),
    "agentcore.cli.backup": ("backup", "restore-backup"),
    "agentcore.cli.data": ("store", "retrieve", "context", "list", "prune"),
    "agentcore.cli.single": ("get", "update", "delete", "stats"),
    "agentcore.cli.past": ("history", "revert", "feedback"),
    "agentcore.cli.layers": ("layers",),
    "agentcore.cli.consolidate": ("consolidate",),
    "agentcore.cli.llm": ("llm",),
    "agentcore.cli.session": ("session",),
    "agentcore.cli.alias": ("alias",),
    "agentcore.cli.archive": ("archive",),
    "agentcore.cli.erase": ("erase",),
    "agentcore.cli.transfer": ("import", "export"),
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line, by default the one typed; ends the process."""
    given = sys.argv[1:] if arguments is None else arguments
    # The service's own modules take a second to load: commands that only speak to it need not wait for them.
    named = [module for module, commands in MODULES.items() if given and given[0] in commands]
    # What is loaded stays: to look through it for garbage again and again is a sixth of the loading.
    gc.disable()
    try:
        application = import_module("agentcore.cli.app")
        for module in named or MODULES:
            import_module(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "agentcore").startswith("agentcore"):
            raise
        sys.exit(f"agentcore: the command line needs the package {missing.name!r}, which is not installed: "
                 "pip install 'agentcore-memory[server]'.")
    except KeyboardInterrupt:  # once a command runs, it minds Ctrl-C itself
        sys.exit(INTERRUPTED)
    finally:
        gc.enable()
    application.run(given)
