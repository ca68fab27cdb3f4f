"""Current answers from natural conversations: first, among five, in a context; abstention; outdated facts.

Reads the invented lives of `data/lives`: six for learning (the default), six for judging (`--judging`), which
are opened once per decision and never used for tuning. Every message is stored through JSON-RPC at its own
time, and every question uses the defaults. Cosine alone and BM25 alone rank the same messages.
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.labelled import Row
from benchmarks.ledger import append
from benchmarks.measures import interval, paired_interval
from benchmarks.service import Service, run, running_service

LIVES = Path(__file__).parent / "data" / "lives"
DEPTH = 20
AMONG = 5
CONTEXT_TOKENS = 600
K1, B = 1.2, 0.75
PRODUCT, COSINE, BM25 = "product", "cosine alone", "BM25 alone"


@dataclass(frozen=True)
class Life:
    """One agent's messages in order of time, their questions, and off-topic prompts."""

    name: str
    messages: Sequence[Row]
    questions: Sequence[Row]
    off_topic: Sequence[Row]


@dataclass(frozen=True)
class Outcome:
    """The ranking for one question, as external ids; `None` for rankings without a context."""

    question: Row
    ranked: Sequence[str]
    in_context: Sequence[str] | None = None
    unmarked: Sequence[str] = ()

    @property
    def answerable(self) -> bool:
        return bool(self.question["current"])

    def place(self, of: str) -> float:
        """Returns the first rank of a message with this label, or infinity."""
        return next((at for at, each in enumerate(self.ranked) if each in self.question[of]), math.inf)


def lives(directory: Path, names: Sequence[str]) -> Iterator[Life]:
    """Reads the lives of a directory, one file each. Raises SystemExit if a named one is missing."""
    paths = sorted(directory.glob("*.jsonl"))
    missing = set(names) - {path.stem for path in paths}
    if missing or not paths:
        raise SystemExit(f"no life in {directory.name}: {', '.join(sorted(missing)) or 'the directory is empty'}")
    for path in paths:
        if names and path.stem not in names:
            continue
        rows: defaultdict[str, list[Row]] = defaultdict(list)
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows[row["type"]].append(row)
        yield Life(path.stem, rows["message"], rows["question"], rows["offtopic"])


def stored_form(message: Row) -> Row:
    """Returns a message as params of `memory.store`: an interaction if it has a response, else a text."""
    scope = {name: message[name] for name in ("user_id",) if message.get(name)}
    scope |= {"session_id": message["session"], "external_id": message["id"], "idempotency_key": message["id"]}
    if message.get("response"):
        said = {"query": message["text"], "response": message["response"], "timestamp": message["at"]}
        return {**scope, "interaction": said}
    return {**scope, "content": message["text"], "speaker": message["speaker"], "timestamp": message["at"]}


def text_of(message: Row) -> str:
    """Returns a message's text for the baselines."""
    said = message["text"] if message["speaker"] == "user" else f"{message['speaker']}: {message['text']}"
    return "\n".join(filter(None, (said, message.get("response"))))


# --- the product -------------------------------------------------------------------------------------------


async def store(service: Service, life: Life) -> dict[str, str]:
    """Stores missing messages; returns the message of each memory, including duplicates."""
    messages: dict[str, str] = {}
    for message in life.messages:
        stored = await service.call(life.name, "memory.store", stored_form(message))
        if stored["memory_id"] is not None:
            messages.setdefault(stored["memory_id"], message["id"])
    await service.runtime.jobs.run_pending()
    return messages


def asked(question: Row, **more: Any) -> Row:
    """Returns a question or prompt as params of `memory.retrieve` and `memory.get_context`."""
    optional = {name: question[name] for name in ("asked_at", "user_id") if question.get(name)}
    return {"query": question["text"], **optional, **more}


async def answer(service: Service, life: Life, messages: Mapping[str, str], question: Row) -> Outcome:
    """Runs one question through both methods."""
    found = await service.call(life.name, "memory.retrieve", asked(question, k=DEPTH))
    built = await service.call(
        life.name, "memory.get_context", asked(question, max_tokens=CONTEXT_TOKENS, explain=True)
    )
    marked = {each["memory_id"] for each in built["memories"] or () if is_marked(each)}
    in_context = [each for each in built["memory_ids"] if each in messages]
    return Outcome(
        question,
        [messages[each["memory_id"]] for each in found["memories"] if each["memory_id"] in messages],
        [messages[each] for each in in_context],
        [messages[each] for each in in_context if each not in marked],
    )


