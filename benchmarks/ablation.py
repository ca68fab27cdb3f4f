"""The value of each rule-based part: the product compared with the product without it, in process.

`ablated_parts.py` is the table of parts. A part that acts on questions is switched off between two questions
to one store. A part that acts on storing has a separate store, and so has the ranking "from below"
(similarity, + words, + freshness). Vectors and compared pairs are cached for the process. Accesses are not
counted, so that questions are independent. Positive: the part raises the figure.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from agentcore import assembly
from agentcore.config import Settings
from agentcore.memory.api import Caller
from agentcore.memory.deriving.relating import Relating
from agentcore.memory.embeddings import (
    BatchingEmbedder,
    Embedder,
    EmbedderLayer,
    EmbeddingKind,
    RelationClassifier,
    Vectors,
)
from benchmarks import current_answers, labelled
from benchmarks.ablated_parts import AGAIN, BELOW, CHOICES, FROM_BELOW, PRODUCT, Part, Replacement, replaced
from benchmarks.changing_facts import HALVES, Facts, free_wordings
from benchmarks.contradictions import contradictory
from benchmarks.current_answers import AMONG, CONTEXT_TOKENS, LIVES, Outcome, is_first
from benchmarks.labelled import OWN_SETS, Row
from benchmarks.ledger import append
from benchmarks.measures import paired_interval, recall
from benchmarks.retrieval_quality import weighed
from benchmarks.service import Service, run, running_service

DEEPEST = 10
FREE_SETS = (*HALVES, "last")

T = TypeVar("T")
Wordings = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Answer:
    """The result of one question: the applicable measures, from 0 to 1, and the returned ids."""

    measures: Mapping[str, float]
    given: Sequence[Any]


@dataclass(frozen=True)
class Stored:
    """One store, and the parts that are switched off for questions to it."""

    name: str
    parts: Sequence[Part]
    called: Mapping[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    answers: Mapping[str, list[Answer]] = field(default_factory=lambda: defaultdict(list))

    def storing(self) -> AbstractContextManager[None]:
        """Switches off, until the block ends, the parts that this store is built without."""
        first = self.parts[0]
        return replaced(first.storing, self.called[first.name])

    def without(self, part: Part) -> AbstractContextManager[None]:
        """Switches off one of its parts until the block ends."""
        return replaced(part.replacements, self.called[part.name])

    def agent(self, name: str) -> str:
        """Returns the agent that owns this store of `name`."""
        return f"{name} {self.name or PRODUCT}"


def stores(parts: Sequence[Part]) -> list[Stored]:
    """Returns the stores that the parts need, the unchanged product first."""
    by_store: defaultdict[str, list[Part]] = defaultdict(list, {"": [Part(PRODUCT)]})
    for part in parts:
        by_store[part.store].append(part)
    return [Stored(name, found) for name, found in by_store.items()]


Ask = Callable[[Service, Stored], Awaitable[None]]
"""Stores one set and runs its questions under each part of that store."""


# --- process-wide caches ------------------------------------------------------------------------------------


class KeptEmbedder(EmbedderLayer):
    """Embeds each text once per process, for all agents."""

    def __init__(self, inner: Embedder) -> None:
        super().__init__(inner)
        self._known: dict[tuple[str, str], Vectors] = {}

    async def close(self) -> None:
        await self._inner.close()

    async def embed(self, texts: Sequence[str], kind: EmbeddingKind) -> Vectors:
        missing = [each for each in dict.fromkeys(texts) if (kind, each) not in self._known]
        if missing:
            made = await self._inner.embed(missing, kind)
            self._known |= {(kind, text): row.copy() for text, row in zip(missing, made, strict=True)}
        if not texts:
            return np.empty((0, self.dimensions), np.float32)
        return np.stack([self._known[kind, each] for each in texts])


class KeptRelations:
    """Compares each pair of texts once per process."""

    def __init__(self, inner: RelationClassifier) -> None:
        self._inner = inner
        self._known: dict[tuple[str, str], float] = {}

    async def changes(self, pairs: Sequence[tuple[str, str]]) -> Vectors:
        missing = [each for each in dict.fromkeys(pairs) if each not in self._known]
        if missing:
            found = map(float, await self._inner.changes(missing))
            self._known |= dict(zip(missing, found, strict=True))
        return np.array([self._known[each] for each in pairs], np.float32)

    def close(self) -> None:
        self._inner.close()


def keeping() -> AbstractContextManager[None]:
    """Makes services opened inside the block cache vectors and comparisons."""
    relations = assembly.make_relations

    def make_relations(settings: Settings) -> RelationClassifier | None:
        made = relations(settings)
        return None if made is None else KeptRelations(made)

    return replaced(
        (
            Replacement("agentcore.runtime:BatchingEmbedder", lambda inner: KeptEmbedder(BatchingEmbedder(inner))),
            Replacement("agentcore.assembly:make_relations", make_relations),
        ),
        Counter(),
    )


async def relate(service: Service, agent_id: str) -> None:
    """Compares all pending messages of an agent, as the background job does."""
    caller = Caller(agent_id)
    relating = Relating(service.runtime.parts.for_caller(caller), caller)
    while await relating.run():
        pass


# --- the sets ----------------------------------------------------------------------------------------------


def spread(rows: Sequence[T], limit: int | None) -> Sequence[T]:
    """Returns at most `limit` of the rows, evenly spread."""
    if limit is None or limit >= len(rows):
        return rows
    return [rows[place * len(rows) // limit] for place in range(limit)]


def asked_of(
    agents: Sequence[T], rows: Callable[[T], Sequence[Row]], limit: int | None
) -> list[tuple[T, Sequence[Row]]]:
    """Returns the first agents with their questions, `limit` in all."""
    found = []
    for agent in agents:
        questions = spread(rows(agent), limit)
        if questions:
            found.append((agent, questions))
        limit = None if limit is None else limit - len(questions)
    return found


async def ask_lives(service: Service, stored: Stored, names: Sequence[str], limit: int | None) -> None:
    """Runs the questions of the learning lives through both methods, and the off-topic prompts."""
    lives = list(current_answers.lives(LIVES / "learning", names))
    for life, questions in asked_of(lives, lambda each: each.questions, limit):
        own = replace(life, name=stored.agent(life.name))
        with stored.storing():
            messages = await current_answers.store(service, own)
            # A failed job, as on a loaded machine, is retried later: no message may be pending here.
            await relate(service, own.name)
        off_topic = spread(life.off_topic, limit)
        prompts = [{**each, "current": [], "outdated": []} for each in off_topic]
        for part in stored.parts:
            with stored.without(part):
                for question in questions:
                    found = await current_answers.answer(service, own, messages, question)
                    stored.answers[part.name].append(Answer(of_life(found), _given(found)))
                for prompt in prompts:
                    found = await current_answers.answer(service, own, messages, prompt)
                    stored.answers[part.name].append(Answer(of_prompt(found), _given(found)))


def of_life(found: Outcome) -> dict[str, float]:
    """Returns the measures of one answer about a life; empty for an unanswerable question.

    All questions with an outdated answer count as changed, also if neither answer was found, so that the same
    questions count with and without a part.
    """
    if not found.answerable:
        return {}
    in_context = not set(found.in_context or ()).isdisjoint(found.question["current"])
    values: dict[str, Any] = {
        "first": is_first(found),
        f"among {AMONG}": found.place("current") < AMONG,
        f"in {CONTEXT_TOKENS} tokens": in_context,
    }
    if found.question["outdated"]:
        values["changed first"] = is_first(found)
        values["outdated above current"] = found.place("outdated") < found.place("current")
    return {name: float(value) for name, value in values.items()}


def of_prompt(found: Outcome) -> dict[str, float]:
    """Returns the measures of one answer to an off-topic prompt."""
    silent = {"retrieve": not found.ranked, "context": not found.in_context}
    return {f"off-topic silent, {method}": float(value) for method, value in silent.items()}


def _given(found: Outcome) -> tuple[Any, ...]:
    return tuple(found.ranked), tuple(found.in_context or ()), tuple(found.unmarked)


async def ask_labelled(service: Service, stored: Stored, path: Path, limit: int | None) -> None:
    """Runs the answerable questions of labeled conversations."""
    agents = list(labelled.conversations(path))
    for agent, questions in asked_of(agents, lambda each: each.answerable(), limit):
        own = replace(agent, agent_id=stored.agent(agent.agent_id))
        with stored.storing():
            await labelled.remember(service.call, own, lambda _: None)
            await service.settle()
            await relate(service, own.agent_id)
        for part in stored.parts:
            with stored.without(part):
                for question in questions:
                    asked = labelled.asked(question, DEEPEST)
                    found = await service.call(own.agent_id, "memory.retrieve", asked)
                    ranked = [str(each.get("external_id")) for each in found["memories"]]
                    measured = {f"R@{k}": recall(ranked, question["relevant_ids"], k) for k in (5, DEEPEST)}
                    stored.answers[part.name].append(Answer(measured, ranked))


async def ask_stream(service: Service, stored: Stored, wordings: Sequence[tuple[str, Wordings]], count: int) -> None:
    """Runs `count` questions between the stores of a stream of changing facts (contradictions.py)."""
    for name, wording in wordings:
        agent_id, facts = stored.agent(name), Facts(4, wording)
        for _ in range(count // len(wordings)):
            with stored.storing():
                for _ in range(3):
                    await service.call(agent_id, "memory.store", {**facts.tell(), "supersede": True})
                await relate(service, agent_id)
            query, about = facts.ask()
            wanted = "|".join((*about, facts.current[about]))
            asked = {"query": query, "k": 5, "min_fit": 0.0, "distinct": True}
            for part in stored.parts:
                with stored.without(part):
                    memories = (await service.call(agent_id, "memory.retrieve", asked))["memories"]
                ids = [each["external_id"] or each["content"] for each in memories]
                measured = {"contradictory": float(contradictory(memories)), "current": float(wanted in ids)}
                stored.answers[part.name].append(Answer(measured, ids))


def sets(options: argparse.Namespace) -> dict[str, Ask]:
    """Returns by name how each set is stored and queried."""
    limit: int | None = options.questions
    count: int = options.retrievals if limit is None else min(limit, options.retrievals)
    found: dict[str, Ask] = {"lives": partial(ask_lives, names=options.life, limit=limit)}
    own = [OWN_SETS / name for name in ("talks.jsonl", "ac2.jsonl.gz", "small.jsonl")]
    for path in labelled.files([*own, *([options.eval] if options.eval else [])]):
        found[labelled.set_name(path)] = partial(ask_labelled, path=path, limit=limit)
    free = [(f"free {name}", free_wordings(name)) for name in FREE_SETS]
    found["plain wording"] = partial(ask_stream, wordings=[("plain", {})], count=count)
    found["free wording"] = partial(ask_stream, wordings=free, count=count)
    return found


# --- figures -----------------------------------------------------------------------------------------------


def difference(one: Sequence[Answer], other: Sequence[Answer], measure: str) -> list[float]:
    """Returns the mean of `other - one` in a measure, in per cent, with its paired interval."""
    first, second = (
        [each.measures[measure] for each in answers if measure in each.measures] for answers in (one, other)
    )
    if first == second:
        return [0.0, 0.0, 0.0]
    mean = 100 * (sum(second) - sum(first)) / len(first)
    return [round(mean, 1), *paired_interval(first, second)]


def names_of(answers: Sequence[Answer]) -> list[str]:
    """Returns the measures of a set, in order."""
    return list(dict.fromkeys(name for each in answers for name in each.measures))


def mean(answers: Sequence[Answer], measure: str) -> float:
    """Returns a measure's mean, in per cent."""
    values = [each.measures[measure] for each in answers if measure in each.measures]
    return round(100 * sum(values) / len(values), 1)


