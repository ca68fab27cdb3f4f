"""mcp: a running service's memory over stdin and stdout."""

from __future__ import annotations

import signal

import typer

from agentcore.agents.scope import MemoryScope
from agentcore.cli import options
from agentcore.cli.app import app
from agentcore.cli.calls import ask
from agentcore.registry import resolve

SERVERS = {"mcp": "agentcore.integrations.mcp:serve_stdio"}


@app.command(
    "mcp",
    "claude mcp add memory -e AGENTCORE_TOKEN=... -- agentcore mcp",
    "agentcore mcp --url https://memory.example --user ada",
)
@options.access
@options.fields(MemoryScope, ("user_id", "namespace"), panel=options.FILTERS)
def mcp(context: typer.Context) -> None:
    """Run an MCP server on standard input and output, for the service at AGENTCORE_URL.

    For programs that start their tools; others can use the service's /mcp. With
    --user or --namespace the tools see that part of the memory alone.
    """
    scope = options.given(context, MemoryScope)
    serve_stdio = resolve("mcp", SERVERS, kind="command")
    # The thread that reads stdin cannot be interrupted otherwise.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    ask(context, lambda memory: serve_stdio(memory, scope))
