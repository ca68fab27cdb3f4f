"""Options that several commands share, and their conversion to params of the API.

`option`, `fields`, `filters` and `client` add options to a command, which reads their values from its context.
"""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from types import GenericAlias, UnionType
from typing import Annotated, Any, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

import typer
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from agentcore.cli.app import CommandT
from agentcore.errors import NO_MEMORY_ID

ParamsT = TypeVar("ParamsT", bound=BaseModel)

ACCESS = "Which service, as whom"
FILTERS = "Which memories"
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800, "y": 31_536_000}
_DAYS = {"yesterday": -1, "today": 0, "tomorrow": 1}
_DURATION = re.compile(r"(\d{1,12})([smhdwy]?)")


def seconds(text: str) -> int:
    """Parses a duration: 3600, 90s, 15m, 24h, 30d, 2w or 1y (365 days)."""
    match = _DURATION.fullmatch(text.strip())  # no capitals: 1M may mean a month
    if match is None or int(match[1]) == 0:
        raise typer.BadParameter(f"{text!r} is not a duration: write 3600, 90s, 15m, 24h, 30d, 2w or 1y")
    return int(match[1]) * _UNITS[match[2]]


def seconds_or_none(text: str) -> int:
    """Parses a duration; accepts 0, too."""
    return 0 if text.strip() == "0" else seconds(text)


def on_or_off(text: str) -> bool:
    if text not in ("on", "off"):
        raise typer.BadParameter("pass on or off")
    return text == "on"


def moment(text: str) -> datetime:
    """Parses ISO 8601, now, today, yesterday, tomorrow, or a duration before now (3d), in UTC."""
    word, now = text.strip().casefold(), datetime.now(UTC)
    try:
        if word == "now":
            return now
        if word in _DAYS:
            return datetime.combine(now + timedelta(days=_DAYS[word]), time(), UTC)
        if _DURATION.fullmatch(text.strip()) and not word.isdecimal():
            return now - timedelta(seconds=seconds(text))
        return datetime.fromisoformat(text)
    except (ValueError, OverflowError) as cause:
        raise typer.BadParameter(
            f"{text!r} is not a time: write 2026-05-01, 2026-05-01T17:30:00Z, yesterday, or 3d for 3 days ago"
        ) from cause


