"""demo: imports a conversation into a temporary memory, and asks ten questions about it."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Any

import typer
from rich.rule import Rule
from rich.text import Text

from agentcore.cli import options
from agentcore.cli.app import app, out, say, show
from agentcore.cli.importing import Import, Tally
from agentcore.cli.lines import read_lines
from agentcore.config import Settings, environment_settings
from agentcore.memory.api import Caller, MemoryApi
from agentcore.memory.models import MemorySummary
from agentcore.memory.params.memories import GetContextParams, RetrieveParams
from agentcore.runtime import open_runtime
from agentcore.telemetry import configure_logging

DATA = files("agentcore.cli") / "demo_data"
AGENT = "mira-assistant"
SHOWN = 3
CONTEXT_TOKENS = 600
# A context may shorten a memory.
CHARS_COMPARED = 40
# The embedder is the caller's choice; the caller's databases, tokens and homes are not used.
KEPT_SETTINGS = re.compile(r"embedding_|openai_|cohere_|agentcore_cache$")


@app.command("demo", "agentcore demo", "agentcore demo --json")
@options.with_json
def demo(context: typer.Context) -> None:
    """Import a conversation into a temporary service and ask it ten questions.

    It prints the three memories found first, how each was ranked, and whether one
    of them gives the current answer: facts change in the course of the
    conversation. Its PostgreSQL, Redis and home are removed at the end.
    """
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, lambda number, frame: sys.exit(128 + number))
    configure_logging("WARNING", "text")
    with tempfile.TemporaryDirectory(prefix="agentcore-demo-", ignore_cleanup_errors=True) as home:
        say("starting PostgreSQL and Redis in a temporary home ...")
        results = asyncio.run(_asked(_settings(Path(home)), printed=not context.params["as_json"]))
    if not options.printed_as_json(context, results):
        typer.echo(f"\n{summary(results)}")


def summary(results: Sequence[Mapping[str, Any]]) -> str:
    missed = [each["question"] for each in results if not each["current_shown"]]
    count = f"{len(results) - len(missed)} of {len(results)} questions"
    return "\n".join(
        [
            f"{count}: a current answer is among the {SHOWN} memories shown.",
            *(f"missed: {question}" for question in missed),
        ]
    )


def _settings(home: Path) -> Settings:
    given, fields = environment_settings(), Settings.model_fields
    chosen = {
        name: getattr(given, name) if KEPT_SETTINGS.match(name) else each.get_default(call_default_factory=True)
        for name, each in fields.items()
    }
    return Settings(_env_file=None, **{**chosen, "agentcore_home": home})


async def _asked(settings: Settings, *, printed: bool) -> list[dict[str, Any]]:
    questions = json.loads((DATA / "questions.json").read_text(encoding="utf-8"))
    async with open_runtime(settings.model_copy(update={"maintenance_in_server": False})) as runtime:
        memory = runtime.manager_for(Caller(AGENT))
        texts = await _import(memory)
        say("comparing new messages with earlier ones, as the service does in the background ...")
        await runtime.jobs.run_pending()
        return [await _ask(memory, asked, texts, printed=printed) for asked in questions]


async def _import(memory: MemoryApi) -> list[str]:
    texts = []
    importing = Import(memory, Tally(), strict=True, forced=False)
    for numbered in read_lines(BytesIO((DATA / "conversation.jsonl").read_bytes())):
        texts.append(getattr(numbered.line, "text", ""))
        await importing.take(numbered)
    await importing.finish()
    say(f"imported a conversation of {len(texts)} lines")
    return texts


async def _ask(memory: MemoryApi, asked: Mapping[str, Any], texts: Sequence[str], *, printed: bool) -> dict[str, Any]:
    found = (
        await memory.retrieve(
            RetrieveParams(query=asked["question"], k=SHOWN, asked_at=asked["asked_at"], explain=True)
        )
    ).memories
    built = await memory.get_context(
        GetContextParams(query=asked["question"], max_tokens=CONTEXT_TOKENS, asked_at=asked["asked_at"])
    )
    labels = {texts[line - 1]: label for label in ("outdated", "current") for line in asked[label]}
    marks = [labels.get(each.content, "") for each in found]
    if printed:
        typer.echo()
        out.print(Rule(Text(asked["question"]), align="left"))
        show(("answer", "score", "= sum of", "when", "who", "memory"), map(_answer, found, marks))
        verdict = _verdict(marks, built.context, [texts[line - 1] for line in asked["current"]])
        typer.echo(
            f"{verdict}; context: {built.token_count} tokens of {CONTEXT_TOKENS}, from {len(built.memory_ids)} memories"
        )
    return {
        "question": asked["question"],
        "current_shown": "current" in marks,
        "shown": [each.content for each in found],
        "labels": marks,
    }


def _verdict(marks: Sequence[str], context: str, current: Sequence[str]) -> str:
    if "current" in marks:
        return "current answer shown"
    is_in_context = any(each[:CHARS_COMPARED] in context for each in current)
    return "no current answer shown, but in the context" if is_in_context else "no current answer shown"


def _answer(memory: MemorySummary, mark: str) -> Sequence[str]:
    terms = " + ".join(
        f"{name} {term.contribution:.2f}" for name, term in (memory.terms or {}).items() if round(term.contribution, 2)
    )
    when = f"{memory.timestamp:%d %b}"
    return mark, f"{memory.score or 0:.2f}", terms, when, memory.speaker or "", memory.content
