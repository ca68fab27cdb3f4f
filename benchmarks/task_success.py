"""Tasks of several steps, done with memory, without, and with the full history: success, turns, tokens. AC-3.

Runs through JSON-RPC on `benchmarks/data/tasks`. The agent is deterministic and uses only its context
(benchmarks/tasks.py). It asks the user for missing values, at most twice per task. A wrong value fails the
task, and a failed task counts its maximum number of turns. No parameter is tuned here.
"""

from __future__ import annotations

import argparse
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.labelled import BATCH, Call
from benchmarks.ledger import append, commit, machine
from benchmarks.measures import interval, paired_interval
from benchmarks.service import run, running_service
from benchmarks.tasks import Arm, NoMemory, Outcome, Persona, Slot, Task, Turn, WholeHistory, attempt, personas

RESULTS = Path(__file__).parent / "results"
# Required ratios of with to without memory: the least success, and the most turns.
LEAST_SUCCESS, MOST_TURNS = 1.20, 0.85
EXPLAINED = """\
`make bench ARGS=task_success`, on `benchmarks/data/tasks`, whose README says how the tasks are done. The full
history has no limit, the last turns have that of memory. With the request stored first, it stands in memory
already when its context is asked for, as it does where an agent stores what comes in before it thinks."""
Went = tuple[Outcome, list[int]]
"""A task's outcome, and the tokens of each context."""
MEMORY, NONE, WHOLE, LAST = "with memory", "without memory", "full history", "last turns"
FIRST = "with memory, request stored first"


def stored_form(turn: Turn, task_id: str | None = None) -> dict[str, Any]:
    """Returns a turn as params of `memory.store`."""
    given = {
        "content": turn.text,
        "speaker": turn.speaker,
        "session_id": turn.session_id,
        "timestamp": turn.at.isoformat(),
    }
    return given if task_id is None else {**given, "task_id": task_id}


class Memory:
    """The context of `memory.get_context` for a request, which is stored before or after the answer."""

    def __init__(
        self, call: Call, persona: Persona, options: argparse.Namespace, *, request_first: bool = False
    ) -> None:
        self._call, self._persona = call, persona
        self._agent_id = f"{persona.name}-request-first" if request_first else persona.name
        self._max_tokens: int = options.max_tokens
        self._history_turns: int = options.history
        self._request_first = request_first

    async def remember(self, advance: Callable[[int], None]) -> None:
        """Stores the earlier turns; `advance` receives the number of newly stored ones."""
        said = self._persona.said
        for start in range(0, len(said), BATCH):
            await self._store([stored_form(turn) for turn in said[start : start + BATCH]])
            advance(len(said[start : start + BATCH]))

    async def _store(self, items: Sequence[Mapping[str, Any]]) -> None:
        answer = await self._call(self._agent_id, "memory.store_batch", {"items": items})
        failed = [each for each in answer["results"] if each["code"] is not None]
        if failed:
            raise RuntimeError(f"{self._persona.name}: {failed[0]['reason']}")

    async def context(self, task: Task, request: Turn, own: Sequence[Turn]) -> str:
        if self._request_first:
            await self._store([stored_form(request, task.name)])
        asked: dict[str, Any] = {
            "query": request.text,
            "task_id": task.name,
            "max_tokens": self._max_tokens,
            "asked_at": request.at.isoformat(),
        }
        if self._history_turns:
            asked["history"] = [
                {"role": "user" if turn.speaker == task.user else "assistant", "content": turn.text}
                for turn in own[-self._history_turns :]
            ]
        context: str = (await self._call(self._agent_id, "memory.get_context", asked))["context"]
        return context

    async def said(self, task: Task, turns: Sequence[Turn]) -> None:
        unsaid = turns[1:] if self._request_first else turns
        if unsaid:
            await self._store([stored_form(turn, task.name) for turn in unsaid])


class LastTurns(WholeHistory):
    """The newest turns of any session that fit into the budget."""

    def __init__(self, persona: Persona, max_tokens: int, count: Callable[[str], int]) -> None:
        super().__init__(persona)
        self._max_tokens, self._count = max_tokens, count

    async def context(self, task: Task, request: Turn, own: Sequence[Turn]) -> str:
        kept = ""
        for line in reversed(self._lines):
            longer = f"{line}\n{kept}"
            if self._count(longer) > self._max_tokens:
                break
            kept = longer
        return kept


