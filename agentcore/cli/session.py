"""session: add, end, summarize and clear whole conversations."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from agentcore.cli import options
from agentcore.cli.app import FAILED, group, say
from agentcore.cli.calls import answer, call
from agentcore.memory.api import MemoryApi
from agentcore.memory.params.sessions import AddSessionParams, EndSessionParams, SummarizeParams

sessions = group("session", "agentcore session add call-7 call-7.json", "agentcore session end call-7")
FORM = 'Wanted is a JSON list such as [{"role": "user", "content": "I moved to Ghent."}].'
SessionId = Annotated[str, typer.Argument(help="The session's id.", show_default=False)]


@sessions.command(
    "add",
    "agentcore session add call-7 call-7.json",
    """echo '[{"role": "user", "content": "I moved to Ghent."}]' | agentcore session add call-8 -""",
)
@options.client
@options.fields(AddSessionParams, ("user_id", "namespace", "task_id", "tags"))
def add(
    context: typer.Context,
    session_id: SessionId,
    file: Annotated[
        Path,
        typer.Argument(help="A JSON list of messages, each with content, role, name, timestamp ...; - reads stdin."),
    ],
) -> None:
    """Store a conversation: a memory for each message."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise typer.BadParameter(f"{file} cannot be read: {cause}", ctx=context) from cause
    params = options.given(context, AddSessionParams, messages=_messages(text, file, context))
    added = call(context, MemoryApi.add_session, params)
    if not options.printed_as_json(context, added):
        say(f"{added.stored_count} of {len(added.results)} stored")
        for place, result in enumerate(added.results, start=1):
            if result.code is not None:
                say(f"message {place}: {result.reason}")
    if not added.success:
        raise typer.Exit(FAILED)


def _messages(text: str, file: Path, context: typer.Context) -> list[Any]:
    try:
        messages = json.loads(text)
    except ValueError as cause:
        raise typer.BadParameter(f"{file} is not JSON: {cause}. {FORM}", ctx=context) from cause
    if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
        raise typer.BadParameter(f"{file} contains no list of messages. {FORM}", ctx=context)
    return messages


@sessions.command("end", "agentcore session end call-7")
@options.client
@options.fields(
    EndSessionParams, ("summarize", "max_tokens"), summarize="Keep summaries.", max_tokens="Of each summary."
)
def end(context: typer.Context, session_id: SessionId) -> None:
    """End a session: promote or end its working memory, and keep summaries."""
    ended = answer(context, MemoryApi.end_session)
    if ended.summary:
        typer.echo(ended.summary)
    if ended.summary_pending:
        say("this summary is not stored: a language model will write the final one")
    say(f"{ended.promoted_count} promoted, {ended.ended_count} ended")


@sessions.command("summary", "agentcore session summary call-7 --max-tokens 100")
@options.client
@options.fields(SummarizeParams, ("max_tokens",), max_tokens="Maximum of the summary.")
def summary(context: typer.Context, session_id: SessionId) -> None:
    """Summarize a session in its own sentences."""
    typer.echo(answer(context, MemoryApi.summarize).summary)


@sessions.command("clear", "agentcore session clear call-7")
@options.client
def clear(context: typer.Context, session_id: SessionId) -> None:
    """Delete a session's memories permanently."""
    say(f"{answer(context, MemoryApi.clear).cleared_count} deleted")