def figures(stored: Sequence[Stored]) -> Row:
    """Returns the product's figures, the value of each part, and the steps from below."""
    answers = {name: each for one in stored for name, each in one.answers.items()}
    product = answers[PRODUCT]
    measures = names_of(product)
    added: dict[str, Row] = {}
    for one in stored:
        for part in one.parts:
            if part.name == PRODUCT or part.store == BELOW:
                continue
            without = answers[part.name]
            added[part.name] = {
                "acts": part.acts,
                "calls": sum(one.called[part.name].values()),
                "answers changed": _changed(without, product),
                **{each: difference(without, product, each) for each in measures},
            }
    below = [each.name for each in FROM_BELOW if each.name in answers]
    steps = zip(below, [*below[1:], PRODUCT][: len(below)], strict=True)
    return {
        "questions": {each: sum(each in one.measures for one in product) for each in measures},
        "product": {each: mean(product, each) for each in measures},
        "adds": added,
        "from below": {name: {each: mean(answers[name], each) for each in measures} for name in below},
        "steps": {
            f"{name} to {after}": {each: difference(answers[name], answers[after], each) for each in measures}
            for name, after in steps
        },
    }


def _changed(without: Sequence[Answer], product: Sequence[Answer]) -> int:
    return sum(one.given != other.given for one, other in zip(without, product, strict=True))


