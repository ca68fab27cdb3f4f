"""Writes the derived pages: methods, settings, commands, decisions, and .env.example. A test compares them."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from rich.text import Text

from agentcore.cli import COMMANDS, MODULES
from agentcore.cli.app import app
from agentcore.config import Settings
from agentcore.limits import LIMITS
from agentcore.memory.jsonrpc import DISCOVER, json_schemas, memory_methods
from agentcore.memory.params.memories import Filters
from agentcore.rpc import RpcMethod

ROOT = Path(__file__).resolve().parents[1]
Schema = dict[str, Any]

METHODS_HEAD = """\
# Methods

All methods are JSON-RPC 2.0 calls to `POST /api/v1/jsonrpc` with `Authorization: Bearer <JWT>`. The token's
subject is the agent: no parameter names whose memory is meant. Params go by name; where a method says so, an
array gives the first ones in order. Unknown fields are refused by name. Failures are those of
[errors.md](errors.md); the machine-readable forms are [openrpc.json](openrpc.json) (also the answer of
`rpc.discover`, which needs a token but no scope) and [schemas.json](schemas.json).

This page is written by `scripts/write_reference.py`.

"""
FILTERS_HEAD = """\
## Filters

Shared by several methods. Every filter given must hold; a list matches any of its values, and an empty list
is refused: leave the filter out to set none. Entities and keywords are compared without regard to case.

"""
OBJECTS_HEAD = "## Objects\n"

ENV_HEAD = """\
# Every setting of AgentCore Memory: its meaning, its unit, its default. scripts/write_reference.py wrote it.
# Copy this file to `.env` beside where the service is started, and take the `#` off the lines you change;
# variables of the environment go first. A setting without a default after its `=` is unset.
# The archive in S3 also needs what boto3 reads for itself, from the environment and never from this file:
# AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_DEFAULT_REGION and the like.
"""
SETTINGS_HEAD = """\
# Settings

