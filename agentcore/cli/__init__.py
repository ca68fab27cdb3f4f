"""The `agentcore` command: the table of its commands, whose modules register them with `app`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

__all__ = ["INTERRUPTED", "main"]

INTERRUPTED = 130
# numpy reads it when imported. Matrices are small here: on busy cores a product of 60 x 384 by 384 x 560 took
# 33 ms with two threads, 2 ms with one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The module of each command, which is imported when the command is used (those of the service take seconds, and
# need packages that a client's installation lacks), and its line in `agentcore --help`: the first sentence of its help.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "serve": ("serve", "Run the service until Ctrl-C."),
    "worker": ("serve", "Run the background work in a process of its own, until Ctrl-C."),
    "demo": ("demo", "Import a conversation into a temporary service and ask it ten questions."),
    "token": ("token", "Print a token that opens one agent's memory; nothing else goes to stdout."),
    "rotate-secret": ("token", "Make a new secret for tokens in the home; older tokens stay valid."),
    "console": ("console", "Print and open a link that signs a browser in to the console, once."),
    "mcp": ("mcp", "Run an MCP server on standard input and output, for the service at AGENTCORE_URL."),
    "migrate": ("operate", "Bring the database to the schema of this version."),
    "doctor": ("operate", "Check each part, and say how to fix what is wrong."),
    "config": ("installation", "Print the settings of a service started here, without secrets."),
    "version": ("installation", "Print the version."),
    "index": ("maintenance", "Show, measure and rebuild the vector indexes of a running service."),
    "jobs": ("maintenance", "List, retry and cancel the background jobs of a running service."),
    "reembed": ("maintenance", "Embed all memories again with another model, while the service runs."),
    "model": ("installation", "The local embedding models, about 90 MB each, from the package index."),
    "purge": ("operate", "Remove deleted and erased text from the files, while the service runs."),
    "backup": ("backup", "Back up database, archive and keys into one file, also while the service runs."),
    "restore-backup": ("backup", "Restore a backup into a home that no service uses."),
    "store": ("memory_commands", "Store a text."),
    "retrieve": ("memory_commands", "Search memories, best first."),
    "context": ("memory_commands", "Build a prompt-ready context inside a token budget."),
    "list": ("memory_commands", "List memories page by page, by time, importance or access count."),
    "prune": ("memory_commands", "Archive and remove memories of a layer."),
    "get": ("memory_commands", "Show one memory with all fields."),
    "update": ("memory_commands", "Correct a memory or append to it; its history keeps the earlier version."),
    "delete": ("memory_commands", "Delete memories permanently, without an archived copy."),
    "count": ("memory_commands", "Count the memories that match; superseded ones count, archived ones do not."),
    "stats": ("memory_commands", "Show the number of memories by layer."),
    "history": ("memory_commands", "Show the changes of a memory, the latest first."),
    "revert": ("memory_commands", "Revert a memory's last change, or all changes since a version."),
    "feedback": ("memory_commands", "Rate a memory's usefulness: changes its relevance score."),
    "call": ("call_method", "Call any method, and print its result as JSON."),
    "archive": ("archive", "List and restore archived memories; verify all copies, as an operator."),
    "erase": ("archive", "Erase permanently, from every store, and print the signed receipt."),
    "import": ("transfer", "Store a conversation, one memory a line, or what another system exported."),
    "export": ("transfer", "Write memories as JSONL, oldest first, in the form that import reads."),
}
MODULES: dict[str, tuple[str, ...]] = {
    f"agentcore.cli.{module}": tuple(name for name, (its, _) in COMMANDS.items() if its == module)
    for module, _ in COMMANDS.values()
}
SUMMARIES: Mapping[str, str] = {name: summary for name, (_, summary) in COMMANDS.items()}
ALIASES: Mapping[str, str] = {"add": "store", "search": "retrieve", "find": "retrieve", "ls": "list", "rm": "delete"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command line, by default the process's own, and ends the process."""
    # Imported objects stay alive: garbage collection during the imports takes a sixth of their time.
    gc.disable()
    try:
        application = import_module("agentcore.cli.app")
    except ModuleNotFoundError as missing:
        if (missing.name or "agentcore").startswith("agentcore"):
            raise
        sys.exit(
            f"agentcore: the command line needs the package {missing.name!r}, which is not installed: "
            "pip install 'agentcore-memory[server]'."
        )
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    application.run(sys.argv[1:] if arguments is None else arguments)
