"""Contexts on labeled conversations: the share of the evidence they contain, by tokens.

Every question of every set requests a context of each budget, and of each share of its conversation's tokens
that is a budget between 500 and 50,000. Its content (benchmarks/evidence.py) is compared with three baselines
that fill the same budget from the same memories, one line each with time and speaker: the last ones before
the question, the nearest by vector, the best by BM25. Unanswerable questions measure the tokens spent without
evidence. `--summaries` repeats the questions with extractive summaries of every session. FR-3, AC-1.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from benchmarks.contexts import asking, given_of, summarise
from benchmarks.evidence import Evidence, Given, WordIndex, evidence, share_contained, share_in_full, words_of
from benchmarks.labelled import OWN_SETS, Conversation, Row, conversations, files, foreign, moment, remember
from benchmarks.ledger import append, percentiles
from benchmarks.measures import interval
from benchmarks.service import Service, run, running_service

BUDGETS = (500, 1_000, 2_000, 4_000)
SHARES = (0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 8.0, 10.0, 12.0, 15.0, 20.0)
SMALLEST, LARGEST = 500, 50_000
LOOKED_AT = 2_000
REACHED = (80.0, 90.0)
TIMED_BUDGET = 2_000
OURS = "get_context"
METHODS = (OURS, "last turns", "vector top-k", "BM25 top-k")
WITH_SUMMARIES = "summaries, where room is left"
UNKNOWN = frozenset[str]()


@dataclass(frozen=True)
class Outcome:
    """The result of one question: the shares of its evidence, the tokens, and the number of labeled
    memories."""

    category: str
    answerable: bool
    labelled: int
    contained: float
    in_full: float
    tokens: int


@dataclass(frozen=True)
class RuleInput:
    """A memory in the format of the baselines: its line, the line's words and tokens."""

    memory_id: str
    line: str
    said: frozenset[str]
    tokens: int


class Past:
    """One conversation: the memories that the baselines select from, and its number of tokens."""

    def __init__(self, conversation: Conversation, vectors: NDArray[np.float32], count: Callable[[str], int]):
        self.conversation = conversation
        self.told = [_told(each, count) for each in conversation.memories]
        self.history_tokens = count("\n".join(_text(each) for each in conversation.memories))
        self.evidence = {each["id"]: evidence(each["id"], _text(each)) for each in conversation.memories}
        self._moments = [moment(each["timestamp"]) for each in conversation.memories]
        self._words = WordIndex([f"{each.get('speaker') or ''} {_text(each)}" for each in conversation.memories])
        self._vectors = vectors

    def budgets(self, options: argparse.Namespace) -> dict[str, int]:
        """Returns the budgets by name: the requested ones, and applicable shares of the conversation."""
        wanted = {f"{tokens:,}": tokens for tokens in options.budgets}
        for share in options.shares:
            tokens = int(self.history_tokens * share / 100)
            if SMALLEST <= tokens <= LARGEST:
                wanted[f"{share:g} %"] = tokens
        return wanted

    def orders(self, question: Row, vector: NDArray[np.float32]) -> dict[str, Sequence[int]]:
        """Returns the order of the memories, as indexes, for each baseline."""
        before = moment(question["asked_at"]) if question.get("asked_at") else "~"
        last = [place for place in range(len(self.told)) if self._moments[place] <= before]
        nearest: list[int] = np.argsort(-(self._vectors @ vector), kind="stable").tolist()
        last.sort(key=self._moments.__getitem__)
        return {"last turns": last[::-1], "vector top-k": nearest, "BM25 top-k": self._words.ranked(question["text"])}

    def filled(self, order: Sequence[int], budget: int) -> Given:
        """Fills a baseline's context in its order, skipping memories that do not fit."""
        used, chosen = 0, []
        for place in order[:LOOKED_AT]:
            if used + self.told[place].tokens <= budget:
                chosen.append(self.told[place])
                used += self.told[place].tokens
        said = frozenset().union(*(each.said for each in chosen)) if chosen else UNKNOWN
        return Given(said, used, frozenset(each.memory_id for each in chosen))

    def labelled(self, question: Row) -> list[Evidence]:
        return [self.evidence[each] for each in question["relevant_ids"] if each in self.evidence]


def _text(memory: Row) -> str:
    if "interaction" in memory:
        said = memory["interaction"]
        return "\n".join(str(said[name]) for name in ("query", "response", "outcome") if said.get(name))
    return str(memory["text"])


def _told(memory: Row, count: Callable[[str], int]) -> RuleInput:
    text = " ".join(_text(memory).split())
    who = f", {memory['speaker']}" if memory.get("speaker") else ""
    line = f"- [{memory['timestamp'][:16].replace('T', ' ')}{who}] {text}\n"
    return RuleInput(memory["id"], line, frozenset(words_of(line)), count(line))


