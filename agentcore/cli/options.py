"""Options that several commands share, and how what was typed becomes params of the contract.

An option is named after the field it fills. `client` and `filters` add options to a command; their values are
read from the command's context.
"""

from __future__ import annotations

import functools
import inspect
import json
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar
from uuid import UUID

import typer
from pydantic import BaseModel

from agentcore.cli.app import CommandT
from agentcore.cli.times import moment
from agentcore.errors import NO_MEMORY_ID
from agentcore.memory.models import MemoryType

ParamsT = TypeVar("ParamsT", bound=BaseModel)

_ACCESS = "Which service, as whom"
_FILTERS = "Which memories"


def json_object(text: str) -> dict[str, Any]:
    """A JSON object, as metadata is."""
    try:
        value = json.loads(text)
    except ValueError as cause:
        raise typer.BadParameter(f"is not JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise typer.BadParameter('is not a JSON object: write {"key": "value"}')
    return value


def memory_id(text: str) -> UUID:
    """A memory's id."""
    try:
        return UUID(text)
    except ValueError as cause:
        raise typer.BadParameter(f"{text!r} {NO_MEMORY_ID}") from cause


def amount(text: str) -> int | float:
    """A count (500), a share (0.2) or a percentage (20%); shares are floats, counts ints."""
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100
        return float(text) if "." in text else int(text)
    except ValueError as cause:
        raise typer.BadParameter(f"{text!r} is not an amount: write 500, 0.2 or 20%") from cause


def given(context: typer.Context, model: type[ParamsT], **more: Any) -> ParamsT:
    """The model, filled from the options that were given; raises ValidationError by the options' names."""
    filled = {name: value for name, value in context.params.items()
              if name in model.model_fields and value is not None and value != ()}
    if context.params.get("shared"):
        filled["user_id"] = [*([filled["user_id"]] if "user_id" in filled else []), None]
    return model.model_validate(filled | more)


def printed_as_json(context: typer.Context, result: Any) -> bool:
    """Prints the result, a model or plain values, if --json was given; whether it was."""
    if not context.params["as_json"]:
        return False
    if isinstance(result, BaseModel):
        typer.echo(result.model_dump_json(indent=2))
    else:
        typer.echo(json.dumps(result, indent=2, ensure_ascii=False))
    return True


Url = Annotated[str | None, typer.Option(
    "--url", metavar="URL", rich_help_panel=_ACCESS, help="The service. Default: AGENTCORE_URL.")]
Token = Annotated[str | None, typer.Option(
    "--token", metavar="JWT", rich_help_panel=_ACCESS,
    help="The agent's token. Default: AGENTCORE_TOKEN, which other users of the machine cannot see.")]
Agent = Annotated[str | None, typer.Option(
    "--agent", metavar="ID", rich_help_panel=_ACCESS,
    help="Instead of a token: make one for this agent, with the secret of the embedded service's home. "
    "It is sent to this machine, or to --url, only.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")]

MemoryTypes = Annotated[list[MemoryType] | None, typer.Option(
    "--type", metavar="LAYER", help="working, episodic, semantic or procedural; may be repeated.",
    rich_help_panel=_FILTERS)]
TaskId = Annotated[str | None, typer.Option("--task", metavar="ID", rich_help_panel=_FILTERS)]
SessionId = Annotated[str | None, typer.Option("--session", metavar="ID", rich_help_panel=_FILTERS)]
UserId = Annotated[str | None, typer.Option("--user", metavar="ID", rich_help_panel=_FILTERS)]
Shared = Annotated[bool, typer.Option(
    "--shared", help="Memories without a user; with --user the user's, too.", rich_help_panel=_FILTERS)]
Namespace = Annotated[str | None, typer.Option("--namespace", metavar="NAME", rich_help_panel=_FILTERS)]
After = Annotated[datetime | None, typer.Option(
    "--after", parser=moment, metavar="TIME", rich_help_panel=_FILTERS,
    help="At or after this time: 2026-05-01, yesterday, or 3d for three days ago.")]
Before = Annotated[datetime | None, typer.Option(
    "--before", parser=moment, metavar="TIME", help="Before this time.", rich_help_panel=_FILTERS)]
Entities = Annotated[list[str] | None, typer.Option(
    "--entity", metavar="NAME", help="Names one of these; may be repeated.", rich_help_panel=_FILTERS)]
Keywords = Annotated[list[str] | None, typer.Option(
    "--keyword", metavar="WORD", help="Has one of these; may be repeated.", rich_help_panel=_FILTERS)]
Tags = Annotated[list[str] | None, typer.Option(
    "--tag", metavar="TAG", help="Has one of these; may be repeated.", rich_help_panel=_FILTERS)]
MinImportance = Annotated[float | None, typer.Option(
    "--min-importance", metavar="0..1", help="At least this important.", rich_help_panel=_FILTERS)]
MinFit = Annotated[float | None, typer.Option(
    "--min-fit", metavar="0..1", rich_help_panel=_FILTERS,
    help="Return nothing below this probability that anything found answers.")]
AsOf = Annotated[datetime | None, typer.Option(
    "--as-of", parser=moment, metavar="TIME", help="What was valid at this time.")]
AskedAt = Annotated[datetime | None, typer.Option(
    parser=moment, metavar="TIME", help="The time 'now' of the question.")]
MinScore = Annotated[float | None, typer.Option(
    "--min-score", metavar="0..1", help="At least this similar (cosine).", rich_help_panel=_FILTERS)]
Limit = Annotated[int, typer.Option(help="How many at most.")]
Cursor = Annotated[str | None, typer.Option(help="Where the page before ended.")]

FILTERS: Mapping[str, Any] = {
    "memory_types": MemoryTypes, "task_id": TaskId, "session_id": SessionId, "user_id": UserId,
    "shared": Shared, "namespace": Namespace, "after": After, "before": Before, "entities": Entities,
    "keywords": Keywords, "tags": Tags, "min_importance": MinImportance,
}


def with_json(command: CommandT) -> CommandT:
    """Adds --json to a command."""
    return _with(command, {"as_json": (AsJson, False)})


def client(command: CommandT) -> CommandT:
    """Adds --json and the options that name the service and the caller."""
    access = {"url": Url, "token": Token, "agent": Agent}
    return _with(with_json(command), {name: (each, None) for name, each in access.items()})


def filters(*, without: Iterable[str] = ()) -> Callable[[CommandT], CommandT]:
    """Adds the filters of `memory.list` and its like, but for some."""
    added = {name: (each, False if name == "shared" else None)
             for name, each in FILTERS.items() if name not in without}
    return lambda command: _with(command, added)


def _with(command: CommandT, added: Mapping[str, tuple[Any, Any]]) -> CommandT:
    signature = inspect.signature(command, eval_str=True)
    options = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
               for name, (annotation, default) in added.items()]

    @functools.wraps(command)
    def called(**values: Any) -> None:
        command(**{name: value for name, value in values.items() if name not in added})

    called.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*signature.parameters.values(), *options])
    return called  # type: ignore[return-value]
