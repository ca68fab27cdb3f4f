"""call: any method of the service, with params and result as JSON."""

from __future__ import annotations

import json
import sys
from difflib import get_close_matches
from typing import Annotated

import typer

from agentcore.cli import options
from agentcore.cli.app import app
from agentcore.cli.calls import DEFAULT_SCOPES, call
from agentcore.memory.api import METHODS, AnyMethod

PREFIX = "memory."


@app.command(
    "call",
    "agentcore call stats",
    """agentcore call configure '{"consolidate": true}' --agent my-agent""",
    """agentcore call configure '{"layers": {"episodic": {"capacity": 50000}}}' --token $ADMIN_TOKEN""",
    """echo '{"session_id": "s-1", "messages": [{"content": "I moved to Ghent."}]}' | agentcore call add_session -""",
)
@options.access
def call_method(
    context: typer.Context,
    method: Annotated[str, typer.Argument(help="The method, with or without `memory.`.", show_default=False)],
    params: Annotated[str, typer.Argument(help="Its params as a JSON object; - reads stdin.")] = "{}",
) -> None:
    """Call any method, and print its result as JSON."""
    wanted = _method(method, context)
    given = wanted.params.model_validate(options.json_object(sys.stdin.read() if params == "-" else params))
    scopes = {*DEFAULT_SCOPES, wanted.scope}
    if any(getattr(given, field) for field in wanted.admin_fields):
        scopes.add("memory:admin")
    result = call(context, wanted, given, scopes=sorted(scopes))
    typer.echo(json.dumps(result.model_dump(mode="json"), indent=2, ensure_ascii=False))


def _method(name: str, context: typer.Context) -> AnyMethod:
    known = {each.attribute: each for each in METHODS}
    asked = name.removeprefix(PREFIX)
    if asked not in known:
        near = get_close_matches(asked, known, n=1)
        meant = f": did you mean {PREFIX}{near[0]}?" if near else f". There are {', '.join(known)}."
        raise typer.BadParameter(f"{name} is not a method{meant}", ctx=context)
    return known[asked]
