"""Labelled conversations: how they are read, and how they become an agent's memories.

The form: a JSON object a line, one conversation (one agent) each, `{dataset, conversation_id, memories: [{id,
timestamp, speaker, text, session_id}], queries: [{id, text, asked_at, category, relevant_ids, answerable}]}`,
plain or gzipped. A memory may carry an `interaction` in place of its text.
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
    """One agent's memories and what is asked of them."""

    set_name: str
    agent_id: str
    memories: Sequence[Row]
    questions: Sequence[Row]

    def answerable(self) -> list[Row]:
        """The questions whose evidence is there."""
        known = {each["id"] for each in self.memories}
        return [
            each
            for each in self.questions
            if each.get("answerable", True) and known.intersection(each["relevant_ids"])
        ]

    def unanswerable(self) -> list[Row]:
        """The questions that nothing answers, near as what is remembered may come to them."""
        return [each for each in self.questions if not each.get("answerable", True)]


def foreign(agents: Sequence[Conversation], every: int = 8) -> dict[str, list[Row]]:
    """By agent, some questions of the agent before it: its own memories have nothing to do with them."""
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
    """The files named, and the labelled sets in the directories named, by name."""
    found = [
        path
        for place in places
        for path in (_sets_in(place) if place.is_dir() else [place])
    ]
    missing = [path.name for path in found if not path.is_file()]
    if missing or not found:
        raise SystemExit(f"no labelled set: {', '.join(missing) or 'nothing named'}")
    return found


def _sets_in(directory: Path) -> list[Path]:
    """Its files of conversations: other labelled rows may stand beside them."""
    return [path for path in sorted(directory.glob("*.jsonl*")) if "conversation_id" in next(_rows(path), {})]


def _rows(path: Path) -> Iterator[Row]:
    packed = path.read_bytes()
    text = (gzip.decompress(packed) if path.suffix == ".gz" else packed).decode()
    return map(json.loads, text.splitlines())


def set_name(path: Path) -> str:
    """`locomo` of `locomo_dev.jsonl.gz`."""
    return path.name.split(".")[0].removesuffix("_dev")


def conversations(path: Path) -> Iterator[Conversation]:
    """One conversation a line."""
    name = set_name(path)
    for row in _rows(path):
        yield Conversation(name, f"{name}-{row['conversation_id']}", row["memories"], row["queries"])


def moment(text: str) -> str:
    """A time of the set, which says no zone where it means UTC."""
    return text if text.endswith("Z") or "+" in text[10:] else f"{text}Z"


def stored_form(memory: Row) -> Row:
    """A labelled memory as `memory.store` takes it, under its own id."""
    given = {name: memory[name] for name in SCOPE if memory.get(name)}
    if "interaction" in memory:
        body: Row = {"interaction": {**memory["interaction"], "timestamp": moment(memory["timestamp"])}}
    else:
        body = {"content": memory["text"], "timestamp": moment(memory["timestamp"])}
    return {**given, **body, "external_id": memory["id"], "idempotency_key": memory["id"], "force": True}


async def remember(call: Call, conversation: Conversation, advance: Callable[[int], None]) -> None:
    """Store the memories of a conversation that are not there yet; `advance` hears how many more are.

    Raises SystemExit where summaries of them are there: what is found beside those is not what the set asks.
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
    """A labelled question as `memory.retrieve` takes it."""
    given: Row = {"query": question["text"], "k": k, **more}
    if question.get("asked_at"):
        given["asked_at"] = moment(question["asked_at"])
    return given