def unused(found: Row) -> list[str]:
    """Returns the parts whose entry points were not called on this set."""
    return [name for name, row in found["adds"].items() if not row["calls"] and name != AGAIN]


def idle(found: Row) -> list[str]:
    """Returns the parts that were called and changed no answer."""
    return [name for name, row in found["adds"].items() if row["calls"] and not row["answers changed"]]


def report(name: str, found: Row) -> Iterator[str]:
    """Formats the figures of one set as Markdown."""
    measures = list(found["product"])
    without_row = {*unused(found), *idle(found)}
    yield f"\n## {name}\n"
    yield "| what it adds, in points | acts when | answers changed | " + " | ".join(measures) + " |"
    yield "|---" * (len(measures) + 3) + "|"
    counts = [f"{found['product'][each]} of {found['questions'][each]}" for each in measures]
    yield f"| **the product, per cent** | | | {' | '.join(counts)} |"
    for part, row in found["adds"].items():
        if part not in without_row:
            cells = [_cell(row[each]) for each in measures]
            yield f"| {part} | {row['acts']} | {row['answers changed']} | {' | '.join(cells)} |"
    yield f"\nWithout effect on this set: {', '.join(idle(found)) or 'none'}."
    yield f"Not called on this set: {', '.join(unused(found)) or 'none'}."
    if found["from below"]:
        yield "\n| from below, per cent | " + " | ".join(measures) + " |"
        yield "|---" * (len(measures) + 1) + "|"
        for part, row in {**found["from below"], "all": found["product"]}.items():
            yield f"| {part} | {' | '.join(str(row[each]) for each in measures)} |"
        for step, row in found["steps"].items():
            yield f"| {step} | {' | '.join(_cell(row[each]) for each in measures)} |"


