"""The options that several commands share, and how what was typed becomes params of the contract.

An option is named as the field it fills; `given` collects those of one model.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel

from agentcore.memory.models import MemoryType

ParamsT = TypeVar("ParamsT", bound=BaseModel)

_UNITS = {"": 1, "s": 1, "m": 60, "h": 3_600, "d": 86_400}
_ACCESS = "Which service, as whom"
_FILTERS = "Which memories"


def seconds(text: str) -> int:
    """3600, 90s, 15m, 24h or 30d."""
    match = re.fullmatch(r"(\d{1,12})([smhd]?)", text.strip())
    if match is None or int(match[1]) == 0:
        raise typer.BadParameter(f"{text!r} is no length of time: write 3600, 90s, 15m, 24h or 30d")
    return int(match[1]) * _UNITS[match[2]]


def seconds_or_none(text: str) -> int:
    """The same, or 0."""
    return 0 if text.strip() == "0" else seconds(text)


def moment(text: str) -> datetime:
    """An ISO 8601 date or time; without a zone it is UTC, which the contract's models add."""
    try:
        return datetime.fromisoformat(text)
    except ValueError as cause:
        raise typer.BadParameter(f"{text!r} is no time: write 2026-05-01 or 2026-05-01T17:30:00Z") from cause


def json_object(text: str) -> dict[str, Any]:
    """A JSON object, as metadata is."""
    try:
        value = json.loads(text)
    except ValueError as cause:
        raise typer.BadParameter(f"is not JSON: {cause}") from cause
    if not isinstance(value, dict):
        raise typer.BadParameter('is not a JSON object: write {"key": "value"}')
    return value


def amount(text: str) -> int | float:
    """A count (500), a share (0.2) or a percentage (20%); shares are floats, counts ints."""
    try:
        if text.endswith("%"):
            return float(text[:-1]) / 100
        return float(text) if "." in text else int(text)
    except ValueError as cause:
        raise typer.BadParameter(f"{text!r} is no amount: write 500, 0.2 or 20%") from cause


def given(context: typer.Context, model: type[ParamsT], **more: Any) -> ParamsT:
    """The model, filled from the options that were given; raises ValidationError by the options' names."""
    filled = {name: value for name, value in context.params.items()
              if name in model.model_fields and value is not None and value != ()}
    if context.params.get("shared"):
        filled["user_id"] = [*([filled["user_id"]] if "user_id" in filled else []), None]
    return model.model_validate(filled | more)


Url = Annotated[str | None, typer.Option(
    "--url", metavar="URL", rich_help_panel=_ACCESS, help="The service. Default: AGENTCORE_URL.")]
Token = Annotated[str | None, typer.Option(
    "--token", metavar="JWT", rich_help_panel=_ACCESS,
    help="The agent's token. Default: AGENTCORE_TOKEN, which other users of the machine cannot see.")]
Agent = Annotated[str | None, typer.Option(
    "--agent", metavar="ID", rich_help_panel=_ACCESS,
    help="Instead of a token: make one for this agent, with the secret of the embedded service's home.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the whole result as JSON.")]

MemoryTypes = Annotated[list[MemoryType] | None, typer.Option(
    "--type", metavar="LAYER", help="working, episodic, semantic or procedural; may be repeated.",
    rich_help_panel=_FILTERS)]
TaskId = Annotated[str | None, typer.Option("--task", metavar="ID", rich_help_panel=_FILTERS)]
SessionId = Annotated[str | None, typer.Option("--session", metavar="ID", rich_help_panel=_FILTERS)]
UserId = Annotated[str | None, typer.Option("--user", metavar="ID", rich_help_panel=_FILTERS)]
Shared = Annotated[bool, typer.Option(
    "--shared", help="Memories without a user, beside those of --user if given.", rich_help_panel=_FILTERS)]
Namespace = Annotated[str | None, typer.Option("--namespace", metavar="NAME", rich_help_panel=_FILTERS)]
After = Annotated[datetime | None, typer.Option(
    "--after", parser=moment, metavar="TIME", help="At or after this time.", rich_help_panel=_FILTERS)]
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
    "--min-fit", metavar="0..1", help="Stay silent below this probability that anything found answers.",
    rich_help_panel=_FILTERS)]
Gate = Annotated[str, typer.Option(
    metavar="off|cautious|general_knowledge",
    help="What is passed over: nothing, greetings and what needs no memory, or general knowledge too.")]
AsOf = Annotated[datetime | None, typer.Option(
    "--as-of", parser=moment, metavar="TIME", help="What held at this time.")]
MinScore = Annotated[float | None, typer.Option(
    "--min-score", metavar="0..1", help="At least this similar (cosine).", rich_help_panel=_FILTERS)]