def is_marked(memory: Row) -> bool:
    """Checks whether a context marks this memory as outdated."""
    return bool(memory.get("superseded_by") or memory.get("outdated_by"))


# --- the baselines -----------------------------------------------------------------------------------------


async def by_cosine(service: Service, life: Life) -> list[Outcome]:
    """Ranks by the cosine of the configured embedder alone."""
    embedder = service.runtime.parts.embedder
    if embedder is None:
        return []
    documents = await embedder.embed([text_of(each) for each in life.messages], "document")
    queries = await embedder.embed([each["text"] for each in life.questions], "query")
    return [_ranked(life, question, row) for question, row in zip(life.questions, queries @ documents.T, strict=True)]


def by_words(life: Life) -> list[Outcome]:
    """Ranks by BM25 alone (Robertson & Zaragoza 2009) over lower-case words, without stemming."""
    texts = [Counter(_words(text_of(each))) for each in life.messages]
    lengths = np.array([sum(each.values()) for each in texts], dtype=np.float64)
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    frequency = Counter(word for each in texts for word in each)

    def scores(query: str) -> NDArray[np.float64]:
        total = np.zeros(len(texts))
        for word in set(_words(query)) & frequency.keys():
            idf = math.log(1 + (len(texts) - frequency[word] + 0.5) / (frequency[word] + 0.5))
            counts = np.array([each[word] for each in texts], dtype=np.float64)
            total += idf * counts * (K1 + 1) / (counts + norm)
        return total

    return [_ranked(life, question, scores(question["text"])) for question in life.questions]


def _words(text: str) -> list[str]:
    # Each Chinese or Japanese character is a word.
    return re.findall(r"[\u3040-\u9fff]|[^\W\u3040-\u9fff]+", text.lower())


def _ranked(life: Life, question: Row, scores: NDArray[Any]) -> Outcome:
    order = [life.messages[at] for at in np.argsort(-scores, kind="stable")]
    user = question.get("user_id")
    return Outcome(question, [each["id"] for each in order if not user or each.get("user_id") == user][:DEPTH])


# --- figures -----------------------------------------------------------------------------------------------


def figures(outcomes: Sequence[Outcome]) -> Row:
    """Returns counts and shares of one ranking over the answerable questions, and its abstention."""
    asked_for = [each for each in outcomes if each.answerable]
    with_old = [each for each in asked_for if each.question["outdated"] and _found_either(each)]
    values: Row = {
        "questions": len(asked_for),
        "first": share(asked_for, is_first),
        "first interval": interval([float(is_first(each)) for each in asked_for]),
        f"among {AMONG}": share(asked_for, lambda each: each.place("current") < AMONG),
        "changed": len(with_old),
        "changed, first": share(with_old, is_first),
        "outdated above current": share(with_old, lambda each: each.place("outdated") < each.place("current")),
    }
    if all(each.in_context is not None for each in outcomes):
        nothing = [each for each in outcomes if not each.answerable]
        values |= {
            f"in {CONTEXT_TOKENS} tokens": share(asked_for, lambda each: _any(each.in_context, each, "current")),
            "outdated in context unmarked": share(with_old, lambda each: _any(each.unmarked, each, "outdated")),
            "lost, retrieve": share(asked_for, lambda each: not each.ranked),
            "lost, context": share(asked_for, lambda each: not each.in_context),
            "unanswerable": len(nothing),
            "unanswerable silent, retrieve": share(nothing, lambda each: not each.ranked),
            "unanswerable silent, context": share(nothing, lambda each: not each.in_context),
        }
    return values


def is_first(outcome: Outcome) -> bool:
    """Checks whether the top hit contains the current answer."""
    return outcome.place("current") == 0


def _found_either(outcome: Outcome) -> bool:
    return min(outcome.place("current"), outcome.place("outdated")) < math.inf


def _any(ids: Sequence[str] | None, outcome: Outcome, of: str) -> bool:
    return not set(ids or ()).isdisjoint(outcome.question[of])


def share(outcomes: Sequence[Outcome], holds: Callable[[Outcome], bool]) -> float | None:
    """Returns the share of outcomes for which the predicate is true, in per cent; None without outcomes."""
    return round(100 * sum(map(holds, outcomes)) / len(outcomes), 1) if outcomes else None


