"""Labeled conversations: their format, and how they are stored as an agent's memories.

The format: a JSON object a line, one conversation (one agent) each, `{dataset, conversation_id, memories:
[{id, timestamp, speaker, text, session_id}], queries: [{id, text, asked_at, category, relevant_ids,
answerable}]}`, plain or gzipped. A memory may have an `interaction` instead of its text.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentcore.memory.consequences.pending_work import SUMMARY_TAG

BATCH = 100
OWN_SETS = Path(__file__).parent / "data"
SCOPE = ("speaker", "session_id", "task_id", "user_id", "namespace", "tags")
Row = dict[str, Any]
Call = Callable[[str, str, Row], Awaitable[Row]]
"""Calls a method as an agent: its id, the method, the params."""


@dataclass(frozen=True)
class Conversation:
    """One agent's memories and questions."""

    set_name: str
    agent_id: str
    memories: Sequence[Row]
    questions: Sequence[Row]

    def answerable(self) -> list[Row]:
        """Returns the questions whose evidence exists."""
        known = {each["id"] for each in self.memories}
        return [
            each for each in self.questions if each.get("answerable", True) and known.intersection(each["relevant_ids"])
        ]

    def unanswerable(self) -> list[Row]:
        """Returns the questions without an answer, including near misses."""
        return [each for each in self.questions if not each.get("answerable", True)]


def foreign(agents: Sequence[Conversation], every: int = 8) -> dict[str, list[Row]]:
    """Returns, by agent, some questions of the previous agent, which are unrelated to its memories."""
    if len(agents) < 2:
        return {}
    return {
        agent.agent_id: [
            {**question, "relevant_ids": [], "answerable": False, "category": "foreign"}
            for question in agents[place - 1].questions[::every]
        ]
        for place, agent in enumerate(agents)
    }


def files(places: Iterable[Path]) -> list[Path]:
    """Returns the named files, and the labeled sets of the named directories, by name."""
    found = [path for place in places for path in (_sets_in(place) if place.is_dir() else [place])]
    missing = [path.name for path in found if not path.is_file()]
    if missing or not found:
        raise SystemExit(f"no labelled set: {', '.join(missing) or 'nothing named'}")
    return found


def _sets_in(directory: Path) -> list[Path]:
    """Returns its conversation files, without other labeled rows."""
    return [path for path in sorted(directory.glob("*.jsonl*")) if "conversation_id" in next(_rows(path), {})]


def _rows(path: Path) -> Iterator[Row]:
    packed = path.read_bytes()
    text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode()
    return map(json.loads, text.splitlines())


def set_name(path: Path) -> str:
    """Returns `locomo` for `locomo_dev.jsonl.gz`."""
    return path.name.split(".")[0].removesuffix("_dev")


def conversations(path: Path) -> Iterator[Conversation]:
    """Yields one conversation a line."""
    name = set_name(path)
    for row in _rows(path):
        yield Conversation(name, f"{name}-{row['conversation_id']}", row["memories"], row["queries"])


def moment(text: str) -> str:
    """Returns a time of the set, with UTC for a missing zone."""
    return text if text.endswith("Z") or "+" in text[10:] else f"{text}Z"


def stored_form(memory: Row) -> Row:
    """Returns a labeled memory as params of `memory.store`, with its label's id."""
    given = {name: memory[name] for name in SCOPE if memory.get(name)}
    if "interaction" in memory:
        body: Row = {"interaction": {**memory["interaction"], "timestamp": moment(memory["timestamp"])}}
    else:
        body = {"content": memory["text"], "timestamp": moment(memory["timestamp"])}
    return {**given, **body, "external_id": memory["id"], "idempotency_key": memory["id"], "force": True}


async def remember(call: Call, conversation: Conversation, advance: Callable[[int], None]) -> None:
    """Stores the missing memories of a conversation; `advance` receives the number of newly stored ones.

    Raises SystemExit if summaries of them exist, since the set's labels do not cover summaries.
    """
    if (await call(conversation.agent_id, "memory.count", {"tags": [SUMMARY_TAG]}))["count"]:
        raise SystemExit(
            f"this home holds summaries of the sessions of {conversation.agent_id}, as a run with "
            "--summaries leaves them: figures without them need another --home"
        )
    there = (await call(conversation.agent_id, "memory.count", {}))["count"]
    if there == len(conversation.memories):
        advance(there)
        return
    for start in range(0, len(conversation.memories), BATCH):
        items = [stored_form(each) for each in conversation.memories[start : start + BATCH]]
        answer = await call(conversation.agent_id, "memory.store_batch", {"items": items})
        if not answer["success"]:
            raise RuntimeError(f"not all of {conversation.agent_id} was stored")
        advance(len(items))


def asked(question: Row, k: int, **more: Any) -> Row:
    """Returns a labeled question as params of `memory.retrieve`."""
    given: Row = {"query": question["text"], "k": k, **more}
    if question.get("asked_at"):
        given["asked_at"] = moment(question["asked_at"])
    return given
