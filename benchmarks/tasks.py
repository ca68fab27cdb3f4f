"""Tasks of several steps, their earlier conversations, and an agent that knows only its context.

`benchmarks/data/tasks/README.md` describes the files. No language model is used: the agent reads a value from
a line with the pattern of the task's author, and takes the newest of several.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

TASKS = Path(__file__).parent / "data" / "tasks"
ASSISTANT = "assistant"
# The number of questions per task after which users give up.
PATIENCE = 2

_OPENS = re.compile(r"# (\d{4}-\d\d-\d\d \d\d:\d\d)")
_SAYS = re.compile(r"(?P<who>\w*)(?P<side>[<>]) (?P<text>.+)")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
_PREFIX = re.compile(r"\s*(?:[-*] |\d+\. )?(?:\[[^\]]*\] *)*")


@dataclass(frozen=True)
class Turn:
    at: datetime
    speaker: str
    text: str
    session_id: str

    def line(self) -> str:
        """Returns the message as a context line."""
        return f"- [{self.at:%Y-%m-%d %H:%M}, {self.speaker}] {self.text}"


@dataclass(frozen=True)
class Slot:
    """A value that a step needs, and the pattern that reads it from a line; `was`: its previous value."""

    name: str
    value: str
    reads: re.Pattern[str]
    user_knows: bool
    was: tuple[str, ...] = ()

    def answer(self) -> str:
        """Returns the user's answer when asked for it."""
        return f"{self.name}: {self.value}."

    def found(self, text: str) -> str | None:
        """Returns the value in this line, if any."""
        answered = re.match(rf"{re.escape(self.name)}: (.+)\.$", text)
        match = answered or self.reads.search(text)
        return next((each for each in match.groups() if each is not None), None) if match else None

    def read(self, context: str) -> str | None:
        """Returns the value of the newest line; a line without a time has that of the previous one."""
        newest, value, at = "", None, ""
        for line in context.splitlines():
            stamp = _STAMP.search(line[:40])
            at = stamp[0] if stamp else at
            found = self.found(_PREFIX.sub("", line, count=1))
            if found is not None and at >= newest:
                newest, value = at, found
        return value

    def right(self, value: str) -> bool:
        """Compares case-insensitively with the expected value."""
        return value.casefold() == self.value.casefold()


@dataclass(frozen=True)
class Step:
    """A request, the values it needs, and the agent's final message."""

    says: str
    needs: tuple[Slot, ...]
    does: str

    def done(self) -> str:
        """Returns the agent's final message with the expected values."""
        text = self.does
        for slot in self.needs:
            text = text.replace(f"{{{slot.name}}}", slot.value)
        return text


@dataclass(frozen=True)
class Task:
    """Steps that one user requests in one session."""

    name: str
    at: datetime
    user: str
    steps: tuple[Step, ...]

    @property
    def limit(self) -> int:
        """Returns the number of turns after which the user gives up."""
        return len(self.steps) + PATIENCE

    def slots(self) -> list[Slot]:
        """Returns all values that the task needs, without duplicates."""
        return list({slot.name: slot for step in self.steps for slot in step.needs}.values())


@dataclass(frozen=True)
class Persona:
    """One agent: its earlier messages in order of time, and its tasks."""

    name: str
    said: tuple[Turn, ...]
    tasks: tuple[Task, ...]


def _turns(told: str, user: str, persona: str) -> Iterator[Turn]:
    """Yields the messages of the listed sessions, one minute apart."""
    at, session_id = datetime.min.replace(tzinfo=UTC), ""
    for line in filter(None, map(str.strip, told.splitlines())):
        if opened := _OPENS.fullmatch(line):
            at = datetime.fromisoformat(opened[1]).replace(tzinfo=UTC)
            session_id = f"{persona}-{at:%Y%m%d%H%M}"
        elif (said := _SAYS.fullmatch(line)) and session_id:
            speaker = ASSISTANT if said["side"] == "<" else said["who"] or user
            yield Turn(at, speaker, said["text"], session_id)
            at += timedelta(minutes=1)
        else:
            raise ValueError(f"{persona}: neither the begin of a session nor a turn: {line}")


def _slot(name: str, row: Mapping[str, Any]) -> Slot:
    was = tuple(row.get("was", ()))
    return Slot(name, row["value"], re.compile(row["reads"]), row["user_knows"], was)