async def past_of(service: Service, conversation: Conversation) -> Past:
    """Returns the conversation with the vectors that the service stored for it."""
    statement = """SELECT external_id, embedding::vector::real[] AS vector
                     FROM memories WHERE agent_id = %(agent_id)s AND embedding IS NOT NULL"""
    async with service.runtime.database.owner_transaction() as connection:
        rows = await (await connection.execute(statement, {"agent_id": conversation.agent_id})).fetchall()
    held = {row["external_id"]: row["vector"] for row in rows}
    size = len(next(iter(held.values()), [0.0]))
    vectors = np.array([held.get(each["id"], [0.0] * size) for each in conversation.memories], dtype=np.float32)
    return Past(conversation, vectors, service.runtime.parts.count_tokens)


def questions(agents: Sequence[Conversation], every: int) -> Iterator[tuple[Conversation, Row, bool]]:
    """Yields every nth question of each kind, answerable or not."""
    strange = foreign(agents)
    for each in agents:
        yield from ((each, question, True) for question in each.answerable()[::every])
        nothing = [*each.unanswerable(), *strange.get(each.agent_id, [])]
        yield from ((each, question, False) for question in nothing[::every])


class Measurement:
    """The outcomes of one set, by budget and method, and the time spent on formatting."""

    def __init__(self, service: Service, options: argparse.Namespace) -> None:
        self._service = service
        self._options = options
        self.outcomes: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
        self.budget_tokens: dict[str, list[int]] = defaultdict(list)
        self.format_ms: list[float] = []

    async def ask(self, past: Past, question: Row, answerable: bool) -> None:
        """Runs one question, for every budget, on the service and the baselines."""
        labelled = past.labelled(question) if answerable else []
        orders: Mapping[str, Sequence[int]] = {}
        if answerable and self._options.baselines:
            orders = past.orders(question, await self._vector(question["text"]))
        for name, budget in past.budgets(self._options).items():
            self.budget_tokens[name].append(budget)
            given = {OURS: await self._context(past, question, budget)}
            given |= {method: past.filled(order, budget) for method, order in orders.items()}
            for method, each in given.items():
                self.outcomes[name, method].append(_outcome(question, answerable, labelled, each))

    async def ask_with_summaries(self, past: Past, question: Row, answerable: bool) -> None:
        """Runs the same question, for every budget, over session summaries as well."""
        labelled = past.labelled(question) if answerable else []
        for name, budget in past.budgets(self._options).items():
            given = await self._context(past, question, budget)
            self.outcomes[name, WITH_SUMMARIES].append(_outcome(question, answerable, labelled, given))

    async def _vector(self, text: str) -> NDArray[np.float32]:
        embedder = self._service.runtime.parts.embedder
        if embedder is None:
            raise SystemExit("this benchmark needs an embedding model")
        [vector] = await embedder.embed([text], "query")
        return np.asarray(vector)

    async def _context(self, past: Past, question: Row, budget: int) -> Given:
        agent_id, params = past.conversation.agent_id, asking(question, budget)
        answer = await self._service.call(agent_id, "memory.get_context", params)
        if budget == TIMED_BUDGET:
            self.format_ms.append(answer["receipt"]["timings_ms"]["format"])
        return given_of(answer, budget)


def _outcome(question: Row, answerable: bool, labelled: Sequence[Evidence], given: Given) -> Outcome:
    contained = share_contained(labelled, given) if answerable else 0.0
    in_full = share_in_full(labelled, given) if answerable else 0.0
    return Outcome(str(question.get("category")), answerable, len(labelled), contained, in_full, given.tokens)


def figures(outcomes: Sequence[Outcome], history_tokens: float) -> Row:
    """Returns one row: results of answerable questions, and tokens of unanswerable ones."""
    found = [each for each in outcomes if each.answerable]
    whole = [float(each.contained == 1.0) for each in found]
    used = sum(each.tokens for each in found)
    turns = sum(each.contained * each.labelled for each in found)
    row: Row = {
        "questions": len(found),
        "all evidence": _percent(sum(whole), len(found)),
        "all evidence interval": interval(whole),
        "all in full": _percent(sum(each.in_full == 1.0 for each in found), len(found)),
        "evidence": _percent(sum(each.contained for each in found), len(found)),
        "per 1,000 tokens": round(1_000 * turns / max(1, used), 2),
        "tokens": round(used / len(found)),
        "reduction": round(100 * (1 - used / len(found) / history_tokens), 1),
    }
    for name, of_kind in _unanswered(outcomes).items():
        row[f"tokens, {name}"] = round(sum(each.tokens for each in of_kind) / len(of_kind))
        row[f"empty, {name}"] = _percent(sum(not each.tokens for each in of_kind), len(of_kind))
    return row


def _percent(part: float, whole: int) -> float:
    return round(100 * part / whole, 1)