def _cell(values: Sequence[float]) -> str:
    adds, low, high = values
    mark = "**" if low > 0 or high < 0 else ""
    return f"{mark}{adds:+.1f}{mark} ({low:+.1f} to {high:+.1f})" if any(values) else "0"


# --- a run -------------------------------------------------------------------------------------------------


async def measure(options: argparse.Namespace) -> dict[str, Row]:
    """Runs the chosen sets with each of the chosen parts switched off; prints and returns the figures."""
    results: dict[str, Row] = {}
    with keeping():
        async with running_service(None, maintenance_in_server=False) as service:
            for name in options.set:
                results[name] = await ablated(uncounted(service), sets(options)[name], options.part)
                print("\n".join(report(name, results[name])), flush=True)
    return results


def uncounted(service: Service) -> Service:
    """Returns the same service without access counts."""
    return weighed(service, service.runtime.parts.policy.weights)


async def ablated(service: Service, ask: Ask, names: Sequence[str]) -> Row:
    """Runs one set with each of these parts switched off in turn, and returns the figures."""
    made = stores([CHOICES[name] for name in names])
    for each in made:
        await ask(service, each)
        print(
            f"{datetime.now(UTC):%H:%M:%S} {each.name or PRODUCT}: asked under {len(each.parts)} parts",
            file=sys.stderr,
            flush=True,
        )
    return figures(made)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="list the parts and the sets, and end")
    parser.add_argument("--part", action="append", help="this part alone; may be repeated")
    parser.add_argument("--set", action="append", help="this set alone; may be repeated")
    parser.add_argument("--eval", type=Path, help="a directory of more labelled sets (LoCoMo, LongMemEval)")
    parser.add_argument("--life", action="append", default=[], help="this life alone; may be repeated")
    parser.add_argument("--questions", type=int, help="at most so many questions of each set (a quick run)")
    parser.add_argument("--retrievals", type=int, default=400, help="retrievals of a stream")
    parser.add_argument("--markdown", type=Path, help="write the tables there, too")
    options = parser.parse_args()
    known = [name for name in sets(options) if name != "small"]
    options.part, options.set = options.part or list(CHOICES), options.set or known
    if options.list:
        print_choices(sets(options))
        return 0
    wrong = [*(set(options.part) - set(CHOICES)), *(set(options.set) - set(sets(options)))]
    if wrong:
        parser.error(f"no part or set is named {', '.join(sorted(wrong))}: see --list")
    results = run(measure(options))
    if options.markdown:
        lines = [line for name, found in results.items() for line in report(name, found)]
        options.markdown.write_text("\n".join(lines).lstrip() + "\n", encoding="utf-8")
    chosen = ("part", "set", "life", "questions", "retrievals")
    append("ablation", {name: getattr(options, name) for name in chosen}, results)
    return 0


def print_choices(known: Mapping[str, Ask]) -> None:
    """Prints each part with its time of action and replacement, and the sets."""
    for part in CHOICES.values():
        entries = dict.fromkeys(each.entry for each in part.replacements)
        shown = f"{len(entries)} entries" if part.store == BELOW else ", ".join(entries)
        print(f"{part.name:<32} {part.acts:<8} {shown}")
    print(f"\nsets: {', '.join(known)}")