def groups(outcomes: Sequence[Outcome], field: str) -> dict[str, Row]:
    """Returns the figures by category or by language of the question."""
    by: defaultdict[str, list[Outcome]] = defaultdict(list)
    for each in outcomes:
        by[each.question[field]].append(each)
    return {name: figures(rows) for name, rows in sorted(by.items()) if any(each.answerable for each in rows)}


def paired(product: Sequence[Outcome], other: Sequence[Outcome]) -> tuple[float, float]:
    """Returns the paired interval of `product - other` in "first", in per cent."""
    return paired_interval(
        *([float(is_first(each)) for each in outcomes if each.answerable] for outcomes in (other, product))
    )


def table(rows: Mapping[str, Row], columns: Sequence[str]) -> str:
    lines = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    lines += [
        f"| {name} | " + " | ".join(str(row.get(column, "")) for column in columns) + " |" for name, row in rows.items()
    ]
    return "\n".join(lines)


async def measure(options: argparse.Namespace) -> Row:
    """Stores every life as a separate agent, runs all questions and prompts, and returns the figures."""
    directory = options.data or LIVES / ("judging" if options.judging else "learning")
    outcomes: dict[str, list[Outcome]] = {PRODUCT: [], COSINE: [], BM25: []}
    silent: list[tuple[bool, bool]] = []
    async with running_service(options.home, maintenance_in_server=False) as service:
        for life in lives(directory, options.life):
            messages = await store(service, life)
            for question in life.questions:
                outcomes[PRODUCT].append(await answer(service, life, messages, question))
            for prompt in life.off_topic:
                given = await answer(service, life, messages, {**prompt, "current": [], "outdated": []})
                silent.append((not given.ranked, not given.in_context))
            outcomes[COSINE] += await by_cosine(service, life)
            outcomes[BM25] += by_words(life)
            print(f"{life.name}: {len(messages)} memories, {len(life.questions)} questions")
        model = service.runtime.parts.embedder.model if service.runtime.parts.embedder else None
    outcomes = {name: rows for name, rows in outcomes.items() if rows}
    product = outcomes[PRODUCT]
    results = {name: figures(rows) for name, rows in outcomes.items()}
    results[PRODUCT] |= {
        "off-topic": len(silent),
        "off-topic silent, retrieve": round(100 * sum(quiet for quiet, _ in silent) / len(silent), 1),
        "off-topic silent, context": round(100 * sum(quiet for _, quiet in silent) / len(silent), 1),
    }
    if options.wrong:
        print_wrong(product)
    return {
        "lives": directory.name,
        "model": model,
        "rankings": results,
        "categories": groups(product, "category"),
        "languages": groups(product, "language"),
        "first, product minus other": {
            name: paired(product, rows) for name, rows in outcomes.items() if name != PRODUCT
        },
    }


def print_wrong(outcomes: Sequence[Outcome]) -> None:
    """Prints each question whose current answer is not the top hit."""
    for each in outcomes:
        if each.answerable and not is_first(each):
            question = each.question
            print(
                f"{question['category']}: {question['text']}\n  ranked {list(each.ranked[:AMONG])}, "
                f"current {question['current']}, outdated {question['outdated']}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--judging", action="store_true", help="the lives for judging, not those for learning")
    parser.add_argument("--data", type=Path, help="another directory of lives")
    parser.add_argument("--life", action="append", default=[], help="this life alone; may be repeated")
    parser.add_argument("--home", type=Path, help="keep the stored lives here (default: removed again)")
    parser.add_argument("--wrong", action="store_true", help="print the questions answered wrongly (learning only)")
    options = parser.parse_args()
    if options.judging and options.wrong:
        parser.error("--wrong would open the judging lives")
    found = run(measure(options))
    columns = list(found["rankings"][PRODUCT])
    print(
        table(
            {column: {name: row.get(column, "") for name, row in found["rankings"].items()} for column in columns},
            list(found["rankings"]),
        )
    )
    short = ["questions", "first", f"among {AMONG}", f"in {CONTEXT_TOKENS} tokens", "outdated above current"]
    print("\n" + table(found["categories"], short) + "\n\n" + table(found["languages"], short))
    print("\n95 % interval of first, product minus other:", found["first, product minus other"])
    append("current_answers", {"judging": options.judging, "life": options.life}, found)
    return 0