def _unanswered(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    nothing = [each for each in outcomes if not each.answerable]
    kinds = {
        "unanswerable": [each for each in nothing if each.category != "foreign"],
        "foreign": [each for each in nothing if each.category == "foreign"],
    }
    return {name: of_kind for name, of_kind in kinds.items() if of_kind}


def reached(results: Mapping[str, Row], budgets: Mapping[str, float], set_name: str) -> Row:
    """Returns, by method, the smallest mean budget at which this share of questions has all its evidence."""
    found: Row = {}
    ran = {name.rpartition(": ")[2] for name in results}
    for method in (each for each in (*METHODS, WITH_SUMMARIES) if each in ran):
        for level in REACHED:
            held = [
                (budget, name)
                for name, budget in budgets.items()
                if results.get(f"{set_name}, {name}: {method}", {}).get("all evidence", 0.0) >= level
            ]
            found[f"{method}: {level:g} %"] = min(held)[1] if held else "not reached"
    return found


def table(results: Mapping[str, Row]) -> str:
    columns = (
        "questions",
        "all evidence",
        "all evidence interval",
        "all in full",
        "evidence",
        "per 1,000 tokens",
        "tokens",
        "reduction",
        "tokens, unanswerable",
        "empty, unanswerable",
        "tokens, foreign",
        "empty, foreign",
    )
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [
        f"| {name} | " + " | ".join(_cell(row.get(column, "")) for column in columns) + " |"
        for name, row in results.items()
        if "questions" in row
    ]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    return " to ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


async def measure(options: argparse.Namespace) -> dict[str, Row]:
    """Stores every set, requests every context, and returns the figures."""
    results: dict[str, Row] = {}
    async with running_service(options.home, maintenance_in_server=False) as service:
        for path in files(options.data or [OWN_SETS]):
            agents = list(conversations(path))
            if not options.only or agents[0].set_name in options.only:
                results |= await _measured(service, agents, options)
    return results


async def _measured(service: Service, agents: Sequence[Conversation], options: argparse.Namespace) -> dict[str, Row]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    measurement = Measurement(service, options)
    with Progress(*columns, transient=True) as progress:
        task = progress.add_task("storing", total=sum(len(each.memories) for each in agents))
        for each in agents:
            await remember(service.call, each, lambda stored: progress.advance(task, stored))
        await service.settle()
        pasts = {each.agent_id: await past_of(service, each) for each in agents}
        for agent, question, answerable in progress.track(list(questions(agents, options.every)), description="asking"):
            await measurement.ask(pasts[agent.agent_id], question, answerable)
        if options.summaries:
            for each in progress.track(agents, description="summarising"):
                await summarise(service, each)
            for agent, question, answerable in progress.track(
                list(questions(agents, options.every)), description="asking with summaries"
            ):
                await measurement.ask_with_summaries(pasts[agent.agent_id], question, answerable)
    asked_of = [pasts[agent.agent_id] for agent, _, answerable in questions(agents, options.every) if answerable]
    history = sum(each.history_tokens for each in asked_of) / len(asked_of)
    return _told_of(agents[0].set_name, measurement, history)


def _told_of(set_name: str, measurement: Measurement, history: float) -> dict[str, Row]:
    budgets = {name: sum(each) / len(each) for name, each in measurement.budget_tokens.items()}
    results: dict[str, Row] = {}
    for name in sorted(budgets, key=lambda each: (each.endswith("%"), budgets[each])):
        for method in (*METHODS, WITH_SUMMARIES):
            if (name, method) in measurement.outcomes:
                row = figures(measurement.outcomes[name, method], history)
                results[f"{set_name}, {name}: {method}"] = {"budget": round(budgets[name]), **row}
    results[f"{set_name}, reached at"] = reached(results, budgets, set_name)
    if measurement.format_ms:
        results[f"{set_name}, format_ms"] = percentiles(measurement.format_ms)
    print(table(results), flush=True)
    for name, row in results.items():
        if "questions" not in row:
            print(f"  {name}: {json.dumps(row)}", flush=True)
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="*", help="files or directories of labelled sets")
    parser.add_argument("--only", nargs="*", help="of these sets alone, by name")
    parser.add_argument("--budgets", type=int, nargs="*", default=list(BUDGETS), help="in tokens")
    parser.add_argument("--shares", type=float, nargs="*", default=list(SHARES), help="in per cent of the whole")
    parser.add_argument("--every", type=int, default=1, help="ask every nth question")
    parser.add_argument("--baselines", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument(
        "--summaries",
        action="store_true",
        help="ask again with sessions' summaries, which stay in the home: none is measured in it afterwards",
    )
    parser.add_argument("--home", type=Path, help="keep the filled home here, and use it again")
    parser.add_argument("--markdown", type=Path, help="write the table there, too")
    parser.add_argument("--json", type=Path, help="write all figures there, too")
    options = parser.parse_args()
    results = run(measure(options))
    if options.markdown:
        options.markdown.write_text(table(results) + "\n", encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    kept = {"only", "every", "budgets", "shares", "summaries"}
    append("context_efficiency", {name: value for name, value in vars(options).items() if name in kept}, results)
    return 0
