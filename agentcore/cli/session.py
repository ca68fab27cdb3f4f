"""session add, end, summary, clear: whole conversations."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from agentcore.cli import options
from agentcore.cli.app import FAILED, MEMORIES, examples, group, say
from agentcore.cli.calls import ask
from agentcore.memory.params.sessions import (
    AddSessionParams,
    ClearParams,
    EndSessionParams,
    SummarizeParams,
)

sessions = group(
    "session", MEMORIES, "agentcore session add call-7 call-7.json", "agentcore session end call-7")
FORM = 'Wanted is a JSON list such as [{"role": "user", "content": "I moved to Ghent."}].'
SessionId = Annotated[str, typer.Argument(help="The session's id.", show_default=False)]


@sessions.command("add", epilog=examples(
    "agentcore session add call-7 call-7.json",
    """echo '[{"role": "user", "content": "I moved to Ghent."}]' | agentcore session add call-8 -""",
))
@options.client
def add(
    context: typer.Context,
    session_id: SessionId,
    file: Annotated[Path, typer.Argument(
        help="A JSON list of messages, each with content, role, name, timestamp ...; - reads stdin.")],
    user_id: Annotated[str | None, typer.Option("--user", metavar="ID")] = None,
    namespace: Annotated[str | None, typer.Option(metavar="NAME")] = None,
    task_id: Annotated[str | None, typer.Option("--task", metavar="ID")] = None,
    tags: Annotated[list[str] | None, typer.Option("--tag", help="May be repeated.")] = None,
) -> None:
    """Store a conversation: a memory for each message."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as cause:
        raise typer.BadParameter(f"{file} cannot be read: {cause}", ctx=context) from cause
    params = options.given(context, AddSessionParams, messages=_messages(text, file, context))
    added = ask(context, lambda memory: memory.add_session(params))
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
        raise typer.BadParameter(f"{file} holds no list of messages. {FORM}", ctx=context)
    return messages


@sessions.command("end", epilog=examples("agentcore session end call-7"))
@options.client
def end(
    context: typer.Context,
    session_id: SessionId,
    summarize: Annotated[bool, typer.Option("--summary/--no-summary", help="Keep summaries.")] = True,
    max_tokens: Annotated[int, typer.Option(help="Of each summary.")] = 200,
) -> None:
    """End a session: what it left in working memory is promoted or ends, summaries are kept."""
    params = options.given(context, EndSessionParams)
    ended = ask(context, lambda memory: memory.end_session(params))
    if options.printed_as_json(context, ended):
        return
    if ended.summary:
        typer.echo(ended.summary)
    if ended.summary_pending:
        say("this summary is provisional and not kept: a language model's is still to come")
    say(f"{ended.promoted_count} promoted, {ended.ended_count} ended")


@sessions.command("summary", epilog=examples("agentcore session summary call-7 --max-tokens 100"))
@options.client
def summary(
    context: typer.Context,
    session_id: SessionId,
    max_tokens: Annotated[int, typer.Option(help="At most.")] = 300,
) -> None:
    """What was said, in its own sentences."""
    params = options.given(context, SummarizeParams)
    summarized = ask(context, lambda memory: memory.summarize(params))
    if not options.printed_as_json(context, summarized):
        typer.echo(summarized.summary)


@sessions.command("clear", epilog=examples("agentcore session clear call-7"))
@options.client
def clear(
    context: typer.Context,
    session_id: SessionId,
) -> None:
    """Delete a session's memories for good."""
    params = options.given(context, ClearParams)
    cleared = ask(context, lambda memory: memory.clear(params))
    if not options.printed_as_json(context, cleared):
        say(f"{cleared.cleared_count} deleted")