def _task(row: Mapping[str, Any], user: str) -> Task:
    slots = {name: _slot(name, each) for name, each in row["slots"].items()}
    steps = tuple(
        Step(each["says"], tuple(slots[name] for name in each["needs"]), each["does"]) for each in row["steps"]
    )
    at = datetime.fromisoformat(row["at"]).replace(tzinfo=UTC)
    return Task(row["name"], at, user, steps)


def _said(path: Path, rows: Mapping[str, Any]) -> list[Turn]:
    told = [rows["told"], *(each["told"] for each in rows["task"])]
    return [turn for each in told for turn in _turns(each, rows["user"], path.stem)]


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def persona(path: Path) -> Persona:
    """Loads a file's agent; its history includes the files listed in `beside`."""
    rows = _read(path)
    others = [path.with_stem(name) for name in rows["beside"]]
    said = [turn for each in (path, *others) for turn in _said(each, _read(each))]
    tasks = sorted((_task(each, rows["user"]) for each in rows["task"]), key=lambda task: task.at)
    return Persona(path.stem, tuple(sorted(said, key=lambda turn: turn.at)), tuple(tasks))


def personas(place: Path = TASKS) -> list[Persona]:
    return [persona(path) for path in sorted(place.glob("*.toml"))]


class Arm(Protocol):
    """A source of an agent's context."""

    async def context(self, task: Task, request: Turn, own: Sequence[Turn]) -> str:
        """Returns the agent's context for this request; `own`: earlier messages of the task."""
        ...

    async def said(self, task: Task, turns: Sequence[Turn]) -> None:
        """Receives messages of the task."""
        ...


@dataclass
class Outcome:
    """A task's outcome: success, number of turns, and failures."""

    task: Task
    done: bool = True
    turns: int = 0
    contexts: list[str] = field(default_factory=list)
    missing: list[tuple[Step, Slot]] = field(default_factory=list)
    wrong: tuple[Step, Slot, str] | None = None

    def reason(self) -> str:
        if self.wrong is not None:
            _, slot, value = self.wrong
            return "stale value" if value in slot.was else "another's value"
        return "not in the context"


class _Attempt:
    def __init__(self, task: Task, arm: Arm) -> None:
        self._task, self._arm = task, arm
        self._own: list[Turn] = []
        self._at = task.at
        self.outcome = Outcome(task)

    def _turn(self, speaker: str, text: str) -> Turn:
        turn = Turn(self._at, speaker, text, f"task-{self._task.name}")
        self._at += timedelta(minutes=1)
        return turn

    async def step(self, step: Step) -> bool:
        """Runs a step, passes its messages to the source, and returns whether it succeeded."""
        request = self._turn(self._task.user, step.says)
        context = await self._arm.context(self._task, request, self._own)
        self.outcome.contexts.append(context)
        self.outcome.turns += 1
        said = [request]
        done = all(self._known(step, slot, context, said) for slot in step.needs)
        if done:
            said.append(self._turn(ASSISTANT, step.done()))
        self._own += said
        await self._arm.said(self._task, said)
        return done

    def _known(self, step: Step, slot: Slot, context: str, said: list[Turn]) -> bool:
        """Checks whether the agent gets the right value, from its context or by asking."""
        value = slot.read(context)
        if value is not None:
            if not slot.right(value):
                self.outcome.wrong = step, slot, value
            return slot.right(value)
        self.outcome.missing.append((step, slot))
        self.outcome.turns += 1
        if not slot.user_knows or len(self.outcome.missing) > PATIENCE:
            return False
        said.append(self._turn(ASSISTANT, f"I need to know one thing for that: {slot.name}?"))
        said.append(self._turn(self._task.user, slot.answer()))
        return True


async def attempt(task: Task, arm: Arm) -> Outcome:
    """Runs a task with this source; a failed task counts its maximum number of turns."""
    trying = _Attempt(task, arm)
    for step in task.steps:
        if not await trying.step(step):
            trying.outcome.done = False
            trying.outcome.turns = task.limit
            break
    return trying.outcome


class WholeHistory:
    """The whole history, without a limit."""

    def __init__(self, persona: Persona) -> None:
        self._lines = [turn.line() for turn in persona.said]

    async def context(self, task: Task, request: Turn, own: Sequence[Turn]) -> str:
        return "\n".join(self._lines)

    async def said(self, task: Task, turns: Sequence[Turn]) -> None:
        self._lines += [turn.line() for turn in turns]


class NoMemory:
    """Only the messages of the task."""

    async def context(self, task: Task, request: Turn, own: Sequence[Turn]) -> str:
        return "\n".join(turn.line() for turn in own)

    async def said(self, task: Task, turns: Sequence[Turn]) -> None:
        pass
