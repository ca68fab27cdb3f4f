"""Tasks of several steps, what was said before them, and an agent that knows only what its context says.

The form of the files is told in `benchmarks/data/tasks/README.md`. No language model takes part: the agent
reads a value out of a line with the pattern that the task's author gave, and of several believes the newest.
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
# Users put up with so many questions in a task, then they give up.
PATIENCE = 2

_OPENS = re.compile(r"# (\d{4}-\d\d-\d\d \d\d:\d\d)")
_SAYS = re.compile(r"(?P<who>\w*)(?P<side>[<>]) (?P<text>.+)")
_STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d")
_PREFIX = re.compile(r"\s*(?:[-*] |\d+\. )?(?:\[[^\]]*\] *)*")


@dataclass(frozen=True)
class Turn:
    """What one said at a time."""

    at: datetime
    speaker: str
    text: str
    session_id: str

    def line(self) -> str:
        """As it stands in a context."""
        return f"- [{self.at:%Y-%m-%d %H:%M}, {self.speaker}] {self.text}"


@dataclass(frozen=True)
class Slot:
    """A value that a step needs, and the pattern that reads it out of a line; `was`: what it was before."""

    name: str
    value: str
    reads: re.Pattern[str]
    user_knows: bool
    was: tuple[str, ...] = ()

    def answer(self) -> str:
        """What the user says when asked for it."""
        return f"{self.name}: {self.value}."

    def found(self, text: str) -> str | None:
        """The value that this one line gives."""
        answered = re.match(rf"{re.escape(self.name)}: (.+)\.$", text)
        match = answered or self.reads.search(text)
        return next((each for each in match.groups() if each is not None), None) if match else None

    def read(self, context: str) -> str | None:
        """The value that the newest line gives; a line without a time has that of the one before it."""
        newest, value, at = "", None, ""
        for line in context.splitlines():
            stamp = _STAMP.search(line[:40])
            at = stamp[0] if stamp else at
            found = self.found(_PREFIX.sub("", line, count=1))
            if found is not None and at >= newest:
                newest, value = at, found
        return value

    def right(self, value: str) -> bool:
        """Whether that is the value, whichever the case."""
        return value.casefold() == self.value.casefold()


@dataclass(frozen=True)
class Step:
    """A request, what the agent must know for it, and what it says when it is done."""

    says: str
    needs: tuple[Slot, ...]
    does: str

    def done(self) -> str:
        """What the agent says when it is done, with the values that it was to know."""
        text = self.does
        for slot in self.needs:
            text = text.replace(f"{{{slot.name}}}", slot.value)
        return text


@dataclass(frozen=True)
class Task:
    """Steps that one user asks for in one session."""

    name: str
    at: datetime
    user: str
    steps: tuple[Step, ...]

    @property
    def limit(self) -> int:
        """The turns after which the user has given up."""
        return len(self.steps) + PATIENCE

    def slots(self) -> list[Slot]:
        """All that it needs, each once."""
        return list({slot.name: slot for step in self.steps for slot in step.needs}.values())


@dataclass(frozen=True)
class Persona:
    """One agent: all that was said to it before, in order of time, and the tasks it is then given."""

    name: str
    said: tuple[Turn, ...]
    tasks: tuple[Task, ...]


def _turns(told: str, user: str, persona: str) -> Iterator[Turn]:
    """The turns of sessions written down one below the other, a minute apart."""
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
        Step(each["says"], tuple(slots[name] for name in each["needs"]), each["does"])
        for each in row["steps"]
    )
    at = datetime.fromisoformat(row["at"]).replace(tzinfo=UTC)
    return Task(row["name"], at, user, steps)


def _said(path: Path, rows: Mapping[str, Any]) -> list[Turn]:
    told = [rows["told"], *(each["told"] for each in rows["task"])]
    return [turn for each in told for turn in _turns(each, rows["user"], path.stem)]


def _read(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def persona(path: Path) -> Persona:
    """The agent that a file describes; it also remembers what was said in the files `beside` it."""
    rows = _read(path)
    others = [path.with_stem(name) for name in rows["beside"]]
    said = [turn for each in (path, *others) for turn in _said(each, _read(each))]
    tasks = sorted((_task(each, rows["user"]) for each in rows["task"]), key=lambda task: task.at)
    return Persona(path.stem, tuple(sorted(said, key=lambda turn: turn.at)), tuple(tasks))


def personas(place: Path = TASKS) -> list[Persona]:
    """All of them, by name."""
    return [persona(path) for path in sorted(place.glob("*.toml"))]


class Arm(Protocol):
    """Where an agent's context comes from."""

    async def context(self, task: Task, request: Turn, own: Sequence[Turn]) -> str:
        """What the agent may read for this request; `own`: what was said in the task before it."""
        ...

    async def said(self, task: Task, turns: Sequence[Turn]) -> None:
        """These turns of the task were said."""
        ...


@dataclass
class Outcome:
    """How a task went: whether it was done, in how many turns, and what failed."""

    task: Task
    done: bool = True
    turns: int = 0
    contexts: list[str] = field(default_factory=list)
    missing: list[tuple[Step, Slot]] = field(default_factory=list)
    wrong: tuple[Step, Slot, str] | None = None

    def reason(self) -> str:
        """Why it was not done."""
        if self.wrong is not None:
            _, slot, value = self.wrong
            return "stale value" if value in slot.was else "another's value"
        return "not in the context"


class _Attempt:
    """One task being done."""

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
        """Whether it could be done; what was said meanwhile is told to the arm."""
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
        """Whether the agent has the right value in the end: read, or asked for."""
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
    """How the agent fares with this arm; a task that failed counts all the turns that it might have taken."""
    trying = _Attempt(task, arm)
    for step in task.steps:
        if not await trying.step(step):
            trying.outcome.done = False
            trying.outcome.turns = task.limit
            break
    return trying.outcome


class WholeHistory:
    """Everything ever said, as long as it is."""

    def __init__(self, persona: Persona) -> None:
        self._lines = [turn.line() for turn in persona.said]

    async def context(self, task: Task, request: Turn, own: Sequence[Turn]) -> str:
        return "\n".join(self._lines)

    async def said(self, task: Task, turns: Sequence[Turn]) -> None:
        self._lines += [turn.line() for turn in turns]


class NoMemory:
    """What was said in the task itself."""

    async def context(self, task: Task, request: Turn, own: Sequence[Turn]) -> str:
        return "\n".join(turn.line() for turn in own)

    async def said(self, task: Task, turns: Sequence[Turn]) -> None:
        """Nothing is kept beyond the task."""