async def played(options: argparse.Namespace) -> dict[str, list[Went]]:
    """Returns, by context source, each task's outcome and the tokens of each step's context."""
    agents, budget = personas(), options.max_tokens
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    settings: dict[str, Any] = {"embedding_model": options.embedding_model, "maintenance_in_server": False}
    async with running_service(options.home, **settings) as service:
        count = service.runtime.parts.count_tokens
        memories = [Memory(service.call, each, options) for each in agents]
        asking = [Memory(service.call, each, options, request_first=True) for each in agents]
        arms: dict[str, Sequence[Arm]] = {
            MEMORY: memories,
            FIRST: asking,
            NONE: [NoMemory() for _ in agents],
            WHOLE: [WholeHistory(each) for each in agents],
            LAST: [LastTurns(each, budget, count) for each in agents],
        }
        with Progress(*columns, transient=True) as progress:
            storing = progress.add_task("storing", total=2 * sum(len(each.said) for each in agents))
            for memory in (*memories, *asking):
                await memory.remember(lambda more: progress.advance(storing, more))
            await service.settle()
            outcomes: dict[str, list[Went]] = {}
            for name, contexts in arms.items():
                tasks = [(task, arm) for agent, arm in zip(agents, contexts, strict=True) for task in agent.tasks]
                went = [await attempt(task, arm) for task, arm in progress.track(tasks, description=name)]
                outcomes[name] = [(each, [count(context) for context in each.contexts]) for each in went]
        return outcomes


def by_asking(task: Task) -> bool:
    """Checks whether the user could provide all missing values within the limit of questions."""
    told = " ".join(step.does for step in task.steps)
    wanted = [slot for slot in task.slots() if slot.found(told) is None]
    return len(wanted) <= 2 and all(slot.user_knows for slot in wanted)


def figures(outcomes: Sequence[Went]) -> dict[str, Any]:
    """Returns one source's success, turns, questions and tokens."""
    tokens = [each for _, counts in outcomes for each in counts]
    went = [outcome for outcome, _ in outcomes]
    return {
        "tasks": len(went),
        "success": round(sum(each.done for each in went) / len(went), 4),
        "success interval": interval([float(each.done) for each in went]),
        "turns": round(sum(each.turns for each in went) / len(went), 2),
        "questions": round(sum(len(each.missing) for each in went) / len(went), 2),
        "tokens a step": round(sum(tokens) / len(tokens)),
    }


def ratio_interval(before: Sequence[float], after: Sequence[float]) -> tuple[float, float]:
    """Returns the 95 % percentile interval of `sum(after) / sum(before)`, by resampling tasks."""
    chance, pairs, ratios = random.Random(7), list(zip(before, after, strict=True)), []
    for _ in range(2_000):
        drawn = chance.choices(pairs, k=len(pairs))
        if below := sum(one for one, _ in drawn):
            ratios.append(sum(other for _, other in drawn) / below)
    ratios.sort()
    return round(ratios[int(0.025 * len(ratios))], 3), round(ratios[int(0.975 * len(ratios)) - 1], 3)


def compared(before: Sequence[float], after: Sequence[float]) -> dict[str, Any]:
    """Returns the ratio of the totals over the same tasks, with its interval."""
    ratio = round(sum(after) / max(1e-9, sum(before)), 3)
    return {"ratio": ratio, "interval": ratio_interval(before, after)}


def beside(with_memory: Sequence[Outcome], without: Sequence[Outcome]) -> dict[str, Any]:
    """Returns success and turns with memory, relative to those without."""
    done = [[float(each.done) for each in arm] for arm in (without, with_memory)]
    turns = [[float(each.turns) for each in arm] for arm in (without, with_memory)]
    found = {"success": compared(*done), "turns": compared(*turns)}
    found["success"]["met"] = found["success"]["ratio"] >= LEAST_SUCCESS
    found["turns"]["met"] = found["turns"]["ratio"] <= MOST_TURNS
    found["success"]["met by the whole interval"] = found["success"]["interval"][0] >= LEAST_SUCCESS
    found["turns"]["met by the whole interval"] = found["turns"]["interval"][1] <= MOST_TURNS
    return {**found, "success difference interval": paired_interval(*done)}


def failure(outcome: Outcome, said: Sequence[Turn]) -> dict[str, Any]:
    """Returns the reason of a failed task: the request, the expected value, the value read, and its source
    line."""
    if outcome.wrong is not None:
        step, slot, read = outcome.wrong
        missing = [(step, slot)]
    else:
        read, missing = None, outcome.missing
    return {
        "task": outcome.task.name,
        "why": outcome.reason(),
        "read": read,
        "wanted": [
            {"request": step.says, "slot": slot.name, "value": slot.value, "line": evidence(slot, said)}
            for step, slot in missing
        ],
    }