Every setting is a variable of the environment, or a line of a file `.env` where the service is started; the
environment goes first. One without a default is unset. The archive in S3 also needs what boto3 reads for
itself: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_DEFAULT_REGION` and the like. A wrong configuration
stops the start, with every problem and its fix.

This page, and the file `.env.example` with the same to copy, are written by `scripts/write_reference.py`.
"""
SETTINGS_TABLE = "| Setting | Default | Unit | Meaning |\n| --- | --- | --- | --- |\n"
LIMITS_HEAD = """\
# Limits

What one request, response or connection may take. `memory.capabilities` reports the values in force as
`limits`, by the names below. Beyond a limit a request is refused with a clear error, and nothing is done.
Error codes are those of [errors.md](errors.md).

This page is written by `scripts/write_reference.py`.

| What | Limit | Name | Setting | Beyond it |
| --- | --- | --- | --- | --- |
"""
DECISIONS_HEAD = """\
# Decisions

Design decisions with their reasons, and what was tried and rejected.

This page is written by `scripts/write_reference.py`.

| | Decision | Status |
| --- | --- | --- |
"""
COMMANDS_HEAD = """\
# Command line

What `agentcore --help` and the `--help` of each command say. Answers go to standard output, everything else
to standard error; a command that failed ends with 1, one that was called wrongly with 2.

This page is written by `scripts/write_reference.py`.
"""
COMMANDS_TABLE = "| Argument or option | Default | Meaning |\n| --- | --- | --- |\n"
# Units by the suffix of a setting's name.
UNITS = {
    "_seconds": "seconds",
    "_ttl": "seconds",
    "_bytes": "bytes",
    "_tokens": "tokens",
    "_threads": "threads",
    "_dimensions": "numbers",
    "_attempts": "tries",
    "_batch_size": "texts",
    "_pool_size": "connections",
    "_entries": "vectors",
    "_capacity": "memories",
    "_search_limit": "memories",
    "_calls": "calls",
    "_per_minute": "units a minute",
    "_connections": "connections",
    "_concurrency": "calls",
    "_timeout_ms": "milliseconds",
    "_recall": "share",
    "workers": "processes",
}
_SECTION = re.compile(r"^    # (?P<title>.+)$|^    (?P<field>[a-z_0-9]+): ", re.MULTILINE)


def reference_files() -> dict[str, str]:
    return {
        "docs/reference/methods.md": methods_page(),
        "docs/reference/settings.md": settings_page(),
        "docs/reference/limits.md": limits_page(),
        "docs/reference/cli.md": commands_page(),
        "docs/decisions/index.md": decisions_page(),
        ".env.example": env_example(),
    }


def limits_page() -> str:
    rows = (
        f"| {limit.what} | {limit.value:,} {limit.unit} | `{limit.name}` | "
        f"{f'`{limit.setting}`' if limit.setting else ''} | {limit.beyond} |\n"
        for limit in LIMITS
    )
    return LIMITS_HEAD + "".join(rows)


# --- methods -----------------------------------------------------------------------------------------------


def methods_page() -> str:
    page = _Page()
    parts = [METHODS_HEAD, *map(page.method, page.methods)]
    parts += [FILTERS_HEAD, page.table(page.filters, given=True), OBJECTS_HEAD]
    parts += [page.object(name) for name in sorted(page.objects) if name not in page.bodies]
    return "\n".join(part.strip("\n") + "\n" for part in parts)


class _Page:
    def __init__(self) -> None:
        self.methods = [method for method in memory_methods() if method.name != DISCOVER]
        self.schemas, self.objects = json_schemas(self.methods, "#/{model}")
        self.filters: Schema = Filters.model_json_schema(ref_template="#/{model}")["properties"]
        # The top-level params or result of a method are described at the method, not among the objects.
        self.bodies = {_name(schema): key for key, schema in self.schemas.items() if "$ref" in schema}
        params = [schema for key, schema in self.schemas.items() if key.endswith(".params")]
        self.given = set(self._reached(params))

    def _reached(self, schemas: Any) -> Iterator[str]:
        pending, seen = [schemas], set[str]()
        while pending:
            current = pending.pop()
            if isinstance(current, list):
                pending += current
            elif isinstance(current, dict):
                pending += current.values()
                if "$ref" in current and (name := _name(current)) not in seen:
                    seen.add(name)
                    pending.append(self.objects[name])
                    yield name

    def method(self, method: RpcMethod[Any]) -> str:
        params, result = (self._body(f"{method.name}.{part}") for part in ("params", "result"))
        fields: Schema = params.get("properties", {})
        shared = self._filters_of(method, fields)
        inherited = set(shared)
        names = [name for name in dict.fromkeys([*method.positional, *fields]) if name not in inherited]
        lines = [f"## {method.name}", "", method.summary, "", f"Scope `{method.scope}`."]
        if method.positional:
            lines[-1] += f" By position: {', '.join(f'`{name}`' for name in method.positional)}."
        lines += ["", "Params:" if names else "Params: the filters alone." if fields else "Params: none.", ""]
        if names:
            own = {name: fields[name] for name in names}
            lines += [self.table(own, given=True, required=params.get("required", []))]
        if shared:
            lines += [f"[Filters](#filters): {', '.join(f'`{name}`' for name in shared)}.", ""]
        return "\n".join([*lines, "Result:", "", self.table(result["properties"])])

    def _body(self, key: str) -> Schema:
        schema: Schema = self.schemas[key]
        return self.objects[_name(schema)] if "$ref" in schema else schema

    def _filters_of(self, method: RpcMethod[Any], fields: Schema) -> list[str]:
        """Returns the shared filters: keyword params without a description of the method's own."""
        if not issubclass(method.params, Filters):
            return []
        return [
            name
            for name, schema in self.filters.items()
            if name not in method.positional and self._cells(fields[name]) == self._cells(schema)
        ]

    def _cells(self, schema: Schema) -> tuple[str, str]:
        return self._type(schema), schema.get("description", "")

    def object(self, name: str) -> str:
        schema = self.objects[name]
        head = f"### {name}\n\n{schema.get('description', '')}".strip() + "\n\n"
        if "enum" in schema:
            return f"{head}One of {_values(schema)}."
        required = schema.get("required", [])
        return head + self.table(schema["properties"], given=name in self.given, required=required)

    def table(self, fields: Schema, *, given: bool = False, required: Sequence[str] = ()) -> str:
        head = ["Field", "Type", *["Default"] * given, "Meaning"]
        rows = [head, ["---"] * len(head)]
        for name, schema in fields.items():
            kind, meaning = self._cells(schema)
            default = ["required" if name in required else _default(schema)] * given
            rows.append([f"`{name}`", kind, *default, meaning])
        return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"

    def _type(self, schema: Schema) -> str:
        if "$ref" in schema:
            return self._link(_name(schema))
        if "anyOf" in schema:
            return " or ".join(dict.fromkeys(self._type(each) for each in schema["anyOf"]))
        if schema.get("type") == "array":
            return f"list{_limits(schema, 'Items')} of {self._type(schema.get('items', {}))}"
        if schema.get("type") == "object":
            of = schema.get("additionalProperties")
            return f"object of {self._type(of)}" if isinstance(of, dict) else "object"
        return _values(schema) if "enum" in schema else _plain_type(schema)

    def _link(self, name: str) -> str:
        if name not in self.bodies:
            return f"[{name}](#{name.lower()})"
        method, _, part = self.bodies[name].rpartition(".")
        return f"[{part} of {method}](#{method.replace('.', '')})"


def _name(schema: Schema) -> str:
    return str(schema["$ref"]).rpartition("/")[2]


def _values(schema: Schema) -> str:
    return ", ".join(f"`{value}`" for value in schema["enum"])


def _default(schema: Schema) -> str:
    default = schema.get("default", "")
    if default == "":
        return "empty"
    return f"`{default}`" if isinstance(default, str) else f"`{json.dumps(default)}`"


def _plain_type(schema: Schema) -> str:
    match schema.get("type"):
        case "string":
            kind = {"uuid": "UUID", "date-time": "time (ISO 8601)"}.get(schema.get("format", ""), "text")
            return kind + _limits(schema, "Length", " characters")
        case "integer" | "number" as kind:
            word = "whole number" if kind == "integer" else "number"
            above = f" above {schema['exclusiveMinimum']}" if "exclusiveMinimum" in schema else ""
            return word + above + _limits(schema, "imum")
        case "boolean" | "null" as kind:
            return str(kind)
        case _:
            return "any JSON"


def _limits(schema: Schema, of: str, unit: str = "") -> str:
    least, most = schema.get(f"min{of}"), schema.get(f"max{of}")
    if most is None:
        return "" if least is None else f" (at least {least:,g}{unit})"
    span = f"at most {int(most):,}" if least is None else f"{least:,g} to {int(most):,}"
    return f" ({span}{unit})"


# --- settings ----------------------------------------------------------------------------------------------


def env_example() -> str:
    """Returns every setting in the order and under the headings of `config.py`."""
    lines = [ENV_HEAD]
    for title, name in sections():
        lines += [f"\n# --- {title} ---\n"] if name is None else [_setting(name, Settings.model_fields[name])]
    return "\n".join(lines)


def sections() -> Iterator[tuple[str, str | None]]:
    """Yields the headings (with no name) and settings in source order."""
    title = ""
    for found in _SECTION.finditer(inspect.getsource(Settings)):
        if found["title"]:
            title = found["title"]
            yield title, None
        elif found["field"] in Settings.model_fields:
            yield title, found["field"]


def _setting(name: str, field: FieldInfo) -> str:
    unit = unit_of(name)
    measured = "" if unit is None else f" Unit: {unit}."
    return f"# {field.description}{measured}\n#{name.upper()}={default_text(field)}\n"


def unit_of(name: str) -> str | None:
    return next((unit for end, unit in UNITS.items() if name.endswith(end)), None)


def default_text(field: FieldInfo) -> str:
    default = field.default
    if default is None or default is PydanticUndefined or isinstance(default, SecretStr):
        return ""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)


def settings_page() -> str:
    parts = [SETTINGS_HEAD]
    for title, name in sections():
        if name is None:
            parts.append(f"\n## {title}\n\n{SETTINGS_TABLE}")
        else:
            field = Settings.model_fields[name]
            default = f"`{text}`" if (text := default_text(field)) else ""
            parts.append(_row(f"`{name.upper()}`", default, unit_of(name) or "", field.description or ""))
    return "".join(parts)


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


# --- commands ---------------------------------------------------------------------------------------------


def commands_page() -> str:
    for module in MODULES:
        import_module(module)
    group: Any = typer.main.get_command(app)
    panels: dict[str, list[str]] = {}
    # In the order of COMMANDS, independent of earlier imports in this process.
    for name in COMMANDS:
        command = group.commands[name]
        panels.setdefault(command.rich_help_panel, []).append(_command(f"agentcore {name}", command))
    return COMMANDS_HEAD + "".join(f"\n## {panel}\n\n" + "\n".join(sections) for panel, sections in panels.items())


def _command(name: str, command: Any) -> str:
    context = typer.Context(command, info_name=name)
    usage = " ".join([name, *command.collect_usage_pieces(context)])
    parts = [f"### {name}\n", f"{_plain(command.help)}\n", f"```text\n{usage}\n```\n"]
    params = [param for param in command.params if not param.hidden and param.name != "help"]
    if params:
        parts.append(COMMANDS_TABLE + "".join(_param_row(param, context) for param in params))
    if command.epilog:
        _, _, lines = _plain(command.epilog).partition("\n")
        parts.append(f"Examples:\n\n```text\n{inspect.cleandoc(lines)}\n```\n")
    below = getattr(command, "commands", {})
    return "\n".join([*parts, *(_command(f"{name} {each}", inner) for each, inner in below.items())])


def _param_row(param: Any, context: Any) -> str:
    if param.param_type_name == "argument":
        named = param.display_name_raw
    else:
        flag = getattr(param, "is_flag", False)
        named = " / ".join([*param.opts, *param.secondary_opts]) + (
            "" if flag else f" {param.display_type_rich(ctx=context)}"
        )
    told = isinstance(param.default, str | int | float) and not isinstance(param.default, bool)
    default = "required" if param.required else f"`{param.default}`" if told else ""
    return _row(f"`{named}`", default, _plain(param.help))


def _plain(text: str | None) -> str:
    return Text.from_markup(inspect.cleandoc(text or "")).plain.strip("\n")


# --- decisions ---------------------------------------------------------------------------------------------


# Records that others include, by the number that includes them.
MERGED_DECISIONS = {
    6: (50,),
    25: (63,),
    42: (64,),
    51: (12, 52, 68),
    54: (56, 61, 67),
    60: (16, 19, 20, 21, 22, 57, 58, 59),
    69: (14, 17),
}
# The architecture page has the packages; three typed conversations were a record, not a decision.
REMOVED_DECISIONS = (13, 41, 62)


def decisions_page() -> str:
    rows = []
    for path in sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        number, _, title = text.partition("\n")[0].removeprefix("# ").partition(". ")
        [status] = re.findall(r"^Status: (.+)$", text, re.MULTILINE)
        rows.append(_row(number, f"[{title}]({path.name})", status))
    merged = "; ".join(f"{', '.join(map(str, old))} in {new}" for new, old in MERGED_DECISIONS.items())
    return f"{DECISIONS_HEAD}{''.join(rows)}\nMerged: {merged}.\n"


if __name__ == "__main__":
    for path, text in reference_files().items():
        (ROOT / path).write_text(text, encoding="utf-8")
        print(f"wrote {path}")