def json_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as cause:
        raise typer.BadParameter(f"is not JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise typer.BadParameter('is not a JSON object: write {"key": "value"}')
    return value


def memory_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as cause:
        raise typer.BadParameter(f"{text!r} {NO_MEMORY_ID}") from cause


def amount(text: str) -> int | float:
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100
        return float(text) if "." in text else int(text)
    except ValueError as cause:
        raise typer.BadParameter(f"{text!r} is not an amount: write 500, 0.2 or 20%") from cause


@dataclass(frozen=True)
class OptionSpec:
    """The option of a field; `flags` default to its name, `help` to its description."""

    flags: str | None = None
    metavar: str | None = None
    help: str | None = None
    parser: Callable[[str], Any] | None = None
    panel: str | None = None


# A field that is missing here has an option of its own name.
OPTION_SPECS: Mapping[str, OptionSpec] = {
    "after": OptionSpec(
        metavar="TIME", parser=moment, help="At or after this time: 2026-05-01, yesterday, or 3d for three days ago."
    ),
    "archive_sources_after_days": OptionSpec("--after-days"),
    "archived_after": OptionSpec(metavar="TIME", parser=moment, panel=FILTERS),
    "archived_before": OptionSpec(metavar="TIME", parser=moment, panel=FILTERS),
    "as_of": OptionSpec(metavar="TIME", parser=moment, help="What was valid at this time."),
    "asked_at": OptionSpec(
        metavar="TIME", parser=moment, help="The time that counts as now; the current time if absent."
    ),
    "before": OptionSpec(metavar="TIME", parser=moment, help="Before this time."),
    "consolidate": OptionSpec(
        "--automatic", "on|off", "Consolidate in the background, or not; requires memory:admin.", on_or_off
    ),
    "context": OptionSpec("--add", help="Text to append."),
    "cursor": OptionSpec(help="The cursor printed with the previous page."),
    "descending": OptionSpec("--descending/--ascending", help="Sort order."),
    "encoding": OptionSpec(metavar="NAME", help="Count tokens in this encoding: o200k_base or cl100k_base."),
    "entities": OptionSpec("--entity", "NAME", "Mentions this entity; repeatable."),
    "external_id": OptionSpec(metavar="ID", help="Your own id of the memory."),
    "extract_facts": OptionSpec("--facts", "on|off", "Read new episodic memories for facts.", on_or_off),
    "format": OptionSpec(metavar="FORM", help="markdown, text or json; --json prints the whole result instead."),
    "idempotency_key": OptionSpec(metavar="KEY", help="A repeated key stores nothing."),
    "importance": OptionSpec(metavar="0..1"),
    "inactivity_seconds": OptionSpec(
        "--inactivity", "TIME", "Time without a message, for that trigger: 30m.", seconds_or_none
    ),
    "k": OptionSpec("-k --k", help="Maximum number."),
    "keywords": OptionSpec("--keyword", "WORD", "Has this keyword; repeatable."),
    "limit": OptionSpec(help="Maximum number."),
    "memory_types": OptionSpec("--type", "LAYER", "working, episodic, semantic or procedural; repeatable."),
    "memory_type": OptionSpec("--type", "LAYER", "working, episodic (if absent), semantic or procedural."),
    "metadata": OptionSpec(metavar="JSON", parser=json_object),
    "min_fit": OptionSpec(
        metavar="0..1", panel=FILTERS, help="Minimum probability that the query is about stored memories."
    ),
    "min_importance": OptionSpec(metavar="0..1", help="Minimum importance."),
    "min_score": OptionSpec(metavar="0..1", help="Minimum cosine similarity.", panel=FILTERS),
    "model": OptionSpec(metavar="MODEL", help="Count tokens with the encoding of this model."),
    "namespace": OptionSpec(metavar="NAME"),
    "provider": OptionSpec("--summaries", "PROVIDER"),
    "session_id": OptionSpec("--session", "ID"),
    "speaker": OptionSpec(metavar="NAME"),
    "summarize": OptionSpec("--summary/--no-summary"),
    "tags": OptionSpec("--tag", "TAG", "Repeatable."),
    "target": OptionSpec(metavar="AMOUNT", parser=amount),
    "task_id": OptionSpec("--task", "ID"),
    "timestamp": OptionSpec(
        "--time",
        "TIME",
        "When it was said or happened (2026-05-01T17:30:00Z, yesterday, 3d: 3 days ago); now if absent.",
        moment,
    ),
    "trigger": OptionSpec(metavar="TRIGGER"),
    "ttl_seconds": OptionSpec("--ttl", "TIME", "Time until it expires: 90s, 15m, 24h, 30d, 2w, 1y.", seconds),
    "user_id": OptionSpec("--user", "ID"),
}


def typed_fields(context: typer.Context, model: type[BaseModel]) -> dict[str, Any]:
    """Returns the fields of the model that the command line sets."""
    return {
        name: value
        for name, value in context.params.items()
        if name in model.model_fields and value is not None and value != ()
    }


def given(context: typer.Context, model: type[ParamsT], **more: Any) -> ParamsT:
    """Returns the model with the options of the command line. Raises ValidationError."""
    filled = typed_fields(context, model)
    if context.params.get("shared"):
        filled["user_id"] = [*([filled["user_id"]] if "user_id" in filled else []), None]
    return model.model_validate(filled | more)


def printed_as_json(context: typer.Context, result: Any) -> bool:
    """Prints a model or JSON values if --json is set; returns whether it is."""
    if not context.params["as_json"]:
        return False
    if isinstance(result, BaseModel):
        typer.echo(result.model_dump_json(indent=2))
    else:
        typer.echo(json.dumps(result, indent=2, ensure_ascii=False))
    return True


def option(name: str, default: Any, /, *flags: str, **about: Any) -> Callable[[CommandT], CommandT]:
    """Adds an option whose value the command reads from its context."""
    kind = bool if isinstance(default, bool) else str | None
    return lambda command: _with(command, {name: (Annotated[kind, typer.Option(*flags, **about)], default)})


with_json = option("as_json", False, "--json", help="Print the whole result as JSON.")


def access(command: CommandT) -> CommandT:
    for name, metavar, text in (
        ("url", "URL", "The service. Default: AGENTCORE_URL."),
        ("token", "JWT", "The agent's token. Default: AGENTCORE_TOKEN, which other users of the machine cannot see."),
        (
            "agent",
            "ID",
            "Instead of a token: make one for this agent, with the secret of the embedded service's home. "
            "It is sent to this machine, or to --url, only.",
        ),
    ):
        command = option(name, None, f"--{name}", metavar=metavar, rich_help_panel=ACCESS, help=text)(command)
    return command


def client(command: CommandT) -> CommandT:
    return access(with_json(command))


def fields(
    model: type[BaseModel], names: Sequence[str], /, panel: str | None = None, *, defaults: bool = True, **helps: str
) -> Callable[[CommandT], CommandT]:
    """Adds an option for each field; `helps` replaces descriptions. Without `defaults`, every default is None."""
    added = {name: _option(model, name, panel, helps.get(name)) for name in names}
    if not defaults:
        added = {name: (annotation, None) for name, (annotation, _) in added.items()}
    return lambda command: _with(command, added)


_FILTERS = (
    "memory_types",
    "task_id",
    "session_id",
    "user_id",
    "namespace",
    "after",
    "before",
    "entities",
    "keywords",
    "tags",
    "min_importance",
)


def filters(model: type[BaseModel]) -> Callable[[CommandT], CommandT]:
    """Adds the filters of the model."""
    names = [name for name in _FILTERS if name in model.model_fields]
    text = "Memories without a user; with --user the user's, too."
    shared = option("shared", False, "--shared", rich_help_panel=FILTERS, help=text)
    filtered = fields(model, names, panel=FILTERS, tags="Has this tag; repeatable.")
    return lambda command: shared(filtered(command))


def _option(model: type[BaseModel], name: str, panel: str | None, help: str | None) -> tuple[Any, Any]:
    field, spec = model.model_fields[name], OPTION_SPECS.get(name, OptionSpec())
    kind = str if spec.parser else _type(field.annotation)
    default = None if field.default is PydanticUndefined else field.default
    own_name = name.replace("_", "-")
    both = kind is bool and default is None
    flags = spec.flags or (f"--{own_name}/--not-{own_name}" if both else f"--{own_name}")
    declared = typer.Option(
        *flags.split(),
        metavar=spec.metavar,
        parser=spec.parser,
        help=help or spec.help or field.description,
        rich_help_panel=panel or spec.panel,
    )
    return Annotated[kind | None, declared], default


def _type(annotation: Any) -> Any:
    """Returns the type without None and constraints, which only the model validates."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin in (Annotated, Union, UnionType):
        return _type(inner[0])
    return GenericAlias(list, (_type(inner[0]),)) if origin is list else annotation


def _with(command: CommandT, added: Mapping[str, tuple[Any, Any]]) -> CommandT:
    signature = inspect.signature(command, eval_str=True)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        for name, (annotation, default) in added.items()
    ]

    @functools.wraps(command)
    def called(**values: Any) -> None:
        command(**{name: value for name, value in values.items() if name not in added})

    vars(called)["__signature__"] = signature.replace(parameters=[*signature.parameters.values(), *options])
    return cast(CommandT, called)