def evidence(slot: Slot, said: Sequence[Turn]) -> str:
    """Returns the line that states the value: the newest of earlier sessions, or one of the task."""
    lines = [turn.line() for turn in said if slot.found(turn.text) == slot.value]
    return lines[-1].removeprefix("- ") if lines else "said in the task itself"


def told(options: argparse.Namespace, outcomes: Mapping[str, Sequence[Went]]) -> dict[str, Any]:
    went = {name: [outcome for outcome, _ in each] for name, each in outcomes.items()}
    said = {task.name: agent.said for agent in personas() for task in agent.tasks}
    kinds = {
        f"{name}, {kind}": figures([each for each in arm if by_asking(each[0].task) == askable])
        for kind, askable in (("could be done by asking", True), ("could not", False))
        for name, arm in outcomes.items()
    }
    failures = [failure(each, said[each.task.name]) for each in went[MEMORY] if not each.done]
    return {
        "max_tokens": options.max_tokens,
        "history_turns": options.history,
        "arms": {name: figures(each) for name, each in outcomes.items()},
        "kinds": kinds,
        "with memory beside without": beside(went[MEMORY], went[NONE]),
        "request stored first beside without": beside(went[FIRST], went[NONE]),
        "failures": failures,
        "reasons": dict(Counter(each["why"] for each in failures)),
    }


def rows(found: Mapping[str, Any]) -> Iterator[str]:
    yield "# Tasks of several steps\n"
    yield f"{EXPLAINED}\n"
    seen_on = f"{machine()['cpu']}, {machine()['cores']} cores"
    yield f"Commit {commit()}, {seen_on}; at most {found['max_tokens']} tokens.\n"
    yield "| | Tasks | Done | 95 % interval | Turns | Questions | Tokens a step |"
    yield "|---|---|---|---|---|---|---|"
    for name, each in {**found["arms"], **found["kinds"]}.items():
        low, high = each["success interval"]
        yield (
            f"| {name} | {each['tasks']} | {each['success']:.1%} | {low} to {high} % | {each['turns']} | "
            f"{each['questions']} | {each['tokens a step']} |"
        )
    yield from compared_rows(found["with memory beside without"], "With memory")
    yield from compared_rows(found["request stored first beside without"], "With the request stored first")
    yield from failure_rows(found["failures"])


def compared_rows(shares: Mapping[str, Any], what: str) -> Iterator[str]:
    """Yields rows that compare the runs with and without memory."""
    yield f"\n| {what}, as a share of without | | 95 % interval | Target | Met | By the whole interval |"
    yield "|---|---|---|---|---|---|"
    for name, target in (("success", f"at least {LEAST_SUCCESS}"), ("turns", f"at most {MOST_TURNS}")):
        each = shares[name]
        low, high = each["interval"]
        met, surely = ("yes" if each[way] else "no" for way in ("met", "met by the whole interval"))
        yield f"| {name} | {each['ratio']:.3f} | {low} to {high} | {target} | {met} | {surely} |"
    low, high = shares["success difference interval"]
    yield f"\nOf a hundred tasks, memory does {low} to {high} more.\n"


def failure_rows(failures: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields the failed tasks with memory, each with the values asked for or misread."""
    yield f"## Not done with memory: {len(failures)}\n"
    yield "| Task | Why | Request | Wanted | Read | The line that tells it |"
    yield "|---|---|---|---|---|---|"
    for each in failures:
        for wanted in each["wanted"]:
            about = f"{wanted['slot']}: {wanted['value']} | {each['read'] or ''} | {wanted['line']}"
            yield f"| {each['task']} | {each['why']} | {wanted['request']} | {about} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-tokens", type=int, default=1_000, help="of a context; default: %(default)s")
    parser.add_argument("--history", type=int, default=0, help="give so many turns of the task as `history`")
    parser.add_argument("--embedding-model", default="local")
    parser.add_argument("--home", type=Path, default=None, help="keep the data here, in a new directory")
    parser.add_argument("--print-only", action="store_true", help="leave benchmarks/results as it is")
    options = parser.parse_args()
    found = told(options, run(played(options)))
    page = "\n".join(rows(found)) + "\n"
    print(page)
    if options.print_only:
        return 0
    (RESULTS / "task_success.md").write_text(page, encoding="utf-8")
    in_full = json.dumps(found, indent=1, ensure_ascii=False)
    (RESULTS / "task_success.json").write_text(f"{in_full}\n", encoding="utf-8")
    noted = ("max_tokens", "history", "embedding_model")
    given = {name: value for name, value in vars(options).items() if name in noted}
    append("task_success", given, {name: value for name, value in found.items() if name != "failures"})
    return 0
