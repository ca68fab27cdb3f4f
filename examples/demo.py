"""The demonstration behind `make demo`: serve, import a conversation, ask it ten questions, stop.

Everything happens in a temporary home, which is removed at the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from agentcore.client import MemoryClient
from agentcore.config import Settings
from agentcore.memory.models import MemorySummary
from agentcore.params import GetContextParams, RetrieveParams

HERE = Path(__file__).resolve().parent
AGENT = "mira-assistant"
SHOWN = 3
FOUND = 5
CONTEXT_TOKENS = 600
STOP_SECONDS = 30
AGENTCORE = [sys.executable, "-m", "agentcore"]
# The embedder is the caller's choice; databases, tokens and homes of the caller stay out of this.
KEPT_SETTINGS = re.compile(r"EMBEDDING_|OPENAI_|COHERE_|AGENTCORE_CACHE$")

console = Console(highlight=False)


def environment_of(home: Path) -> dict[str, str]:
    settings = {name.upper() for name in Settings.model_fields}
    kept = {name: value for name, value in os.environ.items()
            if name not in settings or KEPT_SETTINGS.match(name)}
    return {**kept, "PYTHONPATH": str(HERE.parent), "AGENTCORE_HOME": str(home), "LOG_LEVEL": "WARNING"}


@contextmanager
def service(home: Path, environment: Mapping[str, str]) -> Iterator[str]:
    """A running service; gives its URL, and leaves no process behind."""
    process = subprocess.Popen([*AGENTCORE, "serve", "--port", "0"], cwd=home, env=environment, text=True,
                               stdout=subprocess.PIPE)
    try:
        for line in process.stdout or ():
            if match := re.search(r"listens on (\S+)", line):
                yield match[1]
                break
        else:
            sys.exit(f"demo: the service did not start (exit code {process.wait()}).")
    finally:
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def terms(memory: MemorySummary) -> str:
    """The score, taken apart: what each term adds."""
    parts = [f"{name} {term.contribution:.2f}" for name, term in (memory.terms or {}).items()
             if round(term.contribution, 2)]
    return " + ".join(parts)


def answers(memories: Sequence[MemorySummary]) -> Table:
    table = Table("score", "= sum of", "when", "who", "memory", box=None, pad_edge=False)
    for memory in memories[:SHOWN]:
        table.add_row(f"{memory.score or 0:.2f}", terms(memory), f"{memory.timestamp:%d %b}",
                      Text(memory.speaker or ""), Text(memory.content))
    return table


async def ask(memory: MemoryClient, asked: Mapping[str, Any]) -> bool:
    """Ask one question and print what comes back; whether every expected word is in it."""
    found = await memory.retrieve(RetrieveParams(
        query=asked["question"], k=FOUND, asked_at=asked["asked_at"], explain=True))
    built = await memory.get_context(GetContextParams(
        query=asked["question"], max_tokens=CONTEXT_TOKENS, asked_at=asked["asked_at"]))
    text = "\n".join(each.content for each in found.memories).casefold()
    answered = all(word.casefold() in text for word in asked["expect"])
    console.print()
    console.rule(Text(asked["question"]), align="left")
    console.print(answers(found.memories))
    verdict = Text("found", "green") if answered else Text("not found", "red")
    console.print(Text.assemble(verdict, f": {', '.join(asked['expect'])}", style="bold"),
                  Text(f"context: {built.token_count} tokens of {CONTEXT_TOKENS}, "
                       f"from {len(built.memory_ids)} memories", "dim"), sep="   ")
    return answered


async def converse(url: str, token: str) -> None:
    questions = json.loads((HERE / "questions.json").read_text(encoding="utf-8"))
    async with MemoryClient(url, token) as memory:
        answered = [await ask(memory, asked) for asked in questions]
        first = questions[0]
        built = await memory.get_context(GetContextParams(
            query=first["question"], max_tokens=CONTEXT_TOKENS, asked_at=first["asked_at"]))
    console.print()
    console.print(Panel(Text(built.context), title="the context of the first question, as a prompt gets it",
                        subtitle=f"{built.token_count} tokens"))
    console.print(f"\n{sum(answered)} of {len(answered)} questions: every expected word is among the "
                  f"{FOUND} memories found.")


def end(number: int, frame: object) -> None:
    """Leave by the way that stops the service and removes the home."""
    sys.exit(128 + number)


def main() -> None:
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, end)
    home = Path(tempfile.mkdtemp(prefix="agentcore-demo-"))
    environment = environment_of(home)
    try:
        console.print("starting PostgreSQL, Redis and the service in a temporary home ...")
        with service(home, environment) as url:
            console.print(f"the service listens on {url}; importing examples/conversation.jsonl ...")
            command = [*AGENTCORE, "import", str(HERE / "conversation.jsonl"), "--agent", AGENT, "--url", url]
            subprocess.run(command, cwd=home, env=environment, check=True)
            token = subprocess.run([*AGENTCORE, "token", "--agent", AGENT], cwd=home, env=environment,
                                   check=True, text=True, stdout=subprocess.PIPE).stdout.strip()
            asyncio.run(converse(url, token))
    except KeyboardInterrupt:
        sys.exit("demo: broken off")
    except subprocess.CalledProcessError as failed:
        sys.exit(failed.returncode)  # it has said what is wrong
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
